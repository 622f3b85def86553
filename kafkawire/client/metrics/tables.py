"""The metrics of clients by Kafka's names: their groups, and the sensors that they are read from.

A table lists each metric once; what is measured is recorded by the name of its sensor.

    REQUESTS, a client's own table ─▶ Metrics.measured ─▶ {MetricName: value}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ...messages.api_key import ApiKey
from .sensors import (
    Stat,
    average,
    event_count,
    event_rate,
    event_rate_per_hour,
    maximum,
    rate,
    seconds_ago,
    total,
)


class Row(NamedTuple):
    """A metric: what is read from which sensor."""

    group: str
    name: str
    sensor: str
    stat: Stat


def _latency(group: str, name: str, sensor: str) -> list[Row]:
    return [
        Row(group, f"{name}-avg", sensor, average),
        Row(group, f"{name}-max", sensor, maximum),
    ]


def _events(group: str, name: str, sensor: str) -> list[Row]:
    return [
        Row(group, f"{name}-rate", sensor, event_rate),
        Row(group, f"{name}-total", sensor, event_count),
    ]


def _amount(group: str, name: str, sensor: str) -> list[Row]:
    return [Row(group, f"{name}-rate", sensor, rate), Row(group, f"{name}-total", sensor, total)]


REQUEST: Final = "request"
"""Latency of requests, ms; of each node, too."""
PRODUCE: Final = "produce"
BATCH_SIZE: Final = "batch-size"
QUEUE_TIME: Final = "record-queue-time"
RECORDS_PER_REQUEST: Final = "records-per-request"
RECORDS_SENT: Final = "record-send"
RECORDS_RETRIED: Final = "record-retry"
RECORDS_FAILED: Final = "record-error"
FETCH: Final = "fetch"
FETCH_SIZE: Final = "fetch-size"
RECORDS_CONSUMED: Final = "records-consumed"
COMMIT: Final = "commit"
HEARTBEAT: Final = "heartbeat"
JOIN: Final = "join"
SYNC: Final = "sync"
REBALANCE: Final = "rebalance"
POLL: Final = "poll"

SENSORS: Final[Mapping[ApiKey, str]] = {
    ApiKey.PRODUCE: PRODUCE,
    ApiKey.FETCH: FETCH,
    ApiKey.SHARE_FETCH: FETCH,
    ApiKey.OFFSET_COMMIT: COMMIT,
    ApiKey.HEARTBEAT: HEARTBEAT,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: HEARTBEAT,
    ApiKey.SHARE_GROUP_HEARTBEAT: HEARTBEAT,
    ApiKey.JOIN_GROUP: JOIN,
    ApiKey.SYNC_GROUP: SYNC,
}
"""API -> the sensor of the latency of its requests, ms."""


def request_rows(group: str) -> list[Row]:
    """Return the metrics of all requests. group: `producer-metrics`, `consumer-node-metrics` ..."""
    return [*_events(group, "request", REQUEST), *_latency(group, "request-latency", REQUEST)]


def _fetch_rows(group: str) -> list[Row]:
    return [
        *_latency(group, "fetch-latency", FETCH),
        *_events(group, "fetch", FETCH),
        *_latency(group, "fetch-size", FETCH_SIZE),
        *_amount(group, "records-consumed", RECORDS_CONSUMED),
    ]


def _coordinator_rows(group: str) -> list[Row]:
    return [
        Row(group, "heartbeat-response-time-max", HEARTBEAT, maximum),
        *_events(group, "heartbeat", HEARTBEAT),
        Row(group, "last-heartbeat-seconds-ago", HEARTBEAT, seconds_ago),
        Row(group, "rebalance-total", REBALANCE, event_count),
        Row(group, "rebalance-rate-per-hour", REBALANCE, event_rate_per_hour),
    ]


_PRODUCER: Final = "producer-metrics"
PRODUCER: Final[Iterable[Row]] = (
    *_latency(_PRODUCER, "batch-size", BATCH_SIZE),
    *_latency(_PRODUCER, "record-queue-time", QUEUE_TIME),
    Row(_PRODUCER, "records-per-request-avg", RECORDS_PER_REQUEST, average),
    *_amount(_PRODUCER, "record-send", RECORDS_SENT),
    *_amount(_PRODUCER, "record-retry", RECORDS_RETRIED),
    *_amount(_PRODUCER, "record-error", RECORDS_FAILED),
    *_latency(_PRODUCER, "request-latency", PRODUCE),
)

CONSUMER_FETCHES: Final = "consumer-fetch-manager-metrics"
CONSUMER_COORDINATOR: Final = "consumer-coordinator-metrics"
_POLLS: Final = "consumer-metrics"
CONSUMER: Final[Iterable[Row]] = (
    *_fetch_rows(CONSUMER_FETCHES),
    *_coordinator_rows(CONSUMER_COORDINATOR),
    Row(CONSUMER_COORDINATOR, "last-rebalance-seconds-ago", REBALANCE, seconds_ago),
    *_latency(CONSUMER_COORDINATOR, "commit-latency", COMMIT),
    *_events(CONSUMER_COORDINATOR, "commit", COMMIT),
    *_latency(CONSUMER_COORDINATOR, "join-time", JOIN),
    *_events(CONSUMER_COORDINATOR, "join", JOIN),
    *_latency(CONSUMER_COORDINATOR, "sync-time", SYNC),
    *_events(CONSUMER_COORDINATOR, "sync", SYNC),
    *_latency(_POLLS, "time-between-poll", POLL),
    Row(_POLLS, "last-poll-seconds-ago", POLL, seconds_ago),
)

SHARE_CONSUMER: Final[Iterable[Row]] = (
    *_fetch_rows("consumer-share-fetch-manager-metrics"),
    *_coordinator_rows("consumer-share-coordinator-metrics"),
    *_latency("consumer-share-metrics", "time-between-poll", POLL),
    Row("consumer-share-metrics", "last-poll-seconds-ago", POLL, seconds_ago),
)
ADMIN: Final[Iterable[Row]] = ()

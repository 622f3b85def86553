"""Sensors measure over windows as Kafka's, and a metric is read from one of them."""

from __future__ import annotations

import math
from itertools import chain

import pytest

from kafkawire.client.metrics import MetricName, Metrics, SampleSettings
from kafkawire.client.metrics import sensors as of
from kafkawire.client.metrics.tables import (
    ADMIN,
    CONSUMER,
    FETCH,
    HEARTBEAT,
    PRODUCER,
    REBALANCE,
    SHARE_CONSUMER,
    SYNC,
    Row,
)
from kafkawire.client.requests import ResponseReceived, Same, SendRequest
from kafkawire.messages.api_key import ApiKey
from kafkawire.messages.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kafkawire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kafkawire.messages.sync_group_response import SyncGroupResponse
from kafkawire.primitives import Message

SETTINGS = SampleSettings(window_s=30.0, samples=2)


def response(api: ApiKey, message: Message, latency_s: float, node: int = 1) -> ResponseReceived:
    request = SendRequest("owner", 0, node, api, Same(message, 0, 1), 1.0)
    return ResponseReceived(request, 1, message, node, latency_s)


def test_a_rate_stands_for_all_full_windows() -> None:
    """A rate of Kafka's counts the windows that are over, though nothing was in them."""
    sensor = of.Sensor(SETTINGS)
    assert (of.rate(sensor, 0.0), of.event_rate(sensor, 0.0)) == (0.0, 0.0)
    sensor.record(60, 100.0)
    assert of.rate(sensor, 100.0) == 60 / 30
    assert of.rate(sensor, 110.0) == 60 / 40
    sensor.record(30, 130.0)
    assert of.rate(sensor, 145.0) == 90 / 45
    assert of.event_rate(sensor, 145.0) == 2 / 45
    assert of.event_rate_per_hour(sensor, 145.0) == 2 / 45 * 3600
    sensor.record(12, 160.0)  # a third window: the first is dropped
    assert of.rate(sensor, 160.0) == 42 / 30


def test_values_do_not_count_after_all_windows() -> None:
    sensor = of.Sensor(SETTINGS)
    sensor.record(4, 0.0)
    sensor.record(10, 1.0)
    assert (of.average(sensor, 2.0), of.maximum(sensor, 2.0)) == (7.0, 10.0)
    assert (of.average(sensor, 60.9), of.maximum(sensor, 60.9)) == (7.0, 10.0)
    assert math.isnan(of.average(sensor, 61.0))
    assert math.isnan(of.maximum(sensor, 61.0))
    assert of.rate(sensor, 61.0) == 0.0
    assert (of.total(sensor, 61.0), of.event_count(sensor, 61.0)) == (14.0, 2.0)
    assert of.seconds_ago(sensor, 61.5) == 60.0
    assert of.seconds_ago(of.Sensor(SETTINGS), 61.5) == -1.0


def test_memory_does_not_grow_with_values() -> None:
    sensor = of.Sensor(SampleSettings(window_s=1.0, samples=3))
    for at in range(1_000):
        sensor.record(1, float(at))
    assert len(sensor.live(1_000.0)) <= 3
    assert len(sensor._samples) == 3


@pytest.mark.parametrize("rows", [PRODUCER, CONSUMER, SHARE_CONSUMER, ADMIN])
def test_a_metric_is_listed_once(rows: tuple[Row, ...]) -> None:
    metrics = Metrics("client", rows, "me", SETTINGS)
    names = [(row.group, row.name) for row in chain(metrics._rows, metrics._node_rows)]
    assert len(set(names)) == len(names)


def test_responses_are_measured_by_api_and_node() -> None:
    metrics = Metrics("consumer", CONSUMER, "me", SETTINGS)
    partition = PartitionData(partition_index=0, high_watermark=1, records=b"12345")
    topic = FetchableTopicResponse(topic="t", partitions=[partition, partition])
    metrics.on_response(response(ApiKey.FETCH, FetchResponse(responses=[topic]), 0.25, 1), 5.0)
    metrics.on_response(response(ApiKey.FETCH, FetchResponse(), 0.75, 2), 6.0)
    values = metrics.measured(7.0)

    def value(group: str, name: str, *tags: tuple[str, str]) -> float:
        return values[MetricName(group, name, (("client-id", "me"), *tags))]

    fetches = "consumer-fetch-manager-metrics"
    assert value(fetches, "fetch-latency-avg") == 500.0
    assert value(fetches, "fetch-latency-max") == 750.0
    assert value(fetches, "fetch-total") == 2.0
    assert (value(fetches, "fetch-size-avg"), value(fetches, "fetch-size-max")) == (5.0, 10.0)
    node = ("node-id", "node-2")
    assert value("consumer-node-metrics", "request-latency-avg", node) == 750.0
    assert value("consumer-metrics", "request-total") == 2.0
    assert math.isnan(value("consumer-coordinator-metrics", "commit-latency-avg"))
    assert value("consumer-coordinator-metrics", "last-heartbeat-seconds-ago") == -1.0


def test_rebalances_are_those_that_the_coordinator_completed() -> None:
    metrics = Metrics("consumer", CONSUMER, "me", SETTINGS)
    assignment = Assignment(
        topic_partitions=[TopicPartitions(topic_id=bytes(16), partitions=[0, 1])]
    )
    for api, message in (
        (ApiKey.SYNC_GROUP, SyncGroupResponse()),
        (ApiKey.SYNC_GROUP, SyncGroupResponse(error_code=27)),
        (ApiKey.CONSUMER_GROUP_HEARTBEAT, ConsumerGroupHeartbeatResponse()),
        (ApiKey.CONSUMER_GROUP_HEARTBEAT, ConsumerGroupHeartbeatResponse(assignment=Assignment())),
        (ApiKey.CONSUMER_GROUP_HEARTBEAT, ConsumerGroupHeartbeatResponse(assignment=assignment)),
        (ApiKey.CONSUMER_GROUP_HEARTBEAT, ConsumerGroupHeartbeatResponse(assignment=assignment)),
    ):
        metrics.on_response(response(api, message, 0.1), 1.0)
    assert metrics._sensors[REBALANCE].count == 2
    assert metrics._sensors[SYNC].count == 1
    assert metrics._sensors[HEARTBEAT].count == 4
    assert metrics._sensors[FETCH].count == 0


def test_a_name_is_shown_with_its_tags() -> None:
    name = MetricName("producer-metrics", "request-total", (("client-id", "me"),))
    assert str(name) == "producer-metrics: request-total (client-id=me)"

"""Rules about latencies that differ: of brokers, and of the partitions of a broker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any, Final

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.topic_ids import TopicKey, topic_key
from kafkawire.capture.rows import Row
from kafkawire.capture.tables.exchanges import since
from kafkawire.capture.tables.extraction.partition_fields import TOPIC_ID
from kafkawire.messages.api_key import ApiKey

from ...quantiles import Quantiles
from ..fetched import Fetched
from ..finding import Confidence, Finding, Setting, Severity, Subject
from ..latencies import Latencies
from ..rule import Rule, Scene, Subjects, Threshold
from .consuming import CONSUMER

PROMPT: Final = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.LIST_OFFSETS,
        ApiKey.METADATA,
        ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_FETCH,
        ApiKey.FIND_COORDINATOR,
        ApiKey.HEARTBEAT,
        ApiKey.API_VERSIONS,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.END_TXN,
        ApiKey.TXN_OFFSET_COMMIT,
    }
)
"""APIs whose responses do not wait on purpose."""


class SlowBroker(Rule):
    """A broker that is slower than the others."""

    name = "slow-broker"
    description = (
        "A broker takes much longer than its peers for the same API. Requests that wait on purpose "
        "(Fetch, JoinGroup, SyncGroup) are not compared."
    )
    apis = PROMPT
    thresholds = (
        Threshold("requests", 100, "requests", "per broker; the median of fewer is not reliable"),
        Threshold("times", 4, "times", "the load of brokers differs, but rarely by so much"),
        Threshold("milliseconds", 20, "ms", "a smaller difference rarely matters"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._brokers: Subjects[Latencies] = Subjects(Latencies)
        self._places: dict[tuple[str, int | None], Latencies] = {}  # as many as APIs of brokers

    def responded(self, exchange: Exchange, latency_ns: int) -> None:
        """Add the latency of an exchange."""
        address, _, response = exchange[2:]
        assert response is not None
        place = address, response.api_key
        broker = self._places.get(place)
        if broker is None:
            subject = Subject(broker=address, api=response.api_name)
            broker = self._places[place] = self._brokers.of(subject)
        broker.latency.add(latency_ns)
        broker.seen.add(response, 0, latency_ns)

    def findings(self) -> Iterator[Finding]:
        """Return the brokers whose median is far above that of each other broker together."""
        by_api: dict[str | None, dict[Subject, Latencies]] = {}
        for subject, broker in self._brokers:
            if broker.seen.count >= self.limits["requests"]:
                by_api.setdefault(subject.api, {})[subject] = broker
        for brokers in by_api.values():
            for subject, broker in brokers.items():
                peers = Quantiles()
                for other in brokers.values():
                    if other is not broker:
                        peers.merge(other.latency)
                usual, own = peers.at(0.5), broker.latency.at(0.5)
                if usual is None or own is None or own - usual < self.limits["milliseconds"] * 1e6:
                    continue
                if own < self.limits["times"] * usual:
                    continue
                yield Finding(
                    self.name,
                    Severity.WARNING,
                    subject,
                    f"median {own / 1e6:,.1f} ms; its peers take {usual / 1e6:,.1f} ms",
                    broker.seen,
                    "The broker is overloaded, has slow disks or followers, or is far away.",
                    "Compare its load, disks and request queue with its peers; move leaders away.",
                    Confidence.MEDIUM,
                )


MAX_PARTITIONS: Final = 2000
"""Partitions whose latencies are kept, each with a histogram."""


class SlowPartition(Rule):
    """A partition that is slower than the others of its broker."""

    name = "slow-partition"
    description = (
        "Produce or Fetch requests with a partition take much longer than those with others of the "
        "same broker. Of Fetch, only those with a partition that has records behind their offset "
        "are compared: others wait on purpose."
    )
    apis = frozenset({ApiKey.PRODUCE})
    thresholds = (
        Threshold("requests", 50, "requests", "per partition; the median of fewer varies"),
        Threshold("partitions", 4, "partitions", "of fewer, it is not clear what is usual"),
        Threshold("times", 4, "times", "the load of partitions differs, but rarely by so much"),
        Threshold("milliseconds", 20, "ms", "a smaller difference rarely matters"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._partitions: dict[Subject, Latencies] = {}
        self._produced: dict[tuple[str, TopicKey, int], Latencies] = {}

    def responded(self, exchange: Exchange, latency_ns: int) -> None:
        """Add the latency of a Produce request to those of its partitions."""
        _, _, broker, request, response = exchange
        if request is None or response is None:
            return
        body: Any = request.message
        if body is None or response.message is None:
            return
        produced = self._produced
        for topic in body.topic_data:
            key = topic_key(topic.name, TOPIC_ID.of(topic))
            for one in topic.partition_data:
                place = broker, key, one.index
                latencies = produced.get(place)
                if latencies is None:
                    latencies = self._new(*place, request)
                    if latencies is None:
                        continue
                    produced[place] = latencies
                latencies.latency.add(latency_ns)
                latencies.seen.add(response, 0, latency_ns)

    def fetched(self, fetched: Fetched) -> None:
        """Add the latency of a Fetch to those of its partitions that had something to read."""
        exchange, request, response, body, _, requested, partitions = fetched
        latency_ns = since(response.request_time_ns, response.time_ns)
        if latency_ns is None:
            return
        if body.min_bytes <= 1 and body.replica_id == CONSUMER:
            for partition, one in requested:
                if one.fetch_offset < partition.readable:
                    latencies = partition.latencies
                    if latencies is None:
                        place = exchange.broker, partition.topic, partition.index
                        latencies = partition.latencies = self._new(*place, request)
                        if latencies is None:
                            continue
                    latencies.latency.add(latency_ns)
                    latencies.seen.add(response, 0, latency_ns)
        reads_committed = body.isolation_level
        for partition, one in partitions:
            if not one.error_code:
                end = one.high_watermark
                if reads_committed and 0 <= one.last_stable_offset < end:
                    end = one.last_stable_offset
                partition.readable = end

    def _new(self, broker: str, topic: TopicKey, index: int, request: Row) -> Latencies | None:
        """Return the latencies of a partition that has none; None beyond the bound."""
        subject = Subject(topic=topic, partition=index, broker=broker, api=request.api_name)
        latencies = self._partitions.get(subject)
        if latencies is None and len(self._partitions) < MAX_PARTITIONS:
            latencies = self._partitions[subject] = Latencies()
        return latencies

    def findings(self) -> Iterator[Finding]:
        """Return the partitions whose median is far above those of the others."""
        by_broker: dict[tuple[str | None, str | None], dict[Subject, float]] = {}
        for subject, partition in self._partitions.items():
            if partition.seen.count >= self.limits["requests"]:
                medians = by_broker.setdefault((subject.broker, subject.api), {})
                medians[subject] = partition.latency.at(0.5) or 0
        for medians in by_broker.values():
            usual = median(medians.values())
            if len(medians) < self.limits["partitions"]:
                continue
            for subject, own in medians.items():
                if own - usual < self.limits["milliseconds"] * 1e6:
                    continue
                if own >= self.limits["times"] * usual:
                    yield self._finding(subject, own, usual)

    def _finding(self, subject: Subject, own: float, usual: float) -> Finding:
        return Finding(
            self.name,
            Severity.WARNING,
            subject,
            f"median {own / 1e6:,.1f} ms; other partitions of the broker take {usual / 1e6:,.1f} "
            "ms",
            self._partitions[subject].seen,
            "A follower of the partition is slow (acks=all waits for it), or its log is on a slow "
            "disk, or its old records are read from disk or tiered storage.",
            "Compare the followers of the partition and its log directory (kafkawire log-dirs) "
            "with those of others; move its replicas (kafkawire reassign).",
            Confidence.MEDIUM,
            (Setting("num.replica.fetchers"), Setting("log.dirs")),
            terms=(f"partition == {subject.partition}",),
        )

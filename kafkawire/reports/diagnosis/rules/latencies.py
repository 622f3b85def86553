"""Rules about latencies that differ: of brokers, and of the partitions of a broker."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from statistics import median
from typing import Any, Final

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.topic_ids import TopicKey
from kafkawire.capture.tables.extraction.partition_fields import TOPIC_ID
from kafkawire.messages.api_key import ApiKey

from ...quantiles import Quantiles
from ..finding import Confidence, Finding, Occurrences, Setting, Severity, Subject
from ..rule import MAX_SUBJECTS, Rule, Scene, Subjects, Threshold
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


class Latencies:
    """The latencies of an API at a broker."""

    __slots__ = ("latency", "seen")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.latency = Quantiles()


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

    def responded(self, exchange: Exchange, latency_ns: int) -> None:
        """Add the latency of an exchange."""
        _, _, address, _, response = exchange
        assert response is not None
        broker = self._brokers.of_key(
            (address, response.api_key), lambda: Subject(broker=address, api=response.api_name)
        )
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
    apis = frozenset({ApiKey.PRODUCE, ApiKey.FETCH})
    thresholds = (
        Threshold("requests", 50, "requests", "per partition; the median of fewer varies"),
        Threshold("partitions", 4, "partitions", "of fewer, it is not clear what is usual"),
        Threshold("times", 4, "times", "the load of partitions differs, but rarely by so much"),
        Threshold("milliseconds", 20, "ms", "a smaller difference rarely matters"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._partitions: dict[Hashable, Latencies] = {}
        self._subjects: dict[Hashable, Subject] = {}
        self._ends: dict[tuple[str, TopicKey, int], int] = {}

    def responded(self, exchange: Exchange, latency_ns: int) -> None:
        """Add the latency of a request to those of its partitions."""
        request, response = exchange.request, exchange.response
        if request is None or response is None:
            return
        if request.message is None or response.message is None:
            return
        partitions: Iterable[tuple[TopicKey, int]]
        if request.api_key == ApiKey.FETCH:
            partitions = self._behind(exchange.broker, request.message)
            self._note_ends(exchange.broker, request.message, response.message)
        else:
            partitions = self._produced(request.message)
        for topic, index in partitions:
            place = exchange.broker, request.api_key, topic, index
            partition = self._partitions.get(place)
            if partition is None:
                if len(self._partitions) >= MAX_PARTITIONS:
                    continue
                partition = self._partitions[place] = Latencies()
                subject = Subject(topic=topic, partition=index, broker=exchange.broker)
                self._subjects[place] = subject._replace(api=request.api_name)
            partition.latency.add(latency_ns)
            partition.seen.add(response, 0, latency_ns)

    def _produced(self, request: Any) -> Iterator[tuple[TopicKey, int]]:
        """Return the partitions of a Produce request."""
        for topic in request.topic_data:
            key = self.scene.names.topic(topic.name, TOPIC_ID.of(topic)).key
            for one in topic.partition_data:
                yield key, one.index

    def _behind(self, broker: str, request: Any) -> list[tuple[TopicKey, int]]:
        """Return the partitions of a consumer's Fetch request that have records at the offset."""
        if request.min_bytes > 1 or request.replica_id != CONSUMER:
            return []
        behind = []
        for topic in request.topics:
            key = self.scene.names.topic(topic.topic, topic.topic_id).key
            for one in topic.partitions:
                if one.fetch_offset < self._ends.get((broker, key, one.partition), -1):
                    behind.append((key, one.partition))
        return behind

    def _note_ends(self, broker: str, request: Any, response: Any) -> None:
        """Note up to where a consumer can read each partition of a Fetch response."""
        ends = self._ends
        for topic in response.responses:
            key = self.scene.names.topic(topic.topic, topic.topic_id).key
            for one in topic.partitions:
                place, end = (broker, key, one.partition_index), one.high_watermark
                if request.isolation_level and one.last_stable_offset >= 0:
                    end = min(end, one.last_stable_offset)
                if not one.error_code and (place in ends or len(ends) < MAX_SUBJECTS):
                    ends[place] = end

    def findings(self) -> Iterator[Finding]:
        """Return the partitions whose median is far above those of the others."""
        by_broker: dict[tuple[str | None, str | None], dict[Hashable, float]] = {}
        for place, partition in self._partitions.items():
            if partition.seen.count >= self.limits["requests"]:
                subject = self._subjects[place]
                medians = by_broker.setdefault((subject.broker, subject.api), {})
                medians[place] = partition.latency.at(0.5) or 0
        for medians in by_broker.values():
            usual = median(medians.values())
            if len(medians) < self.limits["partitions"]:
                continue
            for place, own in medians.items():
                if own - usual < self.limits["milliseconds"] * 1e6:
                    continue
                if own >= self.limits["times"] * usual:
                    yield self._finding(place, own, usual)

    def _finding(self, place: Hashable, own: float, usual: float) -> Finding:
        subject = self._subjects[place]
        return Finding(
            self.name,
            Severity.WARNING,
            subject,
            f"median {own / 1e6:,.1f} ms; other partitions of the broker take {usual / 1e6:,.1f} "
            "ms",
            self._partitions[place].seen,
            "A follower of the partition is slow (acks=all waits for it), or its log is on a slow "
            "disk, or its old records are read from disk or tiered storage.",
            "Compare the followers of the partition and its log directory (kafkawire log-dirs) "
            "with those of others; move its replicas (kafkawire reassign).",
            Confidence.MEDIUM,
            (Setting("num.replica.fetchers"), Setting("log.dirs")),
            terms=(f"partition == {subject.partition}",),
        )

"""Rules about what Fetch responses have: formats, replicas of other racks, open transactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.messages.api_key import ApiKey
from kafkawire.protocol.frame import SIZE

from ..finding import Confidence, Finding, Occurrences, Setting, Severity, Subject
from ..produced import Produced
from ..rule import MAX_SUBJECTS, Rule, Scene, Subjects, Threshold, client_of
from .consuming import CONSUMER

MAGIC: Final = 16
"""Where the version of the record format is in a batch."""

FETCH: Final = "api == Fetch"

METADATA: Final = ApiKey.METADATA


class DownConversion(Rule):
    """Consumers that need an old record format."""

    name = "down-conversion"
    description = (
        "A consumer fetches with a version that needs an old record format, from a topic with "
        "batches of the format of Kafka 0.11: the broker converts all of them, in its memory."
    )
    apis = frozenset({ApiKey.FETCH})
    thresholds = (Threshold("responses", 10, "responses", "a few may be a test"),)

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._current: dict[object, None] = {}  # topics with batches of magic 2
        self._old: Subjects[Occurrences] = Subjects(Occurrences)

    def produced(self, produced: Produced) -> None:
        """Note the topics that have batches of the current format."""
        topic = produced.topic.topic
        if topic not in self._current and produced.batches and produced.batches[0].magic == 2:
            self._note(topic)

    def _note(self, topic: object) -> None:
        if len(self._current) < MAX_SUBJECTS:
            self._current[topic] = None

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Look at the format of the records in a Fetch response."""
        response = exchange.response
        if response is None or response.message is None:
            return
        message: Any = response.message
        if (response.api_version or 0) >= 4 and self._current:
            return  # no conversion; produced batches tell the format
        for topic in message.responses:
            key = self.scene.names.topic(topic.topic, topic.topic_id).key
            magics = {
                one.records[MAGIC] for one in topic.partitions if len(one.records or b"") > MAGIC
            }
            if magics & {0, 1}:
                self._old.of(client_of(exchange, topic=key)).add(response, response.length + SIZE)
            elif magics:
                self._note(key)

    def findings(self) -> Iterator[Finding]:
        """Return the consumers for which a broker converts."""
        for subject, seen in self._old:
            if subject.topic not in self._current or seen.count < self.limits["responses"]:
                continue
            yield Finding(
                self.name,
                Severity.WARNING,
                subject,
                f"{seen.count:,} Fetch responses were converted to an old record format",
                seen,
                "The consumer is older than Kafka 0.11, or limited to old versions.",
                "Upgrade the consumer: Kafka 4.0 does not convert, and refuses these versions.",
                Confidence.HIGH,
                (Setting("log.message.downconversion.enable"),),
                "KIP-283, KIP-896",
                (FETCH,),
            )


class OtherRack(Rule):
    """Consumers that read from another rack."""

    name = "other-rack"
    description = (
        "A consumer that has a client.rack reads much from a broker of another rack. Known where "
        "Metadata responses have the addresses of brokers as they are in the capture."
    )
    apis = frozenset({ApiKey.FETCH, ApiKey.METADATA})
    thresholds = (Threshold("bytes", 10_000_000, "B", "less traffic costs little"),)

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._racks: dict[str, str] = {}
        self._clients: dict[tuple[str, str], Occurrences] = {}
        self._subjects: dict[tuple[str, str], Subject] = {}

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Note the racks of brokers, and what is fetched from them."""
        request, response = exchange.request, exchange.response
        if response is None or response.message is None:
            return
        message: Any = response.message
        if response.api_key == METADATA:
            for broker in message.brokers:
                if broker.rack and len(self._racks) < MAX_SUBJECTS:
                    self._racks[f"{broker.host}:{broker.port}"] = broker.rack
            return
        body: Any = None if request is None else request.message
        if body is None or not body.rack_id:
            return
        key = body.rack_id, f"{request.client_id if request else ''} {exchange.broker}"
        seen = self._clients.get(key)
        if seen is None:
            if len(self._clients) >= MAX_SUBJECTS:
                return
            seen = self._clients[key] = Occurrences()
            self._subjects[key] = client_of(exchange, broker=exchange.broker)
        seen.add(response, response.length + SIZE)

    def findings(self) -> Iterator[Finding]:
        """Return the consumers and the brokers of other racks."""
        for key, seen in self._clients.items():
            subject, rack = self._subjects[key], key[0]
            other = self._racks.get(subject.broker or "")
            if other is None or other == rack or seen.bytes < self.limits["bytes"]:
                continue
            yield Finding(
                self.name,
                Severity.NOTICE,
                subject,
                f"{seen.bytes:,} bytes from rack {other!r}; the client is in {rack!r}",
                seen,
                "The leader is elsewhere, and followers are not read.",
                "Set replica.selector.class to RackAwareReplicaSelector in the brokers, and have "
                "a replica in each rack.",
                Confidence.HIGH,
                (Setting("client.rack", rack), Setting("replica.selector.class")),
                "KIP-392",
                (FETCH,),
            )


class Stable:
    """The last stable offset of a partition, and since when it has not moved.

    stalled: the longest such time behind an open transaction, and the records behind it then.
    """

    __slots__ = ("behind", "offset", "seen", "since_ns", "stalled_ns")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.offset = -1
        self.since_ns = self.stalled_ns = self.behind = 0


class StalledReadCommitted(Rule):
    """Consumers with read_committed that wait for an open transaction."""

    name = "read-committed-stalled"
    description = (
        "A consumer with read_committed gets nothing although there are records: the last stable "
        "offset of the partition does not move, because a transaction is open."
    )
    apis = frozenset({ApiKey.FETCH})
    thresholds = (
        Threshold("seconds", 30, "s", "a transaction lasts for a fraction of a second as a rule"),
        Threshold("critical", 900, "s", "transaction.max.timeout.ms is 15 minutes by default"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._partitions: Subjects[Stable] = Subjects(Stable)

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Compare last stable offsets with those before."""
        request, response = exchange.request, exchange.response
        body: Any = None if request is None else request.message
        message: Any = None if response is None else response.message
        if body is None or message is None or response is None or not body.isolation_level:
            return
        if body.replica_id != CONSUMER or response.time_ns == NO_TIME:
            return
        for topic in message.responses:
            key = self.scene.names.topic(topic.topic, topic.topic_id).key
            for one in topic.partitions:
                if not one.error_code and one.last_stable_offset >= 0:
                    subject = client_of(exchange, topic=key)._replace(partition=one.partition_index)
                    stable = self._partitions.of(subject)
                    at_ns = response.time_ns
                    if one.last_stable_offset != stable.offset or (
                        one.high_watermark <= one.last_stable_offset
                    ):
                        stable.offset, stable.since_ns = one.last_stable_offset, at_ns
                    elif at_ns - stable.since_ns > stable.stalled_ns:
                        stable.stalled_ns = at_ns - stable.since_ns
                        stable.behind = one.high_watermark - one.last_stable_offset
                        stable.seen.add(response)
                        stable.seen.time_ns = stable.stalled_ns

    def findings(self) -> Iterator[Finding]:
        """Return the partitions that stood still."""
        for subject, stable in self._partitions:
            seconds = stable.stalled_ns / 1e9
            if seconds < self.limits["seconds"]:
                continue
            yield Finding(
                self.name,
                Severity.CRITICAL if seconds >= self.limits["critical"] else Severity.WARNING,
                subject,
                f"nothing for {seconds:,.0f} s, with {stable.behind:,} records behind the last "
                "stable offset",
                stable.seen,
                "A transaction is open: its producer is slow, or ended without ending it.",
                "List open transactions (kafkawire transactions -b HOST --hanging); lower "
                "transaction.timeout.ms of the producer.",
                Confidence.HIGH,
                (Setting("isolation.level", "read_committed"), Setting("transaction.timeout.ms")),
                "KIP-98, KIP-664",
                (FETCH,),
            )

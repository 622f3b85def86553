"""Rules about what Fetch responses have: formats, replicas of other racks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.topic_ids import TopicKey, topic_key
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.capture.tables.extraction.partition_fields import TOPIC_ID
from kafkawire.display import host_and_port
from kafkawire.messages.api_key import ApiKey
from kafkawire.protocol.frame import SIZE

from ..fetched import Fetched, Partitions
from ..finding import Confidence, Finding, Occurrences, Setting, Severity, Subject
from ..produced import Produced
from ..rule import MAX_SUBJECTS, Rule, Scene, Subjects, Threshold, client_of

MAGIC: Final = 16
"""Where the version of the record format is in a batch."""

FETCH: Final = "api == Fetch"

NAMED: Final = 3
"""Partitions that a finding names, those with most bytes."""


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
            key = topic_key(topic.topic, topic.topic_id)
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


class Reading(NamedTuple):
    """Where a consumer reads: its rack, its client id and the broker."""

    rack: str
    client_id: str
    broker: str


class Node(NamedTuple):
    """A broker, as Metadata states it. address: host and port."""

    address: str
    rack: str


class FromRack:
    """What a consumer fetches from a broker, and the bytes of each partition."""

    __slots__ = ("partitions", "seen", "subject")

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.seen = Occurrences()
        self.partitions: Counter[tuple[TopicKey, int]] = Counter()


class OtherRack(Rule):
    """Consumers that read from another rack."""

    name = "other-rack"
    description = (
        "A consumer that has a client.rack reads much from a broker of another rack, although a "
        "replica of the partitions is in its own, or may be: known where Metadata responses have "
        "the topic. Brokers are known where these have their addresses as they are in the capture."
    )
    apis = frozenset({ApiKey.METADATA})
    thresholds = (Threshold("bytes", 10_000_000, "B", "less traffic costs little"),)

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._nodes: dict[int, Node] = {}
        self._replicas: dict[tuple[TopicKey, int], Sequence[int]] = {}
        self._readings: dict[Reading, FromRack] = {}
        self._partitions = 0

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Note the racks of brokers and replicas."""
        if exchange.response is not None and exchange.response.message is not None:
            self._note_replicas(exchange.response.message)

    def fetched(self, fetched: Fetched) -> None:
        """Note what is fetched from a broker."""
        exchange, request, response, body, *_ = fetched
        if not body.rack_id:
            return
        key = Reading(body.rack_id, request.client_id or exchange.client, exchange.broker)
        reading = self._readings.get(key)
        if reading is None:
            if len(self._readings) >= MAX_SUBJECTS:
                return
            reading = FromRack(client_of(exchange, broker=exchange.broker))
            self._readings[key] = reading
        if self._add(reading, fetched.partitions):
            reading.seen.add(response)

    def _note_replicas(self, message: Any) -> None:
        for broker in message.brokers:
            if broker.rack and (broker.node_id in self._nodes or len(self._nodes) < MAX_SUBJECTS):
                self._nodes[broker.node_id] = Node(
                    host_and_port(broker.host, broker.port), broker.rack
                )
        replicas = self._replicas
        for topic in message.topics or ():
            key = topic_key(topic.name, TOPIC_ID.of(topic))
            for one in topic.partitions:
                place = key, one.partition_index
                if len(replicas) < MAX_SUBJECTS or place in replicas:
                    replicas[place] = one.replica_nodes

    def _add(self, reading: FromRack, partitions: Partitions) -> bool:
        """Add the bytes of each partition of a Fetch response; whether it has any."""
        has_records = False
        for partition, one in partitions:
            if not one.records:
                continue
            place = partition.topic, partition.index
            if place not in reading.partitions:
                if self._partitions >= MAX_SUBJECTS:
                    continue
                self._partitions += 1
            reading.partitions[place] += len(one.records)
            has_records = True
        return has_records

    def findings(self) -> Iterator[Finding]:
        """Return the consumers and the brokers of other racks."""
        racks = {node.address: node.rack for node in self._nodes.values()}
        for key, reading in self._readings.items():
            other = racks.get(key.broker)
            if other is None or other == key.rack:
                continue
            avoidable = Counter(
                {
                    place: size
                    for place, size in reading.partitions.items()
                    if self._nearer(place, key.rack) is not False
                }
            )
            reading.seen.bytes = avoidable.total()
            if reading.seen.bytes >= self.limits["bytes"]:
                yield self._finding(key, reading, other, avoidable)

    def _nearer(self, place: tuple[TopicKey, int], rack: str) -> bool | None:
        """Whether a replica of a partition is in a rack; None if that is unknown."""
        nodes = [self._nodes.get(number) for number in self._replicas.get(place, ())]
        if any(node is not None and node.rack == rack for node in nodes):
            return True
        return None if not nodes or None in nodes else False

    def _finding(
        self, key: Reading, reading: FromRack, other: str, avoidable: Counter[tuple[TopicKey, int]]
    ) -> Finding:
        is_known = all(self._nearer(place, key.rack) for place in avoidable)
        named = ", ".join(
            f"{self.scene.topic_name(topic)} {partition} ({size:,})"
            for (topic, partition), size in avoidable.most_common(NAMED)
        )
        more = len(avoidable) - NAMED
        replica = "which has replicas of them" if is_known else "which may have replicas of them"
        return Finding(
            self.name,
            Severity.NOTICE,
            reading.subject,
            f"{reading.seen.bytes:,} bytes from rack {other!r}, of {named}"
            f"{f' and {more} more' if more > 0 else ''}; the client is in {key.rack!r}, {replica}",
            reading.seen,
            "Consumers read from leaders, unless the brokers choose a replica by rack.",
            "Set replica.selector.class to RackAwareReplicaSelector in the brokers, and have a "
            "replica in each rack.",
            Confidence.HIGH if is_known else Confidence.MEDIUM,
            (Setting("client.rack", key.rack), Setting("replica.selector.class")),
            "KIP-392",
            (FETCH,),
        )

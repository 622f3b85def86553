"""Counts what clients produce once for all rules, by client and topic, and by topic."""

from __future__ import annotations

from collections import Counter
from typing import Final

from kafkawire.capture.exchanges.topic_ids import TopicKey
from kafkawire.capture.tables.arrow.record_fields import batch_names
from kafkawire.errors import WireError
from kafkawire.records import Batch, Compression

from .finding import Occurrences, Subject
from .subjects import MAX_SUBJECTS, Subjects

MAX_CLIENTS: Final = 5
"""Clients that are kept of the codecs of a topic."""

CODEC: Final = int(max(Compression))
"""The bits of the attributes of a batch that are its codec."""


class Sent:
    """The batches that a client sent to a topic. seen: one occurrence per partition and request."""

    __slots__ = ("batches", "records", "seen")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.batches = self.records = 0


class Load:
    """What was produced to a topic: the bytes of each partition, and the batches of each codec.

    clients: the first one that used a codec. seen: as that of `Sent`.
    """

    __slots__ = ("bytes", "clients", "codecs", "records", "seen")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.bytes: Counter[int] = Counter()
        self.codecs: Counter[str] = Counter()
        self.clients: dict[str, str] = {}
        self.records = 0


class Flow:
    """What a client produces to a topic, and all clients. subjects: both, the client, the topic."""

    __slots__ = ("client", "client_and_topic", "load", "sent", "topic")

    def __init__(self, client_and_topic: Subject, sent: Sent, load: Load) -> None:
        self.client_and_topic = client_and_topic
        self.client = client_and_topic._replace(topic=None)
        self.topic = Subject(topic=client_and_topic.topic)
        self.sent, self.load = sent, load


class Production:
    """What was produced, by client and topic (`sent`) and by topic (`loads`)."""

    def __init__(self) -> None:
        self.sent: Subjects[Sent] = Subjects(Sent)
        self.loads: Subjects[Load] = Subjects(Load)
        self._flows: dict[tuple[str, TopicKey], Flow] = {}
        self._partitions = 0

    def flow(self, client: str, topic: TopicKey) -> Flow | None:
        """Return what a client, by its id or address, produces to a topic, if it is known."""
        return self._flows.get((client, topic))

    def begin(self, client: str, topic: TopicKey, subject: Subject) -> Flow:
        """Return what a client produces to a topic for the first time."""
        load = self.loads.of(Subject(topic=topic))
        flow = Flow(subject, self.sent.of(subject), load)
        if len(self._flows) < MAX_SUBJECTS:
            self._flows[client, topic] = flow
        return flow

    def add_bytes(self, load: Load, partition: int, size: int) -> None:
        """Add the bytes of a partition."""
        if partition not in load.bytes:
            if self._partitions >= MAX_SUBJECTS:
                return
            self._partitions += 1
        load.bytes[partition] += size


def add_codec(load: Load, batch: Batch, client: str) -> None:
    """Count a batch of a client by its codec."""
    codec = codec_name(batch)
    load.codecs[codec] += 1
    if codec not in load.clients and len(load.clients) < MAX_CLIENTS:
        load.clients[codec] = client


def codec_name(batch: Batch) -> str:
    """Return the name of a batch's codec; a number for an unknown one."""
    try:
        return batch_names(batch)[1]
    except WireError:
        return str(batch.attributes & CODEC)

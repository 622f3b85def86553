"""Rules about how producers send: batches, acknowledgements, compression, retries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Final

from kafkawire.capture.exchanges.topic_ids import TopicKey
from kafkawire.display import plural

from ..finding import OTHERS, Confidence, Finding, Occurrences, Setting, Severity
from ..produced import Produced
from ..rule import MAX_SUBJECTS, Rule, Scene, Subjects, Threshold

PRODUCE: Final = "api == Produce"


class TinyBatches(Rule):
    """Many small batches."""

    name = "tiny-batches"
    description = (
        "A producer sends many batches that are far smaller than batch.size: most of the work of "
        "client and broker is per batch, not per record."
    )
    thresholds = (
        Threshold("batches", 500, "batches", "fewer say little about how a client behaves"),
        Threshold("per_second", 50, "1/s", "below, batches cost little however small they are"),
        Threshold("bytes", 1024, "B", "a sixteenth of batch.size, 16384 by default"),
    )

    def findings(self) -> Iterator[Finding]:
        """Return the clients and topics with many small batches."""
        limits = self.limits
        for subject, sent in self.scene.production.sent:
            span = sent.seen.span_seconds
            if sent.batches < limits["batches"] or not span:
                continue
            size, rate = sent.seen.bytes / sent.batches, sent.batches / span
            if size > limits["bytes"] or rate < limits["per_second"]:
                continue
            yield Finding(
                self.name,
                Severity.WARNING,
                subject,
                f"{plural(sent.batches, 'batch')[:-1]}es of {size:,.0f} bytes and "
                f"{sent.records / sent.batches:.1f} records on average, {rate:,.0f} a second",
                sent.seen,
                "The producer does not wait for records that could share a batch.",
                "Raise linger.ms to 5 or more (the default since Kafka 4.0), keep batch.size above "
                "the average, and send without waiting for each record.",
                Confidence.HIGH,
                (Setting("linger.ms"), Setting("batch.size", f"{size:,.0f} bytes used")),
                "KIP-1030",
                (PRODUCE,),
            )


class AcksMixed(Rule):
    """Producers of one topic with different acks."""

    name = "acks-mixed"
    description = (
        "One producer of a topic sends with acks=0 or acks=1 while others use acks=all: its "
        "records can be lost with a leader, those of the others cannot."
    )
    thresholds = (Threshold("requests", 10, "requests", "a few requests may be a test"),)

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._safe: set[TopicKey] = set()  # topics with acks=all
        self._unsafe: dict[int, Subjects[Occurrences]] = {
            acks: Subjects(Occurrences) for acks in (0, 1)
        }

    def produced(self, produced: Produced) -> None:
        """Note the acks of a request for a topic."""
        unsafe = self._unsafe.get(produced.acks)
        if unsafe is not None:
            unsafe.of(produced.subject).add(produced.row, produced.size)
        elif len(self._safe) < MAX_SUBJECTS:
            self._safe.add(produced.subject.topic)

    def findings(self) -> Iterator[Finding]:
        """Return the clients with fewer acks than others."""
        for acks, clients in self._unsafe.items():
            for subject, seen in clients:
                if subject.topic not in self._safe or subject == OTHERS:
                    continue
                if seen.count < self.limits["requests"]:
                    continue
                yield Finding(
                    self.name,
                    Severity.WARNING,
                    subject,
                    f"{plural(seen.count, 'request')} with acks={acks}; other producers of the "
                    "topic use acks=all",
                    seen,
                    "The producer's configuration differs from that of the others.",
                    "Set acks=all, the default of Java clients since Kafka 3.0, or accept the "
                    "loss.",
                    Confidence.HIGH,
                    (Setting("acks", str(acks)),),
                    "KIP-679",
                    (PRODUCE,),
                )


class CompressionHabits(Rule):
    """No compression, or several codecs in one topic."""

    name = "compression"
    description = (
        "The producers of a topic do not compress batches of many records, or do not agree on a "
        "codec."
    )
    thresholds = (
        Threshold("bytes", 10_000_000, "B", "compressing less saves little"),
        Threshold("records", 10, "records/batch", "batches of fewer records compress badly"),
    )

    def findings(self) -> Iterator[Finding]:
        """Return the topics without compression, and those with several codecs."""
        for subject, topic in self.scene.production.loads:
            if topic.seen.bytes < self.limits["bytes"]:
                continue
            plain = list(topic.codecs) == ["none"]
            per_batch = topic.records / max(topic.codecs.total(), 1)
            if plain and per_batch < self.limits["records"]:
                continue
            if not plain and len(topic.codecs) < 2:
                continue
            if plain:
                what = f"no compression of batches of {per_batch:,.0f} records"
            else:
                uses = [f"{codec} by {client}" for codec, client in topic.clients.items()]
                what = f"several codecs: {', '.join(uses)}"
            yield Finding(
                self.name,
                Severity.NOTICE,
                subject,
                what,
                topic.seen,
                "compression.type is not set, or not the same everywhere.",
                "Set compression.type=lz4 or zstd in the producers; leave the topic's at producer.",
                Confidence.HIGH,
                (Setting("compression.type", ", ".join(topic.codecs)),),
                terms=(PRODUCE,),
            )


class Retries:
    """The batches of a client with sequences. seen: those that were sent again."""

    __slots__ = ("batches", "seen")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.batches = 0


class ProduceRetries(Rule):
    """Batches that are sent more than once."""

    name = "produce-retries"
    description = (
        "An idempotent producer sends batches more than once: requests fail, time out, or lose "
        "their connection."
    )
    thresholds = (
        Threshold("batches", 10, "batches", "a few retries after an election are normal"),
        Threshold("share", 0.01, "of all batches", "fewer retries cost little"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._sent: Subjects[Retries] = Subjects(Retries)
        # the last sequence of each producer and partition, the one used least recently first
        self._sequences: OrderedDict[tuple[int, int, object, int], int] = OrderedDict()

    def produced(self, produced: Produced) -> None:
        """Compare the sequences of a partition's batches with the last one."""
        client: Retries | None = None
        for batch in produced.batches:
            producer_id = batch.producer_id
            if producer_id < 0 or batch.base_sequence < 0 or batch.records_count < 1:
                continue
            subject = produced.subject
            if client is None:
                client = self._sent.of(subject)
            client.batches += 1
            key = producer_id, batch.producer_epoch, subject.topic, produced.partition
            last = self._sequences.pop(key, None)
            if last is not None and batch.base_sequence <= last < batch.base_sequence + WRAPPED:
                client.seen.add(produced.row, batch.size)
            else:
                last = batch.last_sequence
            self._sequences[key] = last
        while len(self._sequences) > MAX_SUBJECTS:
            self._sequences.popitem(last=False)

    def findings(self) -> Iterator[Finding]:
        """Return the clients with many retries."""
        for subject, sent in self._sent:
            share = sent.seen.count / max(sent.batches, 1)
            if sent.seen.count < self.limits["batches"] or share < self.limits["share"]:
                continue
            yield Finding(
                self.name,
                Severity.WARNING,
                subject,
                f"{sent.seen.count:,} of {sent.batches:,} batches were sent again",
                sent.seen,
                "Produce requests fail with retriable errors, or their responses come too late.",
                "Look at other findings about this client and topic; compare request.timeout.ms "
                "with the latency of Produce, and check delivery.timeout.ms.",
                Confidence.MEDIUM,
                terms=(PRODUCE,),
            )


WRAPPED: Final = 1 << 30
"""A sequence that is so far behind the last one began again at 0."""

"""Rules about what producers put where: partitions and timestamps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from kafkawire.capture.files.blocks import NO_TIME

from ..finding import Confidence, Finding, Occurrences, Setting, Severity
from ..produced import Produced
from ..rule import MAX_SUBJECTS, Rule, Scene, Subjects, Threshold

HOUR_NS: Final = 3600 * 10**9


class Load:
    """The bytes that were produced to each partition of a topic."""

    __slots__ = ("bytes", "seen")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.bytes: Counter[int] = Counter()


class HotPartitions(Rule):
    """A partition that gets most of a topic."""

    name = "hot-partitions"
    description = (
        "One partition of a topic gets far more bytes than its share: its leader and its consumer "
        "have most of the work."
    )
    thresholds = (
        Threshold("bytes", 1_000_000, "B", "a smaller load rarely matters"),
        Threshold("partitions", 3, "partitions", "of fewer, one often has more by chance"),
        Threshold("times", 3, "times its share", "sticky partitioning evens out over a minute"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._topics: Subjects[Load] = Subjects(Load)
        self._partitions = 0

    def produced(self, produced: Produced) -> None:
        """Add the bytes of a partition."""
        load = self._topics.of(produced.topic)
        partition = produced.partition
        if partition not in load.bytes:
            if self._partitions >= MAX_SUBJECTS:
                return
            self._partitions += 1
        load.bytes[partition] += produced.size
        load.seen.add(produced.row, produced.size)

    def findings(self) -> Iterator[Finding]:
        """Return the topics with a hot partition."""
        for subject, load in self._topics:
            total, count = load.bytes.total(), len(load.bytes)
            if total < self.limits["bytes"] or count < self.limits["partitions"]:
                continue
            partition, size = load.bytes.most_common(1)[0]
            if size * count < self.limits["times"] * total:
                continue
            yield Finding(
                self.name,
                Severity.NOTICE,
                subject._replace(partition=partition),
                f"{size / total:.0%} of the bytes of {count} partitions",
                load.seen,
                "Few keys have most of the records, or a custom partitioner prefers it.",
                "Look at the keys (kafkawire decode --table records); add something to hot keys, "
                "or produce without keys.",
                Confidence.HIGH,
                (Setting("partitioner.class"),),
                terms=("api == Produce", f"partition == {partition}"),
            )


class RecordClock(Rule):
    """Records with times that cannot be true."""

    name = "record-timestamps"
    description = (
        "Records are stamped with times in the future, or long ago: retention by time deletes them "
        "too late or at once."
    )
    thresholds = (
        Threshold("batches", 10, "batches", "a few may be a test"),
        Threshold("ahead_hours", 1, "h", "the broker rejects such records since Kafka 4.0"),
        Threshold("behind_hours", 168, "h", "log.retention.hours, a week, deletes such records"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._ahead: Subjects[Occurrences] = Subjects(Occurrences)
        self._behind: Subjects[Occurrences] = Subjects(Occurrences)
        self._latest_ns = int(limits["ahead_hours"] * HOUR_NS)
        self._earliest_ns = -int(limits["behind_hours"] * HOUR_NS)

    def produced(self, produced: Produced) -> None:
        """Compare the last timestamp of each batch with the time of its packet."""
        row = produced.row
        if row.time_ns == NO_TIME:
            return
        for batch in produced.batches:
            if batch.max_timestamp < 0:
                continue
            ahead_ns = batch.max_timestamp * 1_000_000 - row.time_ns
            if ahead_ns > self._latest_ns:
                self._ahead.of(produced.subject).add(row, batch.size)
            elif ahead_ns < self._earliest_ns:
                self._behind.of(produced.subject).add(row, batch.size)

    def findings(self) -> Iterator[Finding]:
        """Return the producers whose records have such times."""
        for text, clients in (("in the future", self._ahead), ("long ago", self._behind)):
            for subject, seen in clients:
                if seen.count < self.limits["batches"]:
                    continue
                yield Finding(
                    self.name,
                    Severity.NOTICE,
                    subject,
                    f"{seen.count:,} batches with timestamps {text}",
                    seen,
                    "The clock of the producer or of the capture is wrong, the application sets "
                    "timestamps (in seconds or microseconds?), or old data is copied.",
                    "Check the clock and the unit, which is milliseconds; "
                    "message.timestamp.type=LogAppendTime lets the broker set them.",
                    Confidence.MEDIUM,
                    (Setting("message.timestamp.type"),),
                    "KIP-937, KIP-1030",
                    ("api == Produce",),
                )


class Offset:
    """By how much the timestamps of a client's batches differ from the times of their packets."""

    __slots__ = ("highest_ns", "lowest_ns", "seen")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.lowest_ns = self.highest_ns = 0


class ClockOffset(Rule):
    """Producers whose clock differs."""

    name = "clock-offset"
    description = (
        "The timestamps of all records of a producer differ from the times of the capture by the "
        "same amount: its clock, or that of the capture, is wrong."
    )
    thresholds = (
        Threshold("batches", 20, "batches", "a few may be a test"),
        Threshold("seconds", 2, "s", "clocks that are synchronised differ by milliseconds"),
        Threshold("behind", 30, "s", "records may wait in the producer for as long"),
        Threshold("spread", 2, "s", "a larger one is not due to a clock"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._clients: Subjects[Offset] = Subjects(Offset)

    def produced(self, produced: Produced) -> None:
        """Compare the last timestamp of each batch with the time of its packet."""
        row = produced.row
        if row.time_ns == NO_TIME:
            return
        client: Offset | None = None
        for batch in produced.batches:
            if batch.max_timestamp < 0:
                continue
            ahead_ns = batch.max_timestamp * 1_000_000 - row.time_ns
            if client is None:
                client = self._clients.of(produced.subject._replace(topic=None))
            if not client.seen.count:
                client.lowest_ns = client.highest_ns = ahead_ns
            client.lowest_ns = min(client.lowest_ns, ahead_ns)
            client.highest_ns = max(client.highest_ns, ahead_ns)
            client.seen.add(row, batch.size)

    def findings(self) -> Iterator[Finding]:
        """Return the producers whose clock is ahead or behind."""
        for subject, client in self._clients:
            ahead, behind = client.lowest_ns / 1e9, -client.highest_ns / 1e9
            if client.seen.count < self.limits["batches"]:
                continue
            if (client.highest_ns - client.lowest_ns) / 1e9 > self.limits["spread"]:
                continue
            if ahead < self.limits["seconds"] and behind < self.limits["behind"]:
                continue
            yield Finding(
                self.name,
                Severity.NOTICE,
                subject,
                f"its clock is {max(ahead, behind):,.1f} s {'ahead' if ahead > 0 else 'behind'}",
                client.seen,
                "The clock of the producer or of the capture is not synchronised.",
                "Synchronise the clocks (NTP); message.timestamp.type=LogAppendTime does not "
                "depend on those of producers.",
                Confidence.MEDIUM,
                (Setting("message.timestamp.type"),),
                terms=("api == Produce",),
            )

"""Rules about how producers spread records over partitions, by keys and without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Final

from kafkawire.display import plural

from ..finding import Confidence, Finding, Occurrences, Setting, Severity
from ..heavy_hitters import HeavyHitters
from ..produced import Keys
from ..rule import MAX_SUBJECTS, Rule, Scene, Subjects, Threshold
from .producing import PRODUCE

LONGEST_KEY: Final = 64
"""Longer keys are distinguished by their hashes, so that a sketch is small."""
DIGEST: Final = b"sha256:"

NAMED_KEYS: Final = 3
"""Keys that a text names."""
SHOWN: Final = 40
"""Characters of a key that a text has."""


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

    def findings(self) -> Iterator[Finding]:
        """Return the topics with a hot partition."""
        for subject, load in self.scene.production.loads:
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


class KeySketch:
    """The most frequent keys of a topic. top, seen: the first of them, and batches that have it."""

    __slots__ = ("partitions", "seen", "sketch", "top")

    def __init__(self) -> None:
        self.sketch = HeavyHitters()
        self.partitions: set[int] = set()
        self.top = b""
        self.seen = Occurrences()

    def add(self, keys: Keys, counts: dict[bytes, int]) -> None:
        """Add the keys of a batch."""
        self.sketch.add(counts, keys.weight)
        (top, _), *_ = self.sketch.largest(1) or ((b"", 0),)
        if top != self.top:
            self.top, self.seen = top, Occurrences()
        if top in counts:
            self.seen.add(keys.produced.row, keys.size)


class HotKeys(Rule):
    """Keys that have most records of a topic."""

    name = "hot-keys"
    description = (
        "A few keys have a large part of the records of a topic, so that their partitions get far "
        "more than the others, however many there are. Keys are counted in a sample of the "
        "batches, by a sketch of 64 keys; the finding names the keys."
    )
    thresholds = (
        Threshold("records", 10_000, "records", "with keys; fewer hardly load a broker"),
        Threshold("partitions", 3, "partitions", "with fewer, keys hardly spread the load"),
        Threshold("share", 0.1, "of the records", "a sample is not exact about rarer keys"),
        Threshold("times", 2, "times the share of a partition", "keys are never quite even"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._topics: Subjects[KeySketch] = Subjects(KeySketch)

    def keys(self, keys: Keys) -> None:
        """Add the keys of a batch to those of its topic."""
        counts = {sketched(key): count for key, count in keys.counts.items() if key is not None}
        if counts:
            topic = self._topics.of(keys.produced.topic)
            topic.add(keys, counts)
            if len(topic.partitions) < self.limits["partitions"]:
                topic.partitions.add(keys.produced.partition)

    def findings(self) -> Iterator[Finding]:
        """Return the topics with such keys."""
        for subject, topic in self._topics:
            weight = topic.sketch.weight
            count = max(self.scene.partitions.of(subject.topic), len(topic.partitions))
            if weight < self.limits["records"] or count < self.limits["partitions"]:
                continue
            least = max(self.limits["share"], self.limits["times"] / count)
            hot = [key for key, of_key in topic.sketch.largest(10) if of_key >= least * weight]
            if not hot:
                continue
            share = sum(of_key for _, of_key in topic.sketch.largest(len(hot))) / weight
            more = f" and {len(hot) - NAMED_KEYS} more" if len(hot) > NAMED_KEYS else ""
            names = ", ".join(map(shown, hot[:NAMED_KEYS]))
            has, several = ("have", "s") if len(hot) > 1 else ("has", "")
            yield Finding(
                self.name,
                Severity.NOTICE,
                subject,
                f"the key{several} {names}{more} {has} about {share:.0%} of the records with keys, "
                f"of {plural(count, 'partition')}",
                topic.seen,
                "Records with the same key go to the same partition, and these keys are frequent.",
                "Add something to these keys (a part of the value, a number from 0 to n) where "
                "their order does not matter, choose another key, or produce without keys; more "
                "partitions do not help.",
                Confidence.HIGH,
                (Setting("partitioner.class"), Setting("partitioner.ignore.keys")),
                terms=(PRODUCE,),
            )


class Unkeyed:
    """The bytes of records without keys that a client produced to each partition of a topic."""

    __slots__ = ("bytes", "seen")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.bytes: Counter[int] = Counter()


class UnkeyedSkew(Rule):
    """A producer whose records without keys go to one partition."""

    name = "unkeyed-skew"
    description = (
        "A producer sends its records without keys to one partition of a topic, for long: its "
        "partitioner is there to spread them. Bytes are estimated from a sample of the batches."
    )
    thresholds = (
        Threshold("bytes", 1_000_000, "B", "the partition changes after batch.size, 16384"),
        Threshold("seconds", 30, "s", "a shorter time is a burst"),
        Threshold("partitions", 2, "partitions", "with one, a producer has none to choose"),
        Threshold("share", 0.9, "of the bytes", "a partitioner evens out, if not at once"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._clients: Subjects[Unkeyed] = Subjects(Unkeyed)
        self._partitions = 0

    def keys(self, keys: Keys) -> None:
        """Add the bytes of the records without keys."""
        count = keys.counts[None]
        if not count:
            return
        produced = keys.produced
        client, partition = self._clients.of(produced.subject), produced.partition
        if partition not in client.bytes:
            if self._partitions >= MAX_SUBJECTS:
                return
            self._partitions += 1
        size = keys.size * count // keys.counts.total()
        client.bytes[partition] += keys.weight * size
        client.seen.add(produced.row, size)

    def findings(self) -> Iterator[Finding]:
        """Return the clients and topics with one partition."""
        limits = self.limits
        for subject, client in self._clients:
            total, seconds = client.bytes.total(), client.seen.span_seconds
            count = max(self.scene.partitions.of(subject.topic), len(client.bytes))
            if total < limits["bytes"] or seconds < limits["seconds"]:
                continue
            partition, size = client.bytes.most_common(1)[0]
            if count < limits["partitions"] or size < limits["share"] * total:
                continue
            yield Finding(
                self.name,
                Severity.NOTICE,
                subject._replace(partition=partition),
                f"{size / total:.0%} of the bytes without keys go to 1 of "
                f"{plural(count, 'partition')}, for {seconds:,.0f} s",
                client.seen,
                "The application chooses the partition, a custom partitioner prefers it, or the "
                "client keeps a partition for long.",
                "Choose no partition in the application; leave partitioner.class unset (Java, 3.3 "
                "or later) and partitioner at consistent_random (librdkafka).",
                Confidence.LOW,
                (Setting("partitioner.class"), Setting("partitioner")),
                "KIP-480, KIP-794",
                (PRODUCE, f"partition == {partition}"),
            )


def sketched(key: bytes) -> bytes:
    """Return a key as a sketch has it: a hash, if it is long."""
    return key if len(key) <= LONGEST_KEY else DIGEST + sha256(key).hexdigest().encode()


def shown(key: bytes) -> str:
    """Return a key in quotes, cut if it is long."""
    text = key.decode(errors="backslashreplace")
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")

"""Rules about partitions and keys: a story that has the trouble, and one that nearly has it."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafkawire.records import BatchBuilder, Compression, RecordBatches
from kafkawire.reports.diagnosis import Subject
from kafkawire.reports.diagnosis.feeds import (
    BATCHES_PER_RATE,
    FEW_BYTES,
    FEW_RECORDS,
    KeyFeed,
    keys_of,
)
from kafkawire.reports.diagnosis.heavy_hitters import COUNTERS, HeavyHitters
from kafkawire.reports.diagnosis.produced import Keys, Produced
from kafkawire.reports.diagnosis.rules.partitioning import shown, sketched

from .stories import LZ4, NOW_MS, Story, rules

NONE = Compression.NONE


def keyed(
    keys: Iterable[bytes | None], after_ms: int = 0, size: int = 10, codec: Compression = LZ4
) -> bytes:
    builder = BatchBuilder(compression=codec)
    for key in keys:
        builder.append(key, bytes(size), NOW_MS + after_ms)
    return builder.build()


def partitioned(count: int, topic: str = "orders") -> Story:
    """A story that begins with a Metadata response about a topic with so many partitions."""
    partitions = [{"partitionIndex": one, "leaderId": 1} for one in range(count)]
    topics = [{"name": topic, "partitions": partitions}]
    return Story().exchange("Metadata", 5, response={"topics": topics})


def with_hot_keys(hot: list[bytes], share: float, partitions: int, records: int = 17_000) -> Story:
    story, rng = partitioned(partitions), Random(7)
    for number in range(records // 100):
        keys = [
            rng.choice(hot) if rng.random() < share else b"customer-%d" % rng.randrange(10_000)
            for _ in range(100)
        ]
        story.produce(b64encode(keyed(keys, number)).decode(), partition=number % partitions)
        story.wait(1)
    return story


def test_a_key_with_much_of_a_topic(tmp_path: Path) -> None:
    by_rule = rules(with_hot_keys([b"guest"], 0.4, 6), tmp_path)
    assert list(by_rule) == ["hot-keys"]
    one = by_rule["hot-keys"]
    assert one["subject"] == {"topic": "orders"}
    assert one["what"].startswith("the key 'guest' has about 4")
    assert one["what"].endswith("of the records with keys, of 6 partitions")


def test_several_keys_with_most_of_a_topic(tmp_path: Path) -> None:
    hot = [b"de", b"fr", b"it", b"nl"]
    what = rules(with_hot_keys(hot, 1, 12), tmp_path)["hot-keys"]["what"]
    assert what.endswith(" and 1 more have about 100% of the records with keys, of 12 partitions")


def test_keys_that_are_even_few_records_or_few_partitions(tmp_path: Path) -> None:
    assert rules(with_hot_keys([b"guest"], 0.3, 6), tmp_path) == {}
    assert rules(with_hot_keys([b"guest"], 0.08, 50), tmp_path) == {}
    assert rules(with_hot_keys([b"guest"], 0.9, 2), tmp_path) == {}
    assert rules(with_hot_keys([b"guest"], 0.4, 6, records=14_500), tmp_path) == {}


def unkeyed(
    partitions: int, to: int = 1, batches: int = 150, key: bytes | None = None, every: float = 0.5
) -> Story:
    """Send batches of 16 kB to the first `to` of the partitions of a topic, in turn."""
    story = partitioned(partitions)
    for number in range(batches):
        records = keyed([key] * 16, number, size=1000, codec=NONE)
        story.produce(b64encode(records).decode(), partition=number % to).wait(every)
    return story


def test_records_without_keys_in_one_partition(tmp_path: Path) -> None:
    by_rule = rules(unkeyed(6), tmp_path)
    assert list(by_rule) == ["unkeyed-skew"]
    one = by_rule["unkeyed-skew"]
    assert one["subject"] == {"client": "tester", "topic": "orders", "partition": 0}
    assert one["what"].startswith("100% of the bytes without keys go to 1 of 6 partitions, for 4")


def test_records_with_keys_spread_short_few_or_without_choice(tmp_path: Path) -> None:
    assert rules(unkeyed(6, to=2), tmp_path) == {}
    assert rules(unkeyed(1), tmp_path) == {}
    assert rules(unkeyed(6, key=b"k"), tmp_path) == {}
    assert rules(unkeyed(6, batches=110), tmp_path) == {}
    assert rules(unkeyed(6, every=0.1), tmp_path) == {}


def test_a_sketch_counts_within_its_error() -> None:
    rng = Random(3)
    sketch, counts = HeavyHitters(), Counter[bytes]()
    for _ in range(300):
        batch = Counter(b"%d" % min(int(rng.paretovariate(0.7)), 5000) for _ in range(100))
        weight = rng.choice((1, 2, 4))
        sketch.add(batch, weight)
        counts.update({key: count * weight for key, count in batch.items()})
        assert len(sketch) <= COUNTERS
    assert sketch.weight == counts.total()
    assert 0 < sketch.error <= sketch.weight / COUNTERS
    for key, count in sketch.largest(COUNTERS):
        assert counts[key] - sketch.error <= count <= counts[key]
    for key, count in counts.items():
        assert key in sketch or count <= sketch.error


def test_a_sketch_without_more_values_than_counters_is_exact() -> None:
    sketch = HeavyHitters()
    sketch.add({b"%d" % one: one + 1 for one in range(COUNTERS)})
    assert (sketch.error, sketch.largest(1)) == (0, [(b"63", COUNTERS)])
    sketch.add({b"more": 1})
    assert (sketch.error, len(sketch)) == (1, COUNTERS - 1)


def produced(data: bytes, partition: int = 0) -> Produced:
    unused: Any = None
    batches = list(RecordBatches(data).batches())
    topic = Subject(topic="orders")
    records = sum(one.records_count for one in batches)
    client = Subject()
    return Produced(
        unused, unused, topic, client, topic, partition, -1, batches, records, len(data)
    )


MANY = produced(keyed([None] * (FEW_RECORDS + 1)))


def sampled(batches: int, first: Produced = MANY) -> list[Keys]:
    """Sample the keys of batches, one after the other to each of 4 partitions, after a first."""
    samples: list[Keys] = []
    feed = KeyFeed([samples.append])
    feed.produced(first)
    samples.clear()
    for number in range(batches):
        partition = number % 4
        feed.produced(produced(keyed([b"%d" % partition], number), partition))
    return samples


def test_the_batches_of_which_keys_are_read_are_a_fair_sample() -> None:
    samples = sampled(5000)
    assert len(samples) < BATCHES_PER_RATE * 7
    assert sum(one.weight for one in samples) == pytest.approx(5000, rel=0.1)
    weights = Counter[int]()
    for one in samples:
        weights[one.produced.partition] += one.weight
    assert all(weight == pytest.approx(1250, rel=0.2) for weight in weights.values())


def test_few_batches_are_all_read_and_the_work_grows_slowly() -> None:
    assert len(sampled(BATCHES_PER_RATE - 1)) == BATCHES_PER_RATE - 1
    assert len(sampled(3000)) - len(sampled(1500)) < 1.5 * BATCHES_PER_RATE


def test_no_keys_of_a_topic_are_read_before_it_has_many_records_or_bytes() -> None:
    few, bytes_alone = keyed([None] * 5), keyed([None], size=FEW_BYTES + 1, codec=NONE)
    assert sampled(FEW_RECORDS - 5, produced(few)) == []
    assert len(sampled(FEW_RECORDS - 4, produced(few))) == 1
    assert len(sampled(3, produced(bytes_alone))) == 3


def test_keys_of_large_and_of_corrupt_batches() -> None:
    (batch,) = produced(keyed([b"a"] * 3, size=6 << 20)).batches
    assert keys_of(batch) == {}
    data = keyed([b"a", None, b"a"])
    assert keys_of(produced(data).batches[0]) == {b"a": 2, None: 1}
    assert keys_of(produced(data[:-1] + bytes([data[-1] ^ 1])).batches[0]) == {}


def test_long_keys_take_little_memory() -> None:
    assert sketched(b"k" * 64) == b"k" * 64
    long = {sketched(b"k" * 1_000_000), sketched(b"k" * 1_000_001)}
    assert {len(key) for key in long} == {71}
    assert shown(b"\xff" + b"k" * 60) == "'\\\\xff" + "k" * 36 + "...'"

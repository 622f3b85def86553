"""Which partition a record goes to."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from kafkawire.client.cluster import Partition, Topic
from kafkawire.client.producer.murmur2 import murmur2, partition_of_key
from kafkawire.client.producer.sticky import Sticky

JAVA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""What Java's Utils.murmur2 gives (a signed int there); tests/client/real asks librdkafka too."""


@pytest.mark.parametrize("key", JAVA)
def test_murmur2_is_javas(key: bytes) -> None:
    assert murmur2(key) == JAVA[key] & 0xFFFFFFFF


def test_keys_are_taken_without_their_sign() -> None:
    assert partition_of_key(b"21", 1000) == (-973932308 & 0x7FFFFFFF) % 1000


def topic(leaders: list[int]) -> Topic:
    return Topic(
        "t",
        partitions={index: Partition("t", index, leader) for index, leader in enumerate(leaders)},
    )


def run(sticky: Sticky, to: Topic, records: int, size: int, queued: dict[int, int]) -> list[int]:
    chosen = []
    for _ in range(records):
        at = sticky.partition
        if at is None or not sticky.stays(to.partitions, size):
            at = sticky.choose(to, size, lambda _, index: queued.get(index, 0))
        chosen.append(at)
    return chosen


def test_records_stick_to_a_partition_for_a_batch() -> None:
    chosen = run(Sticky(1000, True, Random(1).random), topic([1, 1, 1, 1]), 40, 100, {})
    assert all(len(set(chosen[at : at + 10])) == 1 for at in range(0, 40, 10))
    assert len(set(chosen)) > 1


def test_the_only_partition_is_never_left_until_there_are_others() -> None:
    sticky = Sticky(1000, True, Random(1).random)
    sticky.choose(topic([1]), 100, lambda _, __: 0)
    assert all(sticky.stays(topic([1]).partitions, 100) for _ in range(40))
    assert not sticky.stays(topic([1, 1]).partitions, 100)


def test_equal_queues_get_equal_bytes() -> None:
    seen = Counter(run(Sticky(100, True, Random(2).random), topic([1] * 4), 20_000, 100, {}))
    assert all(4700 < count < 5300 for count in seen.values())


def test_long_queues_are_avoided_unless_that_is_turned_off() -> None:
    queued = {0: 9, 1: 0}
    adaptive = Counter(run(Sticky(1, True, Random(3).random), topic([1, 1]), 11_000, 1, queued))
    assert 800 < adaptive[0] < 1200  # 1 against 10
    even = Counter(run(Sticky(1, False, Random(3).random), topic([1, 1]), 11_000, 1, queued))
    assert 5200 < even[0] < 5800


def test_partitions_without_a_leader_are_passed_over_while_there_are_others() -> None:
    assert set(run(Sticky(1, True, Random(4).random), topic([-1, 3, -1]), 50, 1, {})) == {1}
    assert set(run(Sticky(1, True, Random(4).random), topic([-1, -1]), 50, 1, {})) == {0, 1}

"""Sequence numbers of one partition: without gaps, also where they begin again."""

from __future__ import annotations

from itertools import count

import pytest

from kafkawire.client.producer.batch import Batch
from kafkawire.client.producer.partition_queue import SEQUENCES, PartitionQueue, ProducerIdAndEpoch
from kafkawire.records import Compression

ME = ProducerIdAndEpoch(7, 0)
NUMBERS = count()


def batch(records: int) -> Batch:
    made = Batch((next(NUMBERS),), Compression.NONE, 0.0)
    for token in range(records):
        made.append(token, None, b"v", 0, ())
    return made


def sent(queue: PartitionQueue, records: int) -> Batch:
    """Number a batch of so many records and send it."""
    queue.add(batch(records))
    assert queue.assign_sequences(ME)
    return queue.send()


@pytest.mark.parametrize("before_the_end", [0, 1, 2, 3])
def test_numbers_begin_again_behind_the_last(before_the_end: int) -> None:
    """As brokers count (KIP-98): 2147483647 is followed by 0, in a batch or between two."""
    queue = PartitionQueue("t", 0)
    assert sent(queue, 1).sequence == 0
    queue._next_sequence = (SEQUENCES - before_the_end) % SEQUENCES
    numbers = [sent(queue, 2).sequence for _ in range(3)]
    start = numbers[0]
    assert numbers == [start, (start + 2) % SEQUENCES, (start + 4) % SEQUENCES]
    assert all(0 <= each < SEQUENCES for each in numbers)


def test_halves_of_a_batch_have_its_numbers_over_the_end_too() -> None:
    queue = PartitionQueue("t", 0)
    sent(queue, 1)
    queue._next_sequence = SEQUENCES - 2
    whole = sent(queue, 4)
    queue.split(whole)
    assert [each.sequence for each in queue.queued] == [SEQUENCES - 2, 0]
    assert [each.builder.base_sequence for each in queue.queued] == [SEQUENCES - 2, 0]

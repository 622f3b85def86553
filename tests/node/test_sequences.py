"""The lowest sequences of batches whose verification begins: how many are kept, and how long."""

from __future__ import annotations

from kafkawire.broker.transactions.sequences import First, LowestSequences
from kafkawire.metadata import TopicIdPartition

KEY = TopicIdPartition(bytes(16), 0)


def batch(sequence: int, producer_id: int = 1, epoch: int = 0) -> First:
    return First(KEY, producer_id, epoch, sequence)


def test_a_batch_is_later_than_the_lowest_of_its_epoch() -> None:
    lowest = LowestSequences(10, 60.0)
    lowest.note(batch(5), 0.0)
    lowest.note(batch(7), 1.0)
    assert (lowest.is_later(batch(7), 1.0), lowest.is_later(batch(5), 1.0)) == (True, False)
    lowest.note(batch(3), 2.0)
    assert lowest.is_later(batch(5), 2.0)
    assert not lowest.is_later(batch(5, epoch=1), 2.0)
    lowest.note(batch(0, epoch=1), 3.0)
    lowest.note(batch(2, epoch=0), 3.0)
    assert lowest.is_later(batch(1, epoch=1), 3.0)
    lowest.forget(KEY, 1)
    assert not lowest.is_later(batch(1, epoch=1), 3.0)


def test_they_are_kept_for_a_time() -> None:
    lowest = LowestSequences(10, 60.0)
    lowest.note(batch(5), 0.0)
    assert lowest.is_later(batch(6), 59.0)
    assert not lowest.is_later(batch(6), 60.0)
    lowest.note(batch(9), 61.0)
    assert lowest.is_later(batch(10), 61.0)


def test_those_noted_first_make_room() -> None:
    lowest = LowestSequences(2, 60.0)
    for producer_id in (1, 2, 3):
        lowest.note(batch(0, producer_id), 0.0)
    assert [lowest.is_later(batch(1, each), 0.0) for each in (1, 2, 3)] == [False, True, True]

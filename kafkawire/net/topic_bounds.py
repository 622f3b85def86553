"""Where reading a topic begins and ends: an offset, records before the end, or a time."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final, NamedTuple

from ..client.arguments import INT64, whole
from ..client.consumer import TopicPartition
from ..errors import InvalidValue
from .consumer import Consumer

MILLISECONDS: Final = 1000


class Bound(NamedTuple):
    """A bound in any partition.

    number: an offset; with `before_end` how many records before the end; with `is_time` a time, in
    milliseconds since the epoch, whose first record not older it is.
    """

    number: int = 0
    before_end: bool = False
    is_time: bool = False


EARLIEST: Final = Bound()
LATEST: Final = Bound(before_end=True)


def bound_of(value: object, name: str, default: Bound) -> Bound:
    """Return a bound: None is the default, negative numbers count records before the end.

    Raises InvalidValue, OutOfRange. A datetime without a zone is local time.
    """
    if value is None:
        return default
    if isinstance(value, datetime):
        return Bound(round(value.timestamp() * MILLISECONDS), is_time=True)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidValue(f"expected int or datetime, got {type(value).__name__}", name)
    number = whole(value, name, -INT64, INT64)
    return Bound(-number, before_end=True) if number < 0 else Bound(number)


async def find_offsets(
    consumer: Consumer, bound: Bound, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """Find a bound in each partition, between its first offset and its end."""
    ends = await consumer.end_offsets(*partitions)
    if bound == LATEST:
        return ends
    firsts = await consumer.beginning_offsets(*partitions)
    if bound.is_time:
        later = await consumer.offsets_for_times(dict.fromkeys(partitions, bound.number))
        offsets = {each: ends[each] if at is None else at.offset for each, at in later.items()}
    elif bound.before_end:
        offsets = {each: ends[each] - bound.number for each in partitions}
    else:
        offsets = dict.fromkeys(partitions, bound.number)
    return {each: min(max(offsets[each], firsts[each]), ends[each]) for each in partitions}

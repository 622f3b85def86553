"""Checks the events of a consumer's user, before anything changes.

An event that passes can be encoded in every request that follows from it; an invalid event
raises at the call and has no effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from ...errors import InvalidValue
from ..arguments import (
    INT16,
    INT32,
    INT64,
    seconds,
    text,
    topic_names,
    topic_partition,
    topic_partitions,
    whole,
)
from . import events
from .partitions import NO_EPOCH, OffsetAndMetadata, SubscriptionPattern, TopicPartition

MAX_METADATA: Final = INT16
"""Bytes of committed metadata: a string with a 16-bit length before OffsetCommit version 8."""


def partition_of(value: object, name: str = "partition") -> TopicPartition:
    """Return a partition. Raises InvalidValue, OutOfRange."""
    return TopicPartition(*topic_partition(value, name))


def partitions_of(value: object) -> tuple[TopicPartition, ...]:
    """Return several partitions. Raises InvalidValue, OutOfRange."""
    return tuple(TopicPartition(*each) for each in topic_partitions(value))


def offset_of(value: object, name: str = "offset") -> OffsetAndMetadata:
    """Return an offset, given as a number or an OffsetAndMetadata.

    Raises InvalidValue, OutOfRange.
    """
    if not isinstance(value, OffsetAndMetadata):
        return OffsetAndMetadata(whole(value, name, 0, INT64))
    return OffsetAndMetadata(
        whole(value.offset, name, 0, INT64),
        whole(value.leader_epoch, f"{name}.leader_epoch", NO_EPOCH, INT32),
        text(value.metadata, f"{name}.metadata", longest=MAX_METADATA),
    )


def offsets_of(value: object) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return offsets by partition. Raises InvalidValue, OutOfRange."""
    return {
        partition: offset_of(each, f"offsets[{partition}]")
        for partition, each in _by_partition(value).items()
    }


def times_of(value: object) -> dict[TopicPartition, int]:
    """Return timestamps by partition; negative ones have a meaning. Raises as `offsets_of`."""
    return {
        partition: whole(each, f"times[{partition}]", -INT64 - 1, INT64)
        for partition, each in _by_partition(value).items()
    }


def topics_of(value: object) -> tuple[str, ...] | re.Pattern[str] | SubscriptionPattern:
    """Return topics by name, or a pattern of names. Raises InvalidValue, OutOfRange."""
    if isinstance(value, SubscriptionPattern):
        pattern = text(value.pattern, "topics", longest=INT16)
        if not pattern:
            raise InvalidValue("the empty string is not a valid pattern", "topics")
        return SubscriptionPattern(pattern)
    if isinstance(value, re.Pattern):
        if not isinstance(value.pattern, str):
            raise InvalidValue("expected a pattern of str, got one of bytes", "topics")
        return value
    return topic_names(value)


def _by_partition(value: object) -> dict[TopicPartition, object]:
    if not isinstance(value, Mapping):
        raise InvalidValue(f"expected a mapping by partition, got {type(value).__name__}")
    return {partition_of(partition): each for partition, each in value.items()}


def _seek(event: events.Seek) -> events.Seek:
    committed = offset_of(OffsetAndMetadata(event.offset, event.leader_epoch))
    return events.Seek(partition_of(event.partition), committed.offset, committed.leader_epoch)


def _seek_to(event: events.SeekTo) -> events.SeekTo:
    whole(event.policy.ms, "timestamp_ms", -INT64 - 1, INT64)
    return replace(event, partitions=partitions_of(event.partitions))


def _poll(event: events.Poll) -> events.Poll:
    if event.max_records is not None:
        whole(event.max_records, "max_records", 1, INT32)
    return event


def _commit(event: events.Commit) -> events.Commit:
    offsets = None if event.offsets is None else offsets_of(event.offsets)
    return replace(event, offsets=offsets, timeout_s=seconds(event.timeout_s))


def _get_committed(event: events.GetCommitted) -> events.GetCommitted:
    partitions = partitions_of(event.partitions)
    return replace(event, partitions=partitions, timeout_s=seconds(event.timeout_s))


def _get_offsets(event: events.GetOffsets) -> events.GetOffsets:
    return replace(event, times=times_of(event.times), timeout_s=seconds(event.timeout_s))


def _close(event: events.Close) -> events.Close:
    seconds(event.timeout_s)
    return event


CHECKS: Final[Mapping[type, Callable[[Any], Any]]] = {
    events.Subscribe: lambda event: replace(event, topics=topics_of(event.topics)),
    events.Assign: lambda event: events.Assign(partitions_of(event.partitions)),
    events.Seek: _seek,
    events.SeekTo: _seek_to,
    events.Pause: lambda event: events.Pause(partitions_of(event.partitions)),
    events.Resume: lambda event: events.Resume(partitions_of(event.partitions)),
    events.Poll: _poll,
    events.Commit: _commit,
    events.GetCommitted: _get_committed,
    events.GetOffsets: _get_offsets,
    events.GetPosition: lambda event: replace(event, partition=partition_of(event.partition)),
    events.Close: _close,
}
"""Event type -> check. Other events have no values to check."""


def checked(event: events.ConsumerEvent) -> events.ConsumerEvent:
    """Return the event with its values checked."""
    check = CHECKS.get(type(event))
    return event if check is None else check(event)

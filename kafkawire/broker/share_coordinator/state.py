"""The stored state of a share partition: its start offset, and what became of records after it.

Invariant: batches are in order and do not overlap; none is before the start offset.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple, Protocol, TypeVar

UNINITIALIZED: Final = -1
"""The start offset of a share partition that nobody has read; in a write: it stays as it is."""
UNKNOWN_COUNT: Final = -1
"""The number of completed deliveries that a write before KIP-1226 does not have."""


class ShareKey(NamedTuple):
    """A share partition: a partition as one share group reads it."""

    group_id: str
    topic_id: bytes
    partition: int


class StateBatch(NamedTuple):
    """Records with one state. last_offset: inclusive."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


@dataclass(frozen=True, slots=True)
class ShareState:
    """The state of a share partition.

    snapshot_epoch: counts its snapshots in the log. state_epoch: of the group when it was
    initialized. leader_epoch: of the leader that read or wrote it last. delivery_complete_count:
    records after the start offset that are not delivered any more. created, written: in
    milliseconds since 1970.
    """

    snapshot_epoch: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = UNINITIALIZED
    delivery_complete_count: int = UNKNOWN_COUNT
    created: int = 0
    written: int = 0
    batches: tuple[StateBatch, ...] = ()

    def updated(self, update: StateUpdate) -> ShareState:
        """Return what it is after an update."""
        start = self.start_offset if update.start_offset == UNINITIALIZED else update.start_offset
        return replace(
            self,
            leader_epoch=self.leader_epoch if update.leader_epoch < 0 else update.leader_epoch,
            start_offset=start,
            delivery_complete_count=update.delivery_complete_count,
            batches=combined((*self.batches, *update.batches), start),
        )


class StateUpdate(NamedTuple):
    """A change of a share partition. start_offset, leader_epoch: -1 if they do not change."""

    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


class _Batch(Protocol):
    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


B = TypeVar("B", bound=_Batch)


def state_batches(batches: Iterable[B]) -> tuple[StateBatch, ...]:
    """Return the batches of a message or a record."""
    return tuple(
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in batches
    )


def combined(batches: Iterable[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    """Combine batches that may overlap, as Kafka's PersisterStateBatchCombiner.

    Of several states of a record the one with the highest delivery count is valid, then the one
    with the highest number. Batches next to each other with the same state become one.
    """
    ordered = sorted(
        (max(each.first_offset, start_offset), each)
        for each in batches
        if each.last_offset >= start_offset and each.last_offset >= each.first_offset
    )
    bounds = [first for first, _ in ordered] + [each.last_offset + 1 for _, each in ordered]
    merged: list[StateBatch] = []
    active: list[tuple[tuple[int, int], int]] = []
    """A heap of (minus delivery count, minus state), last offset."""
    heapify(bounds)
    index = 0
    while bounds:
        first = heappop(bounds)
        while bounds and bounds[0] == first:
            heappop(bounds)
        while index < len(ordered) and ordered[index][0] == first:
            batch = ordered[index][1]
            rank = (-batch.delivery_count, -batch.delivery_state)
            heappush(active, (rank, batch.last_offset))
            index += 1
        while active and active[0][1] < first:
            heappop(active)
        if active and bounds:
            (count, state), _ = active[0]
            _append(merged, StateBatch(first, bounds[0] - 1, -state, -count))
    return tuple(merged)


def _append(batches: list[StateBatch], batch: StateBatch) -> None:
    last = batches[-1] if batches else None
    if last is not None and last.last_offset + 1 == batch.first_offset and last[2:] == batch[2:]:
        batches[-1] = last._replace(last_offset=batch.last_offset)
    else:
        batches.append(batch)

"""Acquires records of a share partition for a member (KIP-932, KIP-1206).

Invariant: a record has one member at a time. Records that are delivered for the last time are
delivered alone, so that one which no member can process does not archive others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from .in_flight import InFlight, Run
from .states import RecordState, Trigger

MIN_THROTTLED: Final = 2
"""The lowest delivery count from which on fewer records are delivered at a time."""


class LogBatch(NamedTuple):
    """A record batch of the log. last: inclusive."""

    first: int
    last: int


class Acquired(NamedTuple):
    """Records that a member has acquired. last: inclusive. deliveries: with this one."""

    first: int
    last: int
    deliveries: int


class Wanted(NamedTuple):
    """What a member wants. batch_size: records of an acquired range.

    most: records; strict: no more than that, else whole batches (KIP-1206).
    """

    member_id: str
    most: int
    batch_size: int
    strict: bool


class Limits(NamedTuple):
    """The limits of the share partition. lock_ends: of what is acquired now."""

    delivery_limit: int
    max_locks: int
    lock_ends: float


class Acquisition:
    """One acquisition. batches: those that were read from `offset` on, at least one."""

    def __init__(
        self,
        in_flight: InFlight,
        wanted: Wanted,
        limits: Limits,
        offset: int,
        batches: Sequence[LogBatch],
    ) -> None:
        self._in_flight = in_flight
        self._wanted = wanted
        self._limits = limits
        self._offset = offset
        self._batches = batches
        self._throttled_from = max(MIN_THROTTLED, -(-limits.delivery_limit // 2))
        self._left = 0
        self._acquired: list[Acquired] = []

    def run(self) -> list[Acquired]:
        """Acquire what is available."""
        in_flight, wanted = self._in_flight, self._wanted
        first, last = max(self._batches[0].first, in_flight.start), self._batches[-1].last
        self._remove_missing(first)
        self._left = min(wanted.most, self._limits.max_locks - in_flight.count)
        if self._left <= 0:
            # full: only what was released before the next offset
            last = min(last, in_flight.next_offset - 1)
            self._left = min(wanted.most, last - self._offset + 1)
        while first <= last and self._left > 0:
            run = next(iter(in_flight.between(first, last)), None)
            if run is None or run.first > first:
                end = last if run is None else run.first - 1
                self._acquire_unread(first, end)
                first = end + 1
            else:
                if run.is_acquirable and not self._acquire_again(run, first, last):
                    break
                first = run.last + 1
        return self._acquired

    def _remove_missing(self, first: int) -> None:
        """Archive what is not in the log any more before the first batch: it was compacted."""
        in_flight = self._in_flight
        if first <= self._offset:
            return
        for run in in_flight.exactly(self._offset, first - 1):
            if run.is_acquirable:
                run.change(Trigger.REMOVE)
        for begin, end in in_flight.unread(self._offset, first - 1):
            in_flight.add(Run(begin, end, RecordState.ARCHIVED, 0))

    def _acquire_unread(self, first: int, last: int) -> None:
        """Acquire records for the first time: whole batches, if that is enough."""
        if self._left < last - first + 1:
            end = first + self._left - 1
            if not self._wanted.strict:
                batch = next(each for each in self._batches if each.last >= end)
                end = min(last, batch.last)
            last = end
        begin = first
        if not self._wanted.strict:
            for batch in self._batches:
                if begin + self._wanted.batch_size <= batch.first <= last:
                    self._add(begin, batch.first - 1)
                    begin = batch.first
        self._add(begin, last)

    def _add(self, first: int, last: int) -> None:
        run = Run(first, last, RecordState.AVAILABLE, 0)
        self._in_flight.add(run)
        self._take(run)

    def _acquire_again(self, run: Run, first: int, last: int) -> bool:
        """Acquire records that were delivered before; return whether to go on."""
        run = self._in_flight.exactly(max(run.first, first), min(run.last, last))[0]
        if run.deliveries >= self._throttled_from:
            if self._acquired:
                return False
            is_last = self._limits.delivery_limit > MIN_THROTTLED and (
                run.deliveries >= self._limits.delivery_limit - 1
            )
            most = 1 if is_last else max(1, run.size // 2)
            self._take(self._shortened(run, min(most, self._left if self._wanted.strict else most)))
            return False
        self._take(self._shortened(run, self._left) if self._wanted.strict else run)
        return True

    def _shortened(self, run: Run, most: int) -> Run:
        return self._in_flight.exactly(run.first, min(run.last, run.first + most - 1))[0]

    def _take(self, run: Run) -> None:
        run.change(Trigger.ACQUIRE)
        run.deliveries += 1
        run.member_id, run.lock_ends = self._wanted.member_id, self._limits.lock_ends
        self._left -= run.size
        before = self._acquired[-1] if self._acquired else None
        if (
            before is not None
            and run.deliveries > 1
            and before[1:] == (run.first - 1, run.deliveries)
        ):
            self._acquired[-1] = before._replace(last=run.last)
        else:
            self._acquired.append(Acquired(run.first, run.last, run.deliveries))

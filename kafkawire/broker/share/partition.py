"""The state machine of a share partition: a partition as one share group reads it (KIP-932).

Invariant: a record is acknowledged by the member that has acquired it, once; what is acknowledged
is stored before the member is told so. A change that cannot be stored is undone.

    acquire ─▶ ACQUIRED ─▶ acknowledge ─▶ Write ─▶ written ─▶ Undeliverable ─▶ archive ─▶ Write
                  └──────▶ advance (acquisition lock ended) ─▶ Write
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from ...protocol import ErrorCode
from ..share_coordinator.state import StateBatch, combined
from .acquiring import Acquired, Acquisition, Limits, LogBatch, Wanted
from .config import ShareConfig
from .in_flight import InFlight, Run
from .states import (
    CAUSES,
    TRIGGERS,
    AcknowledgeType,
    Cause,
    RecordState,
    Trigger,
    stored_state,
)

E, S, T = ErrorCode, RecordState, Trigger
UNSTORED: Final = 0
"""The number of a write of states that are valid whether it is stored or not."""


class AcknowledgementBatch(NamedTuple):
    """Records that a member acknowledges. types: one for all, or one for each offset."""

    first: int
    last: int
    types: tuple[AcknowledgeType, ...]

    def parts(self) -> Iterable[tuple[int, int, AcknowledgeType]]:
        """Return ranges of offsets with the same type."""
        if len(self.types) == 1:
            return [(self.first, self.last, self.types[0])]
        ranges: list[tuple[int, int, AcknowledgeType]] = []
        for offset, kind in enumerate(self.types, self.first):
            if ranges and ranges[-1][2] is kind:
                ranges[-1] = (ranges[-1][0], offset, kind)
            else:
                ranges.append((offset, offset, kind))
        return ranges


class Write(NamedTuple):
    """States to store. number: for `written`."""

    number: int
    start_offset: int
    complete_count: int
    batches: tuple[StateBatch, ...]


class Undeliverable(NamedTuple):
    """Records to write to the dead letter queue before they are archived. last: inclusive."""

    first: int
    last: int
    deliveries: int
    cause: Cause


class SharePartition:
    """A share partition whose state is loaded.

    config: returns the settings of its group. state_epoch: of what was loaded. leader_epoch: of the
    partition.
    """

    def __init__(
        self,
        leader_epoch: int,
        state_epoch: int,
        start: int,
        batches: Iterable[StateBatch],
        config: Callable[[], ShareConfig],
    ) -> None:
        self.leader_epoch = leader_epoch
        self.state_epoch = state_epoch
        self._config = config
        self._writes = UNSTORED
        self.in_flight = InFlight(
            start,
            [
                Run(each.first_offset, each.last_offset, stored_state(each.delivery_state),
                    each.delivery_count)
                for each in combined(batches, start)
            ],
        )  # fmt: skip
        self.in_flight.advance()

    @property
    def start_offset(self) -> int:
        """The first offset that is still to be delivered or acknowledged."""
        return self.in_flight.start

    def next_fetch_offset(self) -> int:
        """Return the first offset to deliver."""
        return self.in_flight.first_acquirable()

    @property
    def can_acquire(self) -> bool:
        """Whether records may be acquired: there is room, or some were released."""
        room = self.in_flight.count < self._config().max_locks
        return room or self.next_fetch_offset() < self.in_flight.next_offset

    # -- acquiring

    def acquire(
        self, wanted: Wanted, offset: int, batches: Sequence[LogBatch], now: float
    ) -> list[Acquired]:
        """Acquire records of batches that were read from an offset on; there is at least one."""
        config = self._config()
        limits = Limits(config.delivery_limit, config.max_locks, now + config.lock_duration)
        acquired = Acquisition(self.in_flight, wanted, limits, offset, batches).run()
        self.in_flight.advance()
        return acquired

    def remove(self, acquired: Iterable[Acquired], aborted: Iterable[LogBatch]) -> list[Acquired]:
        """Archive what was acquired of aborted transactions; return the rest."""
        kept = list(acquired)
        for first, last in aborted:
            for run in self.in_flight.exactly(first, last):
                if run.is_acquired:
                    run.change(T.REMOVE)
            kept = [part for each in kept for part in _without(each, first, last)]
        self.in_flight.advance()
        return kept

    def log_starts_at(self, offset: int) -> None:
        """Forget the records that are not in the log any more."""
        if offset > self.in_flight.start:
            self.in_flight.begin_at(offset)

    # -- acknowledging

    def acknowledge(
        self, member_id: str, batches: Sequence[AcknowledgementBatch], now: float
    ) -> Write | ErrorCode:
        """Acknowledge records, all or none; a write with changes must be stored first."""
        config = self._config()
        parts = [
            (max(first, self.start_offset), last, kind)
            for batch in batches
            for first, last, kind in batch.parts()
            if last >= self.start_offset
        ]
        after = -1
        for first, last, kind in parts:
            error = self._refusal(member_id, first, last)
            if first <= after:
                error = E.INVALID_RECORD_STATE  # twice in one request
            after = last
            if error:
                return error
            if kind is AcknowledgeType.RENEW and not config.renews:
                return E.INVALID_RECORD_STATE
        changed: list[Run] = []
        write = self._writes + 1
        for first, last, kind in parts:
            for run in self.in_flight.exactly(first, last):
                if kind is AcknowledgeType.RENEW:
                    run.change(T.RENEW)
                    run.lock_ends = now + config.lock_duration
                    continue
                # a gap has no record that a dead letter queue could have
                dead_letters = config.dead_letters and kind is not AcknowledgeType.GAP
                self._settle(run, TRIGGERS[kind], dead_letters, write)
                changed.append(run)
        return self._write(changed)

    def _refusal(self, member_id: str, first: int, last: int) -> ErrorCode:
        """Return why a member may not acknowledge records."""
        runs = self.in_flight.between(first, last)
        if last >= self.in_flight.next_offset:
            return E.INVALID_REQUEST
        if self.in_flight.unread(first, last):
            return E.INVALID_RECORD_STATE
        held = all(each.is_acquired and each.member_id == member_id for each in runs)
        return E.NONE if held else E.INVALID_RECORD_STATE

    def _settle(
        self, run: Run, trigger: Trigger, dead_letters: bool, write: int | None = None
    ) -> None:
        """End an acquisition. dead_letters: whether what would be archived is dead-lettered."""
        if trigger is T.RELEASE and run.deliveries >= self._config().delivery_limit:
            trigger = T.LAST_RELEASE
        run.cause = CAUSES.get(trigger) if dead_letters else None
        run.change(trigger if run.cause is None else T.DEAD_LETTER, write)

    def release(self, member_id: str) -> Write:
        """Release what a member has: its session has ended."""
        write, dead_letters = self._writes + 1, self._config().dead_letters
        changed: list[Run] = []
        for run in self.in_flight:
            if run.is_acquired and run.member_id == member_id:
                self._settle(run, T.RELEASE, dead_letters, write)
                changed.append(run)
        return self._write(changed)

    # -- acquisition locks

    def next_deadline(self) -> float | None:
        """Return when to call `advance`."""
        return min((each.lock_ends for each in self.in_flight if each.is_acquired), default=None)

    def advance(self, now: float) -> Write:
        """Release the records whose acquisition locks have ended, stored or not.

        The start offset does not move over those that are archived before they are stored: until
        then, acknowledgements of them are refused.
        """
        changed = [each for each in self.in_flight if each.is_acquired and each.lock_ends <= now]
        dead_letters = self._config().dead_letters
        for run in changed:
            self._settle(run, T.RELEASE, dead_letters)
            if run.state is not S.AVAILABLE:
                run.hold(self._writes + 1)
        return self._write(changed)

    # -- the dead letter queue

    def resumed(self) -> list[Undeliverable]:
        """Return what an earlier leader has not archived yet; what its cause was is not stored."""
        limit = self._config().delivery_limit
        archiving = [each for each in self.in_flight if each.state is S.ARCHIVING]
        for run in archiving:
            run.cause = Cause.DELIVERIES if run.deliveries >= limit else Cause.REJECTED
        return _undeliverable(archiving)

    def archive(self, first: int, last: int) -> Write:
        """Archive what is in the dead letter queue, or cannot be written there; stored or not."""
        runs = self.in_flight.exactly(first, last)
        changed = [each for each in runs if each.state is S.ARCHIVING and each.held is None]
        for run in changed:
            run.change(T.ARCHIVE)
            run.hold(self._writes + 1)
        return self._write(changed)

    # -- storing

    def _write(self, changed: Iterable[Run]) -> Write:
        self._writes += 1
        batches = tuple(
            StateBatch(each.first, each.last, each.state, each.deliveries) for each in changed
        )
        return Write(self._writes, self.start_offset, self.in_flight.complete_count, batches)

    def written(self, write: Write, is_stored: bool) -> list[Undeliverable]:
        """Take note that a write is stored, or could not be; return what is to be dead-lettered."""
        settled: list[Run] = []
        for run in self.in_flight:
            if run.held is not None and run.held.write == write.number:
                run.settle(is_stored)
                settled.append(run)
        undeliverable = _undeliverable(each for each in settled if each.state is S.ARCHIVING)
        self.in_flight.advance()
        return undeliverable


def _undeliverable(runs: Iterable[Run]) -> list[Undeliverable]:
    return [
        Undeliverable(each.first, each.last, each.deliveries, each.cause)
        for each in runs
        if each.cause is not None
    ]


def _without(acquired: Acquired, first: int, last: int) -> Iterable[Acquired]:
    """Return what is left of acquired records without a range."""
    if last < acquired.first or acquired.last < first:
        return [acquired]
    parts = []
    if acquired.first < first:
        parts.append(acquired._replace(last=first - 1))
    if last < acquired.last:
        parts.append(acquired._replace(first=last + 1))
    return parts

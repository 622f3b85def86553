"""The records of a share partition between its start offset and the next one to read.

Invariant: runs are in order and do not overlap; the first one does not begin before the start
offset. Offsets without a run were not read yet.

    start offset ─── run ─── run ─── not read ─── run ─── next offset
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from .states import TRANSITIONS, Cause, RecordState, Trigger

NOBODY: Final = ""


class Held(NamedTuple):
    """What a run had before a change that is not stored yet. write: the number of its write."""

    write: int
    state: RecordState
    deliveries: int
    member_id: str
    lock_ends: float


@dataclass(slots=True)
class Run:
    """Records with one state. last: inclusive.

    deliveries: how often they were delivered. member_id: who has acquired them. lock_ends: when
    they are available again. held: what they return to if a change cannot be stored. cause: why
    they are written to the dead letter queue.
    """

    first: int
    last: int
    state: RecordState
    deliveries: int
    member_id: str = NOBODY
    lock_ends: float = 0.0
    held: Held | None = None
    cause: Cause | None = None

    @property
    def size(self) -> int:
        """Number of offsets."""
        return self.last - self.first + 1

    @property
    def is_acquirable(self) -> bool:
        """Whether a member may get them."""
        return self.state is RecordState.AVAILABLE and self.held is None

    @property
    def is_acquired(self) -> bool:
        """Whether a member has them."""
        return self.state is RecordState.ACQUIRED

    @property
    def is_complete(self) -> bool:
        """Whether nothing becomes of them any more."""
        return self.state.is_terminal and self.held is None

    def change(self, trigger: Trigger, write: int | None = None) -> None:
        """Change the state by the table. write: the number of the write that stores it first."""
        after = TRANSITIONS[self.state, trigger]
        assert after is not None, f"{self.state.name}, {trigger.value} is not a legal transition"
        if write is not None:
            self.hold(write)
        self.state = after
        if after is not RecordState.ACQUIRED:
            self.member_id, self.lock_ends = NOBODY, 0.0

    def hold(self, write: int) -> None:
        """Stay as it is, and incomplete, until a write ends, with or without success."""
        self.held = Held(write, self.state, self.deliveries, self.member_id, self.lock_ends)

    def settle(self, is_stored: bool) -> None:
        """End a change: it is stored, or is undone."""
        held, self.held = self.held, None
        if held is not None and not is_stored:
            _, self.state, self.deliveries, self.member_id, self.lock_ends = held


class InFlight:
    """The runs of a share partition. start: its start offset. next_offset: the next one to read."""

    def __init__(self, start: int, runs: Iterable[Run] = ()) -> None:
        self.start = start
        self._runs = list(runs)
        self.next_offset = self._runs[-1].last + 1 if self._runs else start

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def complete_count(self) -> int:
        """Number of records after the start offset that are not delivered any more."""
        return sum(each.size for each in self._runs if each.state.is_terminal)

    @property
    def count(self) -> int:
        """Number of records that are not complete, also those that were not read yet."""
        return self.next_offset - self.start - self.complete_count

    def first_acquirable(self) -> int:
        """Return the first offset to deliver: an available record, or one that was not read."""
        expected = self.start
        for run in self._runs:
            if run.first > expected:
                return expected
            if run.is_acquirable:
                return run.first
            expected = run.last + 1
        return max(expected, self.next_offset)

    def cut(self, offset: int) -> None:
        """Let a run begin at an offset, if one has it."""
        index = self._index(offset)
        if index < 0:
            return
        run = self._runs[index]
        if run.first < offset <= run.last:
            self._runs.insert(index + 1, replace(run, first=offset))
            run.last = offset - 1

    def between(self, first: int, last: int) -> list[Run]:
        """Return the runs with offsets from `first` to `last`, which they may exceed."""
        index = max(self._index(first), 0)
        runs = []
        while index < len(self._runs) and self._runs[index].first <= last:
            if self._runs[index].last >= first:
                runs.append(self._runs[index])
            index += 1
        return runs

    def exactly(self, first: int, last: int) -> list[Run]:
        """Cut runs so that some have just these offsets, and return those."""
        self.cut(first)
        self.cut(last + 1)
        return self.between(first, last)

    def add(self, run: Run) -> None:
        """Add records that were not read before."""
        self._runs.insert(self._index(run.first) + 1, run)
        self.next_offset = max(self.next_offset, run.last + 1)

    def _index(self, offset: int) -> int:
        """Return the index of the last run that begins at an offset or before it; -1 for none."""
        return bisect_right(self._runs, offset, key=lambda run: run.first) - 1

    def unread(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the ranges between two offsets that no run has."""
        ranges, expected = [], first
        for run in self.between(first, last):
            if run.first > expected:
                ranges.append((expected, run.first - 1))
            expected = run.last + 1
        if expected <= last:
            ranges.append((expected, last))
        return ranges

    def begin_at(self, start: int) -> None:
        """Forget the records before an offset: they are not in the log any more."""
        self.cut(start)
        self._runs = [each for each in self._runs if each.first >= start]
        self.start = start
        self.next_offset = max(self.next_offset, start)
        self.advance()

    def advance(self) -> None:
        """Move the start offset over what is complete, and join complete runs."""
        joined: list[Run] = []
        for run in self._runs:
            if not joined and run.is_complete and run.first == self.start:
                self.start = run.last + 1
                continue
            before = joined[-1] if joined else None
            if (
                before is not None
                and before.is_complete
                and run.is_complete
                and before.last + 1 == run.first
                and (before.state, before.deliveries) == (run.state, run.deliveries)
            ):
                before.last = run.last
            else:
                joined.append(run)
        self._runs = joined

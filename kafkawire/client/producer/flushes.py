"""Tracks flushes: how far each reaches, and when it is complete.

A flush covers the records before it, the blocked ones too; their batches do not linger.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from .events import Flushed
from .record_accumulator import RecordAccumulator


class FlushMark(NamedTuple):
    """How far a flush reaches: batches by number, blocked records by arrival; -1: none left."""

    number: int
    arrival: int


class Flushes:
    """The flushes of one producer that are not complete."""

    def __init__(self, accumulator: RecordAccumulator) -> None:
        self._accumulator = accumulator
        self._marks: dict[Hashable, FlushMark] = {}

    def __bool__(self) -> bool:
        return bool(self._marks)

    def add(self, token: Hashable) -> None:
        """Flush all records so far."""
        accumulator = self._accumulator
        self._marks[token] = FlushMark(accumulator.last_number, accumulator.last_arrival)

    def flush_to(self) -> int:
        """Return the last batch that must not linger; records blocked before a flush count."""
        if not self._marks:
            return -1
        accumulator = self._accumulator
        for token, mark in self._marks.items():
            if accumulator.parked_since(mark.arrival):
                self._marks[token] = FlushMark(accumulator.last_number, mark.arrival)
            elif mark.arrival >= 0:
                self._marks[token] = FlushMark(accumulator.last_number, -1)
        return max(mark.number for mark in self._marks.values())

    def completed(self, oldest: int | None) -> list[Flushed]:
        """Remove and return the flushes whose batches have their result.

        oldest: the number of the oldest batch without one.
        """
        done = [
            token
            for token, mark in self._marks.items()
            if mark.arrival < 0 and (oldest is None or oldest > mark.number)
        ]
        for token in done:
            del self._marks[token]
        return [Flushed(token) for token in done]

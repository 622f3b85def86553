"""Out-of-order segments of one direction: the data behind its first gap.

The first packet with a byte wins; a range that the snaplen cut off is missing, until another
packet has it.

    next expected --> . . gap . . [held][held] . . gap . . [held](cut)
"""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import NamedTuple, final

from mypy_extensions import mypyc_attr


class Held(NamedTuple):
    """Bytes at a stream position, and their packet."""

    start: int
    data: bytes
    packet: int
    time_ns: int

    @property
    def end(self) -> int:
        return self.start + len(self.data)


class Overlap(NamedTuple):
    """Bytes that overlap held ones: the new bytes, and those held already."""

    start: int
    data: bytes
    existing: bytes


@final
@mypyc_attr(acyclic=True)
class OutOfOrderSegments:
    """Held bytes and cut ranges, both sorted by position; held bytes do not overlap."""

    __slots__ = ("_cuts", "_held", "bytes")

    def __init__(self) -> None:
        self.bytes = 0
        self._held: list[Held] = []
        self._cuts: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._held) + len(self._cuts)

    def add(self, new: Held) -> list[Overlap]:
        """Store the bytes that are not held yet; return the overlaps."""
        held = self._held
        if not held or new.start >= held[-1].end:
            if new.data:
                held.append(new)
                self.bytes += len(new.data)
            return []
        index = bisect_right(held, new.start, key=lambda piece: piece.start)
        if index and held[index - 1].end > new.start:
            index -= 1
        overlaps = []
        cursor = new.start
        while cursor < new.end:
            other = held[index] if index < len(held) else None
            if other is not None and other.start <= cursor:
                stop = min(new.end, other.end)
                existing = other.data[cursor - other.start : stop - other.start]
                overlaps.append(Overlap(cursor, _slice(new, cursor, stop), existing))
            else:
                stop = new.end if other is None else min(new.end, other.start)
                held.insert(index, new._replace(start=cursor, data=_slice(new, cursor, stop)))
                self.bytes += stop - cursor
            index += 1
            cursor = stop
        return overlaps

    def cut(self, start: int, end: int) -> None:
        """Record that the snaplen cut off the bytes from `start` to `end`."""
        insort(self._cuts, (start, end))

    def first(self) -> int | None:
        """Return where the gap at the next expected byte ends; None if no data is behind it."""
        held = self._held[0].start if self._held else None
        if not self._cuts:
            return held
        return self._cuts[0][0] if held is None else min(held, self._cuts[0][0])

    def take(self, position: int) -> list[Held]:
        """Remove and return the contiguous held bytes at `position`."""
        count, end = 0, position
        for held in self._held:
            if held.start > end:
                break
            end = held.end
            count += 1
        ready = self._held[:count]
        del self._held[:count]
        self.bytes -= end - position
        return ready

    def take_cut(self, position: int) -> int:
        """Remove the cut range at `position` up to the next held byte; return where it ends."""
        end = position
        while self._cuts and self._cuts[0][0] <= end:
            end = max(end, self._cuts.pop(0)[1])
        stop = min(end, self._held[0].start) if self._held else end
        if stop < end:
            insort(self._cuts, (stop, end))
        return max(stop, position)


def _slice(held: Held, start: int, end: int) -> bytes:
    return held.data[start - held.start : end - held.start]

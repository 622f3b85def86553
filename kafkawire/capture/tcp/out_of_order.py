"""What is known of one direction behind its first hole.

Law: the first packet that brings a byte wins; a stretch that the snaplen cut off is known to be
missing, until another packet brings it.

    awaited --> . . hole . . [held][held] . . hole . . [held](cut)
"""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import NamedTuple, final

from mypy_extensions import mypyc_attr


class Held(NamedTuple):
    """Bytes at a stream position, and the packet they came with."""

    start: int
    data: bytes
    packet: int
    time_ns: int

    @property
    def end(self) -> int:
        return self.start + len(self.data)


class Overlap(NamedTuple):
    """Bytes for a place that is taken: those that came, and those that stand."""

    start: int
    data: bytes
    standing: bytes


@final
@mypyc_attr(acyclic=True)
class OutOfOrderSegments:
    """Held bytes and cut stretches, both sorted by position; held bytes do not overlap."""

    __slots__ = ("_cuts", "_held", "bytes")

    def __init__(self) -> None:
        self.bytes = 0
        self._held: list[Held] = []
        self._cuts: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._held) + len(self._cuts)

    def add(self, new: Held) -> list[Overlap]:
        """Keep those of the bytes that are not held yet; returns the others."""
        held = self._held
        if not held or new.start >= held[-1].end:
            if new.data:
                held.append(new)
                self.bytes += len(new.data)
            return []
        at = bisect_right(held, new.start, key=lambda piece: piece.start)
        if at and held[at - 1].end > new.start:
            at -= 1
        overlaps = []
        cursor = new.start
        while cursor < new.end:
            taken = held[at] if at < len(held) else None
            if taken is not None and taken.start <= cursor:
                stop = min(new.end, taken.end)
                standing = taken.data[cursor - taken.start : stop - taken.start]
                overlaps.append(Overlap(cursor, _part(new, cursor, stop), standing))
            else:
                stop = new.end if taken is None else min(new.end, taken.start)
                held.insert(at, new._replace(start=cursor, data=_part(new, cursor, stop)))
                self.bytes += stop - cursor
            at += 1
            cursor = stop
        return overlaps

    def cut(self, start: int, end: int) -> None:
        """Note that the bytes from `start` to `end` were cut off."""
        insort(self._cuts, (start, end))

    def first(self) -> int | None:
        """Tell where the hole at the awaited position ends; None if nothing is known behind it."""
        held = self._held[0].start if self._held else None
        if not self._cuts:
            return held
        return self._cuts[0][0] if held is None else min(held, self._cuts[0][0])

    def take(self, position: int) -> list[Held]:
        """Remove the held bytes that continue without a hole from `position`."""
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
        """Remove the cut stretch at `position`, as far as no held byte fills it; returns where it
        ends.
        """
        end = position
        while self._cuts and self._cuts[0][0] <= end:
            end = max(end, self._cuts.pop(0)[1])
        stop = min(end, self._held[0].start) if self._held else end
        if stop < end:
            insort(self._cuts, (stop, end))
        return max(stop, position)


def _part(held: Held, start: int, end: int) -> bytes:
    return held.data[start - held.start : end - held.start]

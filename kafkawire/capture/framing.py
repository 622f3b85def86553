"""Runs of a direction -> frames: an int32 size, then as many bytes.

Law: a frame is a frame only where the stream is in step; every byte fed comes out again, in a frame or in a stretch that
says why it is none.

    [in step] --a whole frame--> [in step]         size out of range, a gap --> [searching] --find says where--> [in step]

Source: Kafka protocol guide, "Common Request and Response Structure".
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from .events import Gap, Run

SIZE: Final = 4
MAX_SEARCH: Final = 1 << 20
"""Bytes that are kept while searching for a frame."""


class StretchReason(StrEnum):
    """Why bytes are in no frame."""

    INCOMPLETE = "incomplete"
    """They begin a frame whose rest is missing."""
    OUT_OF_STEP = "out_of_step"
    """Where a frame begins is not known here."""


class StreamFrame(NamedTuple):
    """A frame of a direction; data includes the 4 bytes of the size.

    start, end: stream positions. packet, last_ns: of the arrival that completes it. first_ns: of its first byte.
    known: the packet after which it was known, which is later than `packet` behind a gap that was waited out.
    """

    start: int
    data: bytes
    packet: int
    last_ns: int
    first_ns: int
    known: int

    @property
    def end(self) -> int:
        return self.start + len(self.data)


class Stretch(NamedTuple):
    """Bytes that are in no frame; data: the bytes there are. size: of the frame they begin, where it is known."""

    start: int
    data: bytes
    reason: StretchReason
    packet: int
    time_ns: int
    known: int
    size: int | None = None


Framed: TypeAlias = StreamFrame | Stretch
Finder: TypeAlias = Callable[[bytes, bool], int | None]
"""Given bytes of a stream out of step, and whether no more come: the index at which a frame certainly begins, or None."""


def first_byte(data: bytes, ended: bool) -> int | None:
    """Trust that a frame begins at once."""
    return None if ended or not data else 0


class Framer:
    """Cuts one direction into frames.

    in_step: whether its first byte begins a frame. find: how to come into step again. max_frame_bytes: a size beyond it
    is none.
    """

    def __init__(
        self, *, in_step: bool = True, find: Finder = first_byte, max_frame_bytes: int
    ) -> None:
        self.in_step = in_step
        self._find = find
        self._max = max_frame_bytes
        self._start = 0
        self._held = 0
        self._need = SIZE
        self._chunks: list[bytes] = []
        self._ends: list[int] = []
        self._packets: list[int] = []
        self._times: list[int] = []
        self._known = 0

    def feed(self, run: Run) -> list[Framed]:
        """Take the next bytes."""
        if not self._held:
            self._start = run.position
        self._chunks.append(run.data)
        self._held += len(run.data)
        self._ends += run.ends
        self._packets += run.packets
        self._times += run.times
        self._known = run.released
        out: list[Framed] = []
        if self._held >= self._need:
            self._cut(out)
        return out

    def gap(self, gap: Gap) -> list[Framed]:
        """Take note that bytes are missing; what is held before them is no frame."""
        out = self._flush(gap.packet)
        self.in_step = False
        self._start = gap.end
        return out

    def finish(self) -> list[Framed]:
        """Take note that nothing more comes."""
        return self._flush(0)

    @property
    def held(self) -> int:
        """Bytes that wait for more."""
        return self._held

    def _flush(self, packet: int) -> list[Framed]:
        out: list[Framed] = []
        if self._held:
            data = self._data()
            size = int.from_bytes(data[:SIZE], "big", signed=True) if self._held >= SIZE else None
            if self.in_step:
                out.append(self._stretch(0, data, StretchReason.INCOMPLETE, packet, size))
            else:
                out.append(self._stretch(0, data, StretchReason.OUT_OF_STEP, packet))
        self._consume(self._held, b"")
        return out

    def _data(self) -> bytes:
        if len(self._chunks) != 1:
            self._chunks = [b"".join(self._chunks)]
        return self._chunks[0]

    def _cut(self, out: list[Framed]) -> None:
        data = self._data()
        at = 0
        while True:
            if not self.in_step:
                found = self._find(data[at:] if at else data, False)
                if found is None:
                    at = self._shorten(data, at, out)
                    self._need = len(data) - at + 1
                    break
                if found:
                    lost = data[at : at + found]
                    out.append(self._stretch(at, lost, StretchReason.OUT_OF_STEP, 0))
                at += found
                self.in_step = True
            at, self._need = self._frames(data, at, out)
            if self.in_step:
                break
        self._consume(at, data)

    def _shorten(self, data: bytes, at: int, out: list[Framed]) -> int:
        """Keep no more than MAX_SEARCH bytes of a direction that is out of step."""
        surplus = len(data) - at - MAX_SEARCH
        if surplus <= 0:
            return at
        out.append(
            self._stretch(at, data[at : at + surplus], StretchReason.OUT_OF_STEP, 0)
        )
        return at + surplus

    def _frames(self, data: bytes, at: int, out: list[Framed]) -> tuple[int, int]:
        """Cut frames off from `at` on; returns where they end, and how many bytes the next one needs."""
        size_of, limit, length = int.from_bytes, self._max, len(data)
        while at + SIZE <= length:
            size = size_of(data[at : at + SIZE], "big", signed=True)
            if not 0 <= size <= limit:
                self.in_step = False
                return at, SIZE
            end = at + SIZE + size
            if end > length:
                return at, SIZE + size
            out.append(self._frame(at, data[at:end]))
            at = end
        return at, SIZE

    def _frame(self, at: int, data: bytes) -> StreamFrame:
        start = self._start + at
        first = bisect_left(self._ends, start + 1)
        last = bisect_left(self._ends, start + len(data), first)
        packet = self._packets[last]
        return StreamFrame(
            start,
            data,
            packet,
            self._times[last],
            self._times[first],
            self._known or packet,
        )

    def _stretch(
        self, at: int, data: bytes, reason: StretchReason, known: int, size: int | None = None
    ) -> Stretch:
        last = bisect_left(self._ends, self._start + at + len(data))
        packet = self._packets[last]
        return Stretch(
            self._start + at,
            data,
            reason,
            packet,
            self._times[last],
            known or self._known or packet,
            size,
        )

    def _consume(self, size: int, data: bytes) -> None:
        """Forget the first bytes held, and the packets that brought only them."""
        self._start += size
        self._held -= size
        self._chunks = [data[size:]] if self._held else []
        gone = bisect_left(self._ends, self._start + 1)
        del self._ends[:gone], self._packets[:gone], self._times[:gone]
        if not self._held:
            self._need = SIZE if self.in_step else 1

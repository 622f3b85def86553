"""Runs of one direction -> frames: an int32 size, then as many bytes.

Law: a frame is one only where the stream is in step; every byte fed comes out again, in a frame or
in a stretch that says why it is none.

    in step --whole frames--> in step
       |---- a gap inside a frame of known size --> its rest is skipped --> in step
       `---- any other gap, a size that cannot be --> searching --> in step

Source: the Kafka protocol guide, "Common Request and Response Structure".
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

    BROKEN = "broken"
    """They belong to a frame of which other bytes are missing."""
    OUT_OF_STEP = "out_of_step"
    """Where a frame begins is not known here."""


class StreamFrame(NamedTuple):
    """A frame of a direction; data includes the 4 bytes of the size.

    start: stream position. packet, last_ns: of the arrival that completes it. first_ns: of its
    first byte. known: the packet after which it was known, later than `packet` behind a gap that
    had to be waited out.
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
    """Bytes that are in no frame. size: what the size in front says, if they begin a frame."""

    start: int
    data: bytes
    reason: StretchReason
    packet: int
    time_ns: int
    known: int
    size: int | None = None

    @property
    def end(self) -> int:
        return self.start + len(self.data)


Framed: TypeAlias = StreamFrame | Stretch
Finder: TypeAlias = Callable[[bytes, int], int | None]
"""Given bytes out of step, and the first index that can be right: where a frame certainly begins.
"""


def behind_the_gap(data: bytes, start: int) -> int | None:
    """Trust the first byte behind a gap, and no other."""
    return 0 if start == 0 and data else None


class Framer:
    """Cuts one direction into frames.

    in_step: whether its next byte is known to begin a frame, or to continue one. find: how to come
    into step again. max_frame_bytes: a larger size is none.
    """

    def __init__(
        self, *, max_frame_bytes: int, in_step: bool = True, find: Finder = behind_the_gap
    ) -> None:
        self.in_step = in_step
        self.held = 0
        self._find = find
        self._max = max_frame_bytes
        self._rest = 0
        self._ruled_out = 0
        self._need = SIZE if in_step else 1
        self._start = 0
        self._known = 0
        self._chunks: list[bytes] = []
        self._ends: list[int] = []
        self._packets: list[int] = []
        self._times: list[int] = []

    def feed(self, run: Run) -> list[Framed]:
        """Take the next bytes."""
        if not self.held:
            self._start = run.position
        self._chunks.append(run.data)
        self.held += len(run.data)
        self._ends += run.ends
        self._packets += run.packets
        self._times += run.times
        self._known = run.released
        out: list[Framed] = []
        if self._rest:
            self._skip_rest(out)
        if self.held >= self._need:
            self._cut(out)
        return out

    def gap(self, gap: Gap) -> list[Framed]:
        """Take note that bytes are missing."""
        if not self.held:
            self._start = gap.position
        size = self._size_of_partial()
        if size is not None:
            self._rest = SIZE + size - self.held
        out = self._flush(gap.packet, size)
        self._need = SIZE
        if gap.length <= self._rest:
            self._rest -= gap.length
        else:
            self._rest = 0
            self.in_step = False
            self._ruled_out = 0
            self._need = 1
        return out

    def finish(self) -> list[Framed]:
        """Take note that nothing more comes."""
        return self._flush(0, self._size_of_partial())

    # -- what is held

    def _data(self) -> bytes:
        if len(self._chunks) != 1:
            self._chunks = [b"".join(self._chunks)]
        return self._chunks[0]

    def _size_of_partial(self) -> int | None:
        """Tell the size of the frame whose beginning is held."""
        if not self.in_step or self.held < SIZE:
            return None
        return int.from_bytes(self._data()[:SIZE], "big", signed=True)

    def _flush(self, known: int, size: int | None) -> list[Framed]:
        if not self.held:
            return []
        reason = StretchReason.BROKEN if self.in_step else StretchReason.OUT_OF_STEP
        stretch = self._stretch(0, self._data(), reason, known)
        self._consume(self.held)
        return [stretch._replace(size=size)]

    def _skip_rest(self, out: list[Framed]) -> None:
        size = min(self._rest, self.held)
        self._rest -= size
        out.append(self._stretch(0, self._data()[:size], StretchReason.BROKEN))
        self._consume(size)

    def _consume(self, size: int) -> None:
        """Forget the first bytes held, and the packets that brought only them."""
        data = self._data() if size < self.held else b""
        self._start += size
        self.held -= size
        self._chunks = [data[size:]] if self.held else []
        gone = bisect_left(self._ends, self._start + 1)
        del self._ends[:gone], self._packets[:gone], self._times[:gone]

    # -- frames

    def _cut(self, out: list[Framed]) -> None:
        data = self._data()
        at = 0
        while at < len(data):
            if not self.in_step:
                found = self._find(data[at:], self._ruled_out)
                if found is None:
                    at += self._give_up_surplus(at, data, out)
                    self._need = len(data) - at + 1
                    break
                if found:
                    lost = data[at : at + found]
                    out.append(self._stretch(at, lost, StretchReason.OUT_OF_STEP))
                at += found
                self.in_step = True
            at = self._frames(data, at, out)
            if self.in_step:
                break
        self._consume(at)

    def _frames(self, data: bytes, at: int, out: list[Framed]) -> int:
        """Cut frames off from `at` on; returns where the first one begins that is not whole."""
        size_of, limit, length = int.from_bytes, self._max, len(data)
        self._need = SIZE
        while at + SIZE <= length:
            size = size_of(data[at : at + SIZE], "big", signed=True)
            if not 0 <= size <= limit:
                self.in_step = False
                self._ruled_out = 1
                break
            end = at + SIZE + size
            if end > length:
                self._need = SIZE + size
                break
            out.append(self._frame(at, data[at:end]))
            at = end
        return at

    def _give_up_surplus(self, at: int, data: bytes, out: list[Framed]) -> int:
        """Keep no more than MAX_SEARCH bytes of a direction that is out of step."""
        surplus = max(0, len(data) - at - MAX_SEARCH)
        if surplus:
            lost = data[at : at + surplus]
            out.append(self._stretch(at, lost, StretchReason.OUT_OF_STEP))
        return surplus

    def _frame(self, at: int, data: bytes) -> StreamFrame:
        start = self._start + at
        first = bisect_left(self._ends, start + 1)
        last = bisect_left(self._ends, start + len(data), first)
        packet = self._packets[last]
        known = self._known or packet
        return StreamFrame(start, data, packet, self._times[last], self._times[first], known)

    def _stretch(self, at: int, data: bytes, reason: StretchReason, known: int = 0) -> Stretch:
        start = self._start + at
        last = bisect_left(self._ends, start + len(data))
        packet = self._packets[last]
        known = known or self._known or packet
        return Stretch(start, data, reason, packet, self._times[last], known)

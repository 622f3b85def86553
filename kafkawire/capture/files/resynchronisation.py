"""Finds packets in the middle of a pcap: behind damage, or at the start of a split.

A chain of plausible headers is a guess and never a proof (a packet may contain a capture); a
caller that needs certainty compares the guess with the end of the packets before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .columns import Ints, take_rows
from .packet_headers import Shape

CHAIN: Final = 4
"""Consecutive plausible headers that an offset needs."""

LEAST_PACKET: Final = 14
MAX_ORIGINAL: Final = 1 << 26
SECONDS_APART: Final = 31 * 86400
FIRST_WINDOW: Final = 1 << 12
LAST_WINDOW: Final = 1 << 18
"""Bytes of the first window searched for packets, and of the largest."""

FIRST_CANDIDATES: Final = 16
"""Chains whose times are compared at first."""


class Candidates(NamedTuple):
    """Offsets in a window, sorted; for each the seconds since the epoch, and where its proof ends.

    The proof of a packet is a chain of headers, that of a block its last field.
    """

    offsets: Ints
    seconds: Ints
    ends: Ints


def find_packet(
    data: bytes, start: int, shape: Shape, *, near: int | None = None, ended: bool = False
) -> int | None:
    """Find the first offset from `start` on where a chain of packet headers begins.

    near: seconds since the epoch that the packets' times must be close to. ended: `data` reaches
    the end of the file, so a chain that ends exactly there is accepted. Returns None if there is
    none.
    """
    return packet_search(data, shape, ended=ended).find(start, near=near)


class Search:
    """Finds, one after another, the offsets in the same data where packets or blocks begin again.

    Each byte is searched in one window, however often packets begin and end: time is linear in
    the data.

    find: returns the candidates in a window. searched: bytes searched so far.
    """

    def __init__(self, data: bytes, find: Callable[[range], Candidates]) -> None:
        self.data = data
        self.searched = 0
        self._find_in = find
        self._reset(0)

    def find(self, start: int, limit: int | None = None, *, near: int | None = None) -> int | None:
        """Find the first offset from `start` on whose proof ends before `limit`; None if none does.

        near: the time that it must be close to.
        """
        if not self._begin <= start <= self._end:
            self._reset(start)
        last = len(self.data) + 1 if limit is None else limit
        while True:
            offset = self._first(start, last, near)
            if offset is not None:
                return offset
            if self._end >= min(last, len(self.data)):
                return None
            self._next()

    def find_behind_damage(
        self, start: int, size: int, *, near: int | None = None, ended: bool
    ) -> tuple[bool, int]:
        """Find where packets or blocks begin again in the `size` bytes from `start` on.

        If nowhere, the next `size` bytes are searched, half of which are the same: a proof may
        begin in them. Returns whether it was found, and where; if not, where the search has to
        start when there are more bytes, or the end of the file. So the result depends on the file
        alone, not on how many bytes are here already.
        """
        while ended or len(self.data) - start >= size:
            limit = start + size
            offset = self.find(start, limit, near=near)
            if offset is not None:
                return True, offset
            if limit > len(self.data):  # it has ended
                return False, len(self.data)
            start = limit - size // 2
        return False, start

    def _reset(self, start: int) -> None:
        self._begin = self._end = start
        self._size = FIRST_WINDOW
        self._candidates = Candidates(*[np.empty(0, np.int64)] * 3)

    def _next(self) -> None:
        """Search the next window, larger than the last: packets are usually close."""
        window = range(self._end, min(self._end + self._size, len(self.data)))
        self._begin, self._end = window.start, window.stop
        self._size = min(self._size * 8, LAST_WINDOW)
        self.searched += len(window)
        self._candidates = self._find_in(window)

    def _first(self, start: int, limit: int, near: int | None) -> int | None:
        """Find the first candidate in the window that fits."""
        offsets, seconds, ends = self._candidates
        candidate, size = int(np.searchsorted(offsets, start)), FIRST_CANDIDATES
        while candidate < len(offsets):
            fits = ends[candidate : candidate + size] <= limit
            if near is not None:
                fits &= np.abs(seconds[candidate : candidate + size] - near) <= SECONDS_APART
            if fits.any():
                return int(offsets[candidate + fits.argmax()])
            candidate += size
            size *= 8
        return None


def packet_search(data: bytes, shape: Shape, *, ended: bool) -> Search:
    """Return the search for chains of packet headers; `ended` as in `find_packet`."""

    def find(window: range) -> Candidates:
        offsets = plausible(data, window, shape)
        ends = _chains(data, offsets, shape, ended)
        chains = offsets[ends > 0]
        seconds = take_rows(data, chains, shape.dtype())["seconds"].astype(np.int64)
        return Candidates(chains, seconds, ends[ends > 0])

    return Search(data, find)


def words_at(
    data: bytes, window: range, phase: int, count: int, order: str
) -> list[npt.NDArray[np.uint32]]:
    """Return the `count` 32-bit words at each fourth offset of a window, from `phase` on.

    Row i of word k is at offset window.start + phase + 4 * (i + k); rows with words outside of
    `data` are omitted.
    """
    begin = window.start + phase
    rows = max(0, min(len(window) - phase + 3, len(data) - begin - 4 * count + 4) // 4)
    if not rows:
        return [np.empty(0, np.uint32)] * count
    words = np.frombuffer(data, order + "u4", rows + count - 1, begin)
    return [words[k : k + rows] for k in range(count)]


def plausible(data: bytes, window: range, shape: Shape) -> Ints:
    """List the offsets of plausible packet headers in a window, each checked alone."""
    candidates = []
    for phase in range(4):
        _, fraction, captured, original = words_at(data, window, phase, 4, shape.order)
        ok = (captured <= shape.longest) & (captured >= LEAST_PACKET) & (captured <= original)
        ok &= (original <= MAX_ORIGINAL) & (fraction < shape.fractions)
        candidates.append(np.flatnonzero(ok) * 4 + phase + window.start)
    return np.sort(np.concatenate(candidates))


def _chains(data: bytes, offsets: Ints, shape: Shape, ended: bool) -> Ints:
    """Return where the chain of each offset ends, or 0 for none.

    All are followed together, a header at a time. A shorter one that ends with the file needs a
    reader that sees this end: one byte more.
    """
    ends = np.zeros(len(offsets), np.int64)
    remaining = np.arange(len(offsets))
    positions = offsets.astype(np.int64)
    last: Ints | None = None
    for links in range(CHAIN):
        if ended and links:
            ends[remaining[positions == len(data)]] = len(data) + 1
        inside = positions + shape.size <= len(data)
        remaining, positions = remaining[inside], positions[inside]
        headers = take_rows(data, positions, shape.dtype())
        seconds = headers["seconds"].astype(np.int64)
        captured, original = headers["captured"], headers["original"]
        ok = (captured >= LEAST_PACKET) & (captured <= np.minimum(original, shape.longest))
        ok &= (original <= MAX_ORIGINAL) & (headers["fraction"] < shape.fractions)
        if last is not None:
            ok &= np.abs(seconds - last[inside]) <= SECONDS_APART
        remaining, last = remaining[ok], seconds[ok]
        headers_end = positions[ok] + shape.size
        positions = headers_end + captured[ok]
    ends[remaining] = headers_end
    return ends

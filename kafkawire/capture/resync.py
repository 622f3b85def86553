"""Where packets begin in the middle of a pcap: behind damage, or at the edge of a split.

Law: a chain of plausible headers is a guess and never a proof (a packet may carry a capture); who
must be certain compares the guess with the end that the stretch before it reaches.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .blocks import Ints

CHAIN: Final = 4
"""Headers that must follow one another before a place is believed."""

LEAST_PACKET: Final = 14
MAX_ORIGINAL: Final = 1 << 26
SECONDS_APART: Final = 31 * 86400
FIRST_WINDOW: Final = 1 << 12


class Shape(NamedTuple):
    """What the packet headers of a file look like: byte order, size, fractions of a second, longest
    packet.
    """

    order: str
    size: int
    fractions: int
    longest: int

    @property
    def dtype(self) -> np.dtype[np.void]:
        fields = [
            (name, self.order + "u4") for name in ("seconds", "fraction", "captured", "original")
        ]
        return np.dtype(fields + [("more", f"V{self.size - 16}")] * (self.size > 16))


def looks_wrong(headers: npt.NDArray[np.void], shape: Shape) -> npt.NDArray[np.bool_]:
    """Say which headers no writer wrote: a length beyond the longest packet, or only zeros."""
    captured = headers["captured"]
    empty = (captured == 0) & (headers["original"] == 0) & (headers["seconds"] == 0)
    wrong: npt.NDArray[np.bool_] = (captured > shape.longest) | empty
    return wrong


def find_packet(
    data: bytes, start: int, shape: Shape, *, near: int | None = None, ended: bool = False
) -> int | None:
    """Find the first offset from `start` on where a chain of packet headers begins.

    near: seconds since the epoch that the packets' times are close to. ended: `data` reaches the
    end of the file, so that a chain which ends exactly there is as good as a long one. None where
    there is no such place.
    """
    for window in windows(start, len(data)):
        for at in plausible(data, window, shape, near).tolist():
            if _chains(data, at, shape, near, ended=ended):
                return int(at)
    return None


def windows(start: int, end: int) -> Iterator[range]:
    """Cut what is to be searched into windows: small ones first, since packets are seldom far."""
    size = FIRST_WINDOW
    while start < end:
        yield range(start, min(start + size, end))
        start += size
        size *= 8


def words_at(
    data: bytes, window: range, phase: int, count: int, order: str
) -> list[npt.NDArray[np.uint32]]:
    """Give the `count` 32-bit words that begin at each fourth offset of a window, from `phase` on.

    Row i of word k lies at offset window.start + phase + 4 * (i + k); rows whose words do not lie
    whole in `data` are left out.
    """
    begin = window.start + phase
    rows = max(0, min(len(window) - phase + 3, len(data) - begin - 4 * count + 4) // 4)
    if not rows:
        return [np.empty(0, np.uint32)] * count
    words = np.frombuffer(data, order + "u4", rows + count - 1, begin)
    return [words[k : k + rows] for k in range(count)]


def plausible(data: bytes, window: range, shape: Shape, near: int | None) -> Ints:
    """List the offsets in a window at which a packet header may stand, each judged alone."""
    found = []
    for phase in range(4):
        seconds, fraction, captured, original = words_at(data, window, phase, 4, shape.order)
        ok = (captured <= shape.longest) & (captured >= LEAST_PACKET) & (captured <= original)
        ok &= (original <= MAX_ORIGINAL) & (fraction < shape.fractions)
        if near is not None:
            ok &= seconds >= max(0, near - SECONDS_APART)
            ok &= seconds <= min(near + SECONDS_APART, 0xFFFFFFFF)
        found.append(np.flatnonzero(ok) * 4 + phase + window.start)
    return np.sort(np.concatenate(found))


def _chains(data: bytes, at: int, shape: Shape, near: int | None, *, ended: bool) -> bool:
    words = struct.Struct(shape.order + "IIII").unpack_from
    last = near
    for links in range(CHAIN):
        if at == len(data):
            return ended and links > 0
        if at + shape.size > len(data):
            return False
        seconds, fraction, captured, original = words(data, at)
        if not LEAST_PACKET <= captured <= min(original, shape.longest):
            return False
        if original > MAX_ORIGINAL or fraction >= shape.fractions:
            return False
        if last is not None and abs(seconds - last) > SECONDS_APART:
            return False
        last = seconds
        at += shape.size + captured
    return True

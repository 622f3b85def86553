"""Where packets begin in the middle of a pcap: behind damage, or at the edge of a split.

Law: a chain of plausible headers is a guess and never a proof (a packet may carry a capture); who
must be certain compares the guess with the end that the stretch before it reaches.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

CHAIN: Final = 4
"""Headers that must follow one another before a place is believed."""

LEAST_PACKET: Final = 14
MAX_ORIGINAL: Final = 1 << 26
SECONDS_APART: Final = 31 * 86400


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
    for at in plausible(data, start, shape, near).tolist():
        if _chains(data, at, shape, near, ended=ended):
            return int(at)
    return None


def plausible(data: bytes, start: int, shape: Shape, near: int | None) -> npt.NDArray[np.int64]:
    """List the offsets at which a packet header may stand, each judged alone."""
    found = []
    for phase in range(4):
        words = np.frombuffer(
            data, shape.order + "u4", max(0, (len(data) - start - phase) // 4), start + phase
        )
        if len(words) < 4:
            continue
        seconds, fraction, captured, original = words[:-3], words[1:-2], words[2:-1], words[3:]
        ok = (captured <= shape.longest) & (captured >= LEAST_PACKET) & (captured <= original)
        ok &= (original <= MAX_ORIGINAL) & (fraction < shape.fractions)
        if near is not None:
            ok &= seconds >= max(0, near - SECONDS_APART)
            ok &= seconds <= min(near + SECONDS_APART, 0xFFFFFFFF)
        found.append(np.flatnonzero(ok) * 4 + phase + start)
    return np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)


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

"""TCP segments as columns of numpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..files.columns import Ints
from .segment_rows import KEY_BYTES, SegmentRows

KEY: Final = np.dtype(
    [
        ("source_high", "u8"),
        ("source_low", "u8"),
        ("source_port", "u2"),
        ("destination_high", "u8"),
        ("destination_low", "u8"),
        ("destination_port", "u2"),
    ]
)
"""The key of a flow: it identifies one direction of a connection."""

assert KEY.itemsize == KEY_BYTES

NUMBERS: Final = ("packet", "ts", "seq", "ack", "at", "captured", "original", "flags")
"""The columns of a row of `SegmentRows.numbers`."""


@dataclass(frozen=True, slots=True)
class Segments:
    """TCP segments in packet order; row i of every column is segment i.

    data: the buffer of the payloads. packet: 1-based number. ts: nanoseconds. The addresses are 128
    bits in two halves, IPv4 in its IPv6-mapped form. ports: source << 16 | destination. at: offset
    of the payload. captured: captured payload bytes. original: payload bytes on the wire. flags: as
    in `SegmentRows`.
    """

    data: bytes
    packet: Ints
    ts: Ints
    source_high: npt.NDArray[np.uint64]
    source_low: npt.NDArray[np.uint64]
    destination_high: npt.NDArray[np.uint64]
    destination_low: npt.NDArray[np.uint64]
    ports: Ints
    seq: Ints
    ack: Ints
    flags: Ints
    at: Ints
    captured: Ints
    original: Ints

    def __len__(self) -> int:
        return len(self.packet)

    def rows(self) -> SegmentRows:
        """Return the segments for reassembly."""
        keys: np.ndarray[Any, Any] = np.empty(len(self), KEY)
        keys["source_high"], keys["source_low"] = self.source_high, self.source_low
        keys["destination_high"] = self.destination_high
        keys["destination_low"] = self.destination_low
        keys["source_port"], keys["destination_port"] = self.ports >> 16, self.ports & 0xFFFF
        numbers: np.ndarray[Any, Any] = np.empty((len(self), len(NUMBERS)), "<i8")
        for column, name in enumerate(NUMBERS):
            numbers[:, column] = getattr(self, name)
        if (self.packet[1:] < self.packet[:-1]).any():
            order = np.argsort(self.packet, kind="stable")
            keys, numbers = keys[order], numbers[order]
        return SegmentRows(self.data, keys.tobytes(), numbers.tobytes())

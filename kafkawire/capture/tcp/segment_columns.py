"""Columns of segments as bytes, which compiled code reads without creating Python integers.

Law: rows are in packet order; a key identifies one direction of a connection.

    keys    | source: address, port; destination: address, port | ...     36 bytes each
    others  | packet | packet | ...                                       little-endian int64 each
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..packets.parser import Segments

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

NUMBERS: Final = ("packet", "ts", "seq", "ack", "at", "captured", "original", "flags")


def columns_of(segments: Segments) -> tuple[bytes, ...]:
    """Return the keys of segments, and the columns NUMBERS."""
    keys = np.empty(len(segments), KEY)
    keys["source_high"], keys["source_low"] = segments.source_high, segments.source_low
    keys["destination_high"] = segments.destination_high
    keys["destination_low"] = segments.destination_low
    keys["source_port"], keys["destination_port"] = segments.ports >> 16, segments.ports & 0xFFFF
    columns: list[np.ndarray[Any, Any]] = [keys]
    columns += [getattr(segments, name).astype("<i8", copy=False) for name in NUMBERS]
    if (segments.packet[1:] < segments.packet[:-1]).any():
        order = np.argsort(segments.packet, kind="stable")
        columns = [column[order] for column in columns]
    return tuple(column.tobytes() for column in columns)

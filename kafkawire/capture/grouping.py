"""Segments as rows of bytes: what is asked of each of them, side by side, for compiled code to read
without an object for every number.

Law: a row says what the columns say; its first bytes tell the direction of a connection from all
others.

    | source, destination: address and port each | packet | ts | seq | ack | at | captured | ...
"""

from __future__ import annotations

from typing import Final

import numpy as np

from .packets import Segments

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
"""What tells one direction of a connection from all others."""

NUMBERS: Final = ("packet", "ts", "seq", "ack", "at", "captured", "original", "flags")
"""Behind the key, little-endian int64 each."""

ROW: Final = np.dtype([("key", KEY), *((name, "<i8") for name in NUMBERS)])


def rows_of(segments: Segments) -> bytes:
    """Put segments into rows, in packet order."""
    rows = np.empty(len(segments), ROW)
    key = rows["key"]
    key["source_high"], key["source_low"] = segments.source_high, segments.source_low
    key["destination_high"] = segments.destination_high
    key["destination_low"] = segments.destination_low
    key["source_port"], key["destination_port"] = segments.ports >> 16, segments.ports & 0xFFFF
    for name in NUMBERS:
        rows[name] = getattr(segments, name)
    if (segments.packet[1:] < segments.packet[:-1]).any():
        rows = rows[np.argsort(segments.packet, kind="stable")]
    return rows.tobytes()

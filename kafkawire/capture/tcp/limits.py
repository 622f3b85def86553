"""Limits of TCP reassembly.

All buffered data counts against a limit; data beyond it is given up, and an event reports it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class ReassemblyLimits:
    """How much data reassembly buffers, and how long it waits.

    Times are nanoseconds between packets of the capture.

    max_held_bytes, max_held_segments: out-of-order data of one side.
    max_total_bytes: out-of-order data and delivered bytes kept for comparison, of all connections.
    max_window_bytes: the largest distance of a segment from the next expected byte.
    max_connections: connections tracked at a time.
    remembered_bytes: delivered bytes of a side that retransmissions are compared with.
    reorder_ns: how long after its acknowledgment a packet may still appear in the capture.
    gap_timeout_ns: how long to wait for missing bytes that were not acknowledged.
    silence_ns: idle time after which a sequence number that does not continue begins a new
    connection.
    """

    max_held_bytes: int = 1 << 23
    max_held_segments: int = 1 << 15
    max_total_bytes: int = 1 << 26
    max_window_bytes: int = 1 << 28
    max_connections: int = 3 << 12
    remembered_bytes: int = 1 << 12
    reorder_ns: int = 50_000_000
    gap_timeout_ns: int = 30_000_000_000
    silence_ns: int = 300_000_000_000

    def __reduce__(self) -> tuple[Any, ...]:
        # a compiled frozen dataclass cannot be filled in after it was created
        return ReassemblyLimits, (
            self.max_held_bytes,
            self.max_held_segments,
            self.max_total_bytes,
            self.max_window_bytes,
            self.max_connections,
            self.remembered_bytes,
            self.reorder_ns,
            self.gap_timeout_ns,
            self.silence_ns,
        )


DEFAULT_REASSEMBLY: Final = ReassemblyLimits()

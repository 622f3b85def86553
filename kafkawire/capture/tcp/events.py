"""Events of TCP reassembly: runs of bytes, gaps, conflicts, discarded bytes, closed connections.

Events are reported in the order in which they became known. The runs and gaps of one side are
contiguous: each begins where the one before it ended. Positions count payload bytes from the first
byte that the side sent, or from its first captured byte.

    side 0   Run 0..900   Gap 900..1000   Run 1000..5000
    Conflict, Discarded: captured bytes that are in no run
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, TypeAlias

from .connection import Connection, Run


class GapReason(StrEnum):
    """Why bytes are missing."""

    LOST = "lost"
    """The peer acknowledged the bytes, so they were sent and not captured."""
    CUT = "cut"
    """The packet was captured without its end (snaplen)."""
    TIMEOUT = "timeout"
    """The bytes did not arrive before the gap timeout."""
    LIMIT = "limit"
    """Too much out-of-order data was buffered behind the gap."""
    END = "end"
    """The connection or the capture ended before the bytes arrived."""


class DiscardReason(StrEnum):
    """Why captured bytes that are not duplicates on an open connection are in no run."""

    LATE = "late"
    """They arrived after their gap had been reported."""
    BEFORE = "before"
    """They precede the first captured byte of a connection whose SYN was not captured."""
    OUTSIDE = "outside"
    """Their sequence number is far out of the window."""
    AFTER = "after"
    """They arrived after the connection was closed, or in a RST segment."""
    REPEATED = "repeated"
    """They arrived after the connection was closed, and repeat what it delivered."""


class CloseReason(StrEnum):
    """How a connection ended."""

    FINISHED = "finished"
    """Both sides sent a FIN and acknowledged the other's; all data before was delivered or given
    up.
    """
    RESET = "reset"
    """A side sent a RST."""
    REPLACED = "replaced"
    """A new connection began between the same addresses and ports."""
    FORGOTTEN = "forgotten"
    """There were too many connections, and this one was idle for longest."""
    END = "end"
    """The capture ended."""


class Gap(NamedTuple):
    """Bytes of a side that were not captured; packet, time_ns: when the gap was given up."""

    connection: Connection
    side: int
    position: int
    length: int
    reason: GapReason
    packet: int
    time_ns: int

    @property
    def end(self) -> int:
        return self.position + self.length


class Conflict(NamedTuple):
    """A retransmission with other bytes; the bytes captured first are kept.

    length: the number of bytes that differ.
    """

    connection: Connection
    side: int
    position: int
    length: int
    packet: int
    time_ns: int


class Discarded(NamedTuple):
    """Captured bytes that are in no run."""

    connection: Connection
    side: int
    position: int
    length: int
    reason: DiscardReason
    packet: int
    time_ns: int


class Closed(NamedTuple):
    """A connection was closed: its last event."""

    connection: Connection
    reason: CloseReason
    packet: int
    time_ns: int


Event: TypeAlias = Run | Gap | Conflict | Discarded | Closed

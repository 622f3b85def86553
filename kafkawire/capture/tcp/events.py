"""What reassembly says: runs of bytes, gaps between them, and what became of every other captured
byte.

Law: events told together come in the order in which they became known. For each side of a
connection runs and gaps leave nothing out: each begins at the position where the one before it
ended. Positions count payload bytes from the first one that the side sent, or was seen to send.

    side 0   Run 0..900   Gap 900..1000   Run 1000..5000        Conflict, Discarded: captured bytes
    that are in no run
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from .run import Run

if TYPE_CHECKING:
    from .connection import Connection


class GapReason(StrEnum):
    """Why bytes are missing."""

    LOST = "lost"
    """The peer acknowledged them: they were sent, and the capture missed them."""
    CUT = "cut"
    """The packet was captured without its end (snaplen)."""
    TIMEOUT = "timeout"
    """They did not come for too long."""
    LIMIT = "limit"
    """Too much was waiting behind them."""
    END = "end"
    """The connection or the capture ended first."""


class DiscardReason(StrEnum):
    """Why captured bytes are in no run, apart from being there twice."""

    LATE = "late"
    """They came after the gap in their place had been given up."""
    BEFORE = "before"
    """They lie before the first byte seen of a connection that was joined in its middle."""
    OUTSIDE = "outside"
    """Their sequence number is far from everything else on the connection."""
    AFTER = "after"
    """They came after the connection had ended, or with a RST."""


class CloseReason(StrEnum):
    """How a connection ended."""

    FINISHED = "finished"
    """Both sides sent their FIN and acknowledged the other's, and everything before was seen or
    given up.
    """
    RESET = "reset"
    REPLACED = "replaced"
    """The same addresses and ports began a new connection."""
    FORGOTTEN = "forgotten"
    """There were too many connections; this one was silent for longest."""
    END = "end"
    """The capture ended."""


class Gap(NamedTuple):
    """Bytes of a side that are not in the capture; packet and time_ns: when that was certain."""

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
    """A packet sent other bytes for a place that already had some; the first ones stand. length:
    bytes that differ.
    """

    connection: Connection
    side: int
    position: int
    length: int
    packet: int
    time_ns: int


class Discarded(NamedTuple):
    """Captured bytes that could not be placed."""

    connection: Connection
    side: int
    position: int
    length: int
    reason: DiscardReason
    packet: int
    time_ns: int


class Closed(NamedTuple):
    """Nothing more comes from this connection."""

    connection: Connection
    reason: CloseReason
    packet: int
    time_ns: int


Event: TypeAlias = Run | Gap | Conflict | Discarded | Closed

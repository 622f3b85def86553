"""How much reassembly may keep, and how much it keeps.

Law: whatever waits is counted here, and what does not fit is given up by an event that says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from mypy_extensions import i64, mypyc_attr

if TYPE_CHECKING:
    from .flow import Flow


@dataclass(frozen=True, slots=True)
class ReassemblyLimits:
    """How much is waited for, and how long, in nanoseconds of the capture's own time.

    max_held_bytes, max_held_segments: behind the holes of one side.
    max_total_bytes: of all sides, together with the bytes remembered.
    max_window_bytes: how far from the awaited byte a segment may lie.
    max_connections: remembered at a time.
    remembered_bytes: the last bytes of a side, kept to compare repetitions with.
    reorder_ns: how long after its acknowledgment a packet may still turn up in the capture.
    patience_ns: how long a hole is waited for that nobody acknowledged.
    silence_ns: after that, a sequence number that does not continue begins a new connection.
    """

    max_held_bytes: int = 1 << 23
    max_held_segments: int = 1 << 15
    max_total_bytes: int = 1 << 26
    max_window_bytes: int = 1 << 28
    max_connections: int = 3 << 12
    remembered_bytes: int = 1 << 12
    reorder_ns: int = 50_000_000
    patience_ns: int = 30_000_000_000
    silence_ns: int = 300_000_000_000

    def __reduce__(self) -> tuple[Any, ...]:
        # compiled and frozen, it cannot be filled in once it is made
        return ReassemblyLimits, (
            self.max_held_bytes,
            self.max_held_segments,
            self.max_total_bytes,
            self.max_window_bytes,
            self.max_connections,
            self.remembered_bytes,
            self.reorder_ns,
            self.patience_ns,
            self.silence_ns,
        )


DEFAULT_REASSEMBLY: Final = ReassemblyLimits()


@final
class Budget:
    """Bytes that all flows together keep, and which of them hold any behind a hole."""

    def __init__(self) -> None:
        self.held: i64 = 0
        self.remembered: i64 = 0
        self.holding: dict[Flow, None] = {}


@final
@mypyc_attr(acyclic=True)
class Totals:
    """What became of the payload bytes of one side.

    delivered: in runs. duplicate: captured again with the same content, or too long after for
    comparing.
    conflicting: captured again with another. keep_alive: of keep-alive probes. discarded: see
    DiscardReason.
    missing: in gaps.
    """

    __slots__ = ("conflicting", "delivered", "discarded", "duplicate", "keep_alive", "missing")

    def __init__(self) -> None:
        self.delivered: i64 = 0
        self.duplicate: i64 = 0
        self.conflicting: i64 = 0
        self.keep_alive: i64 = 0
        self.discarded: i64 = 0
        self.missing: i64 = 0

    @property
    def captured(self) -> int:
        """Payload bytes captured of this side."""
        again = self.duplicate + self.conflicting + self.keep_alive
        return self.delivered + again + self.discarded

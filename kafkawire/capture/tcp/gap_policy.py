"""Decides how long reassembly waits for missing bytes.

Missing bytes that the peer acknowledged were received, so the capture missed their packets;
they are given up when they can no longer be out of order. Other missing bytes may still arrive
until the gap timeout.

Source: RFC 9293, section 3.4 (cumulative acknowledgment).
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, final

from mypy_extensions import mypyc_attr

from ..files.blocks import NO_TIME
from .events import GapReason
from .limits import ReassemblyLimits
from .out_of_order import OutOfOrderSegments

MAX_ACKS: Final = 256
"""Acknowledgments of missing bytes that are stored; an even number."""


@final
@mypyc_attr(acyclic=True)
class GapPolicy:
    """The state of the gap at the next expected byte; times are nanoseconds or NO_TIME."""

    __slots__ = ("_acks", "_limits", "_since")

    def __init__(self, limits: ReassemblyLimits) -> None:
        self._limits = limits
        self._acks: list[tuple[int, int]] = []
        self._since: int | None = None

    @property
    def is_idle(self) -> bool:
        """Whether it waits for no bytes."""
        return self._since is None and not self._acks

    def acknowledged(self, position: int, time_ns: int) -> None:
        """Record when the peer acknowledged all bytes before a position not yet delivered."""
        if len(self._acks) >= MAX_ACKS:
            # Of a gap whose entry is dropped, the acknowledgment now seems later than it was.
            self._acks = self._acks[1::2]
        self._acks.append((position, time_ns))

    def moved(self, position: int) -> None:
        """Record that the next expected position changed."""
        self._since = None
        if self._acks:
            del self._acks[: bisect_left(self._acks, (position + 1, NO_TIME))]

    def check(self, gap_end: int, behind: OutOfOrderSegments, time_ns: int) -> GapReason | None:
        """Return why to give up the bytes before `gap_end` now; None to keep waiting."""
        limits = self._limits
        timeless = time_ns == NO_TIME
        index = bisect_left(self._acks, (gap_end, NO_TIME))
        if index < len(self._acks):
            since = self._acks[index][1]
            if timeless or since == NO_TIME or time_ns - since >= limits.reorder_ns:
                return GapReason.LOST
        if behind.bytes > limits.max_held_bytes or len(behind) > limits.max_held_segments:
            return GapReason.LIMIT
        if self._since is None:
            self._since = None if timeless else time_ns
        elif not timeless and time_ns - self._since >= limits.gap_timeout_ns:
            return GapReason.TIMEOUT
        return None

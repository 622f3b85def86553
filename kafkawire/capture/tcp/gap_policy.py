"""How long one direction waits for the bytes of a hole.

Law: a hole that the peer acknowledged was received, so its packets were sent and the capture missed
them; it is given up once they can no longer be out of order. Any other hole may still be filled.

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
"""Acknowledgments of missing bytes that are remembered; an even number."""


@final
@mypyc_attr(acyclic=True)
class GapPolicy:
    """What is known about the hole at the awaited position; times are nanoseconds or NO_TIME."""

    __slots__ = ("_acks", "_limits", "_since")

    def __init__(self, limits: ReassemblyLimits) -> None:
        self._limits = limits
        self._acks: list[tuple[int, int]] = []
        self._since: int | None = None

    def acknowledged(self, position: int, time_ns: int) -> None:
        """Note when the peer had received all before a position that is not delivered yet."""
        if len(self._acks) >= MAX_ACKS:
            # What stays says of a hole that it was acknowledged later than it was.
            self._acks = self._acks[1::2]
        self._acks.append((position, time_ns))

    def moved(self, position: int) -> None:
        """Note that the awaited position is another one now."""
        self._since = None
        if self._acks:
            del self._acks[: bisect_left(self._acks, (position + 1, NO_TIME))]

    def verdict(self, hole_end: int, behind: OutOfOrderSegments, time_ns: int) -> GapReason | None:
        """Say why the hole up to `hole_end` is given up now; None while it is waited for."""
        limits = self._limits
        timeless = time_ns == NO_TIME
        at = bisect_left(self._acks, (hole_end, NO_TIME))
        if at < len(self._acks):
            since = self._acks[at][1]
            if timeless or since == NO_TIME or time_ns - since >= limits.reorder_ns:
                return GapReason.LOST
        if behind.bytes > limits.max_held_bytes or len(behind) > limits.max_held_segments:
            return GapReason.LIMIT
        if self._since is None:
            self._since = None if timeless else time_ns
        elif not timeless and time_ns - self._since >= limits.patience_ns:
            return GapReason.TIMEOUT
        return None

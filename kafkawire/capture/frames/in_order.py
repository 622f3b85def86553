"""Cuts frames from segments that arrive in order: the interpreted version of `in_order.c`.

The rows of a capture are the same whichever connections are tracked here. This module tracks
none, so C is only an optimisation.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from .tracked_state import TrackedState

AVAILABLE: bool = False
"""Whether connections can be tracked. (It is not final, or compiled modules would inline it.)"""

FULL: Final = -2
UNTRACKED: Final = -1
"""Why `cut` ended, where it is not the slot of the connection whose segment was declined."""

Cut: TypeAlias = tuple[int, int, int, list[bytes], bytes, int]
"""The row of the next segment, and the row behind it and the segments after it that are not tracked
either; its slot, UNTRACKED or FULL; frames; of each its slot, side, packet and time as int64; and
how many bytes more may be stored.
"""


class InOrderFrames:
    """The connections of which nothing is missing and both sides are in sync, by slot.

    max_frame_bytes: the largest valid size of a frame. remembered_bytes, max_window_bytes: as in
    `ReassemblyLimits`.
    """

    def __init__(self, max_frame_bytes: int, remembered_bytes: int, max_window_bytes: int) -> None:
        pass

    def track(self, key: bytes, client: int, state: TrackedState) -> int:  # noqa: ARG002
        """Track a connection; return its slot, or -1 if it is not ordinary.

        key: of the flow from side 0 to side 1. client: the side that sends requests.
        """
        return -1

    def untrack(self, slot: int) -> TrackedState:
        """Return the state of a connection, and track it no longer. Raises KeyError."""
        raise KeyError(slot)

    def cut(
        self,
        data: bytes,  # noqa: ARG002
        keys: bytes,  # noqa: ARG002
        numbers: bytes,  # noqa: ARG002
        start: int,
        max_frames: int,  # noqa: ARG002
        max_bytes: int,  # noqa: ARG002
        bytes_left: int,
    ) -> Cut:
        """Handle segments (see `SegmentRows`) from a row on, until one is declined.

        Ends also after so many frames or payload bytes. bytes_left: how many bytes more may be
        stored of delivered ones.
        """
        return start, start, UNTRACKED, [], b"", bytes_left

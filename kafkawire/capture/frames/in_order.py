"""Cuts frames from segments that arrive in order: the interpreted version of `in_order.c`.

The rows of a capture are the same whichever connections are tracked here. This module tracks
none, so C is only an optimisation.
"""

from __future__ import annotations

from typing import Final, TypeAlias

AVAILABLE: bool = False
"""Whether connections can be tracked. (It is not final, or compiled modules would inline it.)"""

FULL: Final = -2
UNTRACKED: Final = -1
"""Why `cut` ended, where it is not the slot of the connection whose segment was declined."""

State: TypeAlias = tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes]
"""What has changed of a connection: numbers; and of each side the last delivered bytes, the bytes
of the incomplete frame, and the packets that these were in.

numbers: last packet and its time; of each side the next sequence number, the position, what was
acknowledged, the acknowledgment number, bytes delivered, and the position of the incomplete frame;
of packets: position behind their bytes, number and time. All are int64 in little endian.
"""

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

    def track(  # noqa: PLR0913 - as `in_order.c` takes them
        self,
        key: bytes,  # noqa: ARG002
        client: int,  # noqa: ARG002
        numbers: bytes,  # noqa: ARG002
        delivered: bytes,  # noqa: ARG002
        other_delivered: bytes,  # noqa: ARG002
        held: bytes,  # noqa: ARG002
        other_held: bytes,  # noqa: ARG002
        marks: bytes,  # noqa: ARG002
        other_marks: bytes,  # noqa: ARG002
    ) -> int:
        """Track a connection; return its slot, or -1 if it is not ordinary.

        key: of the flow from side 0 to side 1. client: the side that sends requests.
        """
        return -1

    def untrack(self, slot: int) -> State:
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

"""The state of a tracked connection, between `in_order` and `Flow`, `Connection` and `Stream`."""

from __future__ import annotations

from typing import NamedTuple


class TrackedState(NamedTuple):
    """What segments in order change of a connection; `other_`: of side 1.

    delivered: the last delivered bytes. held: the bytes of the incomplete frame. marks: the packets
    that these were in: position behind their bytes, number and time. numbers: last packet and its
    time; of each side the next sequence number, the position, what was acknowledged, the
    acknowledgment number, bytes delivered, and the position of the incomplete frame. Numbers and
    marks are int64 in little endian.
    """

    numbers: bytes
    delivered: bytes
    other_delivered: bytes
    held: bytes
    other_held: bytes
    marks: bytes
    other_marks: bytes

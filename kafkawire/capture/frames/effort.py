"""Limits the cost of a search for frames.

A search decodes at most a constant number of bytes for each byte searched.
"""

from __future__ import annotations

from typing import Final, final

EFFORT: Final = 8
"""Bytes that a search may decode for each byte searched."""

MIN_EFFORT: Final = 1 << 21
"""Bytes that any search may decode: twice the largest incomplete frame."""

POSITION_COST: Final = 64
"""The least cost of checking a position, in bytes decoded; also, as many bytes copied cost as one
byte decoded.
"""


@final
class Effort:
    """The cost budget of a search, in bytes decoded.

    Hostile bytes may look like a frame at every position, and checking each takes as long as
    decoding the frame.
    """

    def __init__(self, searched: int) -> None:
        self.left: int = EFFORT * searched + MIN_EFFORT

    def spend(self, decoded: int, copied: int) -> None:
        self.left -= POSITION_COST + decoded + copied // POSITION_COST

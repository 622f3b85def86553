"""What one direction delivered last, to judge bytes that come again.

Law: the first bytes stand; a repetition is compared as far back as is remembered, and taken for the
same beyond.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mypy_extensions import mypyc_attr

REMEMBERED_GAPS: Final = 16
"""Gaps whose late bytes are told from duplicates."""


class Again(NamedTuple):
    """Bytes for positions that are delivered or given up.

    before: how many lie before position 0. late: position and length of those that fall into a gap.
    conflicting: how many differ from what was delivered, the first of them at `conflict_at`. The
    rest are duplicates.
    """

    before: int
    late: list[tuple[int, int]]
    conflicting: int
    conflict_at: int
    duplicate: int


@mypyc_attr(allow_interpreted_subclasses=True)
class Past:
    """The end of what was delivered: its last bytes, and the last gaps."""

    __slots__ = ("_gaps", "_limit", "position", "recent")

    def __init__(self, remembered_bytes: int) -> None:
        self.position = 0
        self.recent = b""
        self._limit = remembered_bytes
        self._gaps: list[tuple[int, int]] = []

    def deliver(self, data: bytes) -> None:
        """Note bytes delivered."""
        self.position += len(data)
        if len(data) >= self._limit:
            self.recent = data[len(data) - self._limit :]
        else:
            recent = self.recent + data
            self.recent = recent[max(0, len(recent) - self._limit) :]

    def skip(self, end: int) -> None:
        """Note that the bytes up to `end` are given up."""
        self._gaps = [*self._gaps[1 - REMEMBERED_GAPS :], (self.position, end)]
        self.position = end
        self.recent = b""

    def last(self, back: int) -> bytes:
        """Give the byte so far before the awaited position; none if it is not remembered."""
        return self.recent[-back:][:1] if back <= len(self.recent) else b""

    def judge(self, start: int, data: bytes) -> Again:
        """Judge bytes that came again, all of them before the awaited position."""
        before = min(max(-start, 0), len(data))
        start, data = start + before, data[before:]
        known = self.position - len(self.recent)
        end = start + len(data)
        late = [
            (max(start, gap_start), min(end, gap_end) - max(start, gap_start))
            for gap_start, gap_end in self._gaps
            if min(end, gap_end) > max(start, gap_start)
        ]
        ours = self.recent[max(start - known, 0) : max(end - known, 0)]
        differing = differences(data[len(data) - len(ours) :], ours)
        duplicate = len(data) - sum(length for _, length in late) - len(differing)
        conflict_at = end - len(ours) + differing[0] if differing else end
        return Again(before, late, len(differing), conflict_at, duplicate)


def differences(data: bytes, standing: bytes) -> list[int]:
    """List the indices at which two strings of the same length differ."""
    if data == standing:
        return []
    return [
        at for at, (ours, theirs) in enumerate(zip(data, standing, strict=True)) if ours != theirs
    ]

"""What one direction delivered last, to judge bytes that come again.

Law: the first bytes stand; a repetition is compared as far back as is remembered, and taken for the
same beyond.
"""

from __future__ import annotations

from typing import Final, NamedTuple, final

from mypy_extensions import i64, mypyc_attr

REMEMBERED_GAPS: Final = 16
"""Gaps whose late bytes are told from duplicates."""

MOST_PIECES: Final = 64
"""Pieces of what is remembered, before they are put together."""


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


@final
@mypyc_attr(acyclic=True)
class DeliveredBytes:
    """The end of what was delivered: its last bytes, and the last gaps.

    kept: how many bytes that takes, which may be twice what is remembered: they are put together
    only now and then.
    """

    __slots__ = ("_gaps", "_limit", "_pieces", "kept", "position")

    def __init__(self, remembered_bytes: int) -> None:
        self.position: i64 = 0
        self.kept: i64 = 0
        self._limit: i64 = remembered_bytes
        self._pieces: list[bytes] | None = None
        self._gaps: tuple[tuple[int, int], ...] = ()

    def deliver(self, data: bytes) -> None:
        """Note bytes delivered."""
        size: i64 = len(data)
        self.position += size
        pieces = self._pieces
        if size >= self._limit:
            self._pieces = [data[size - self._limit :]]
            self.kept = self._limit
        elif pieces is None:
            self._pieces = [data]
            self.kept = size
        else:
            pieces.append(data)
            self.kept += size
            if self.kept > 2 * self._limit or len(pieces) > MOST_PIECES:
                self.recent()

    def recent(self) -> bytes:
        """Put together the bytes that are remembered."""
        if self._pieces is None:
            return b""
        recent = b"".join(self._pieces)
        recent = recent[max(0, len(recent) - self._limit) :]
        self._pieces = [recent]
        self.kept = len(recent)
        return recent

    def forget(self) -> None:
        """Remember no bytes."""
        self._pieces = None
        self.kept = 0

    def skip(self, end: int) -> None:
        """Note that the bytes up to `end` are given up."""
        self._gaps = (*self._gaps[1 - REMEMBERED_GAPS :], (self.position, end))
        self.position = end
        self.forget()

    def last(self, back: int) -> bytes:
        """Give the byte so far before the awaited position; none if it is not remembered."""
        recent = self.recent()
        return recent[-back:][:1] if back <= len(recent) else b""

    def judge(self, start: int, data: bytes) -> Again:
        """Judge bytes that came again, all of them before the awaited position."""
        before = min(max(-start, 0), len(data))
        start, data = start + before, data[before:]
        recent = self.recent()
        known = self.position - len(recent)
        end = start + len(data)
        late = [
            (max(start, gap_start), min(end, gap_end) - max(start, gap_start))
            for gap_start, gap_end in self._gaps
            if min(end, gap_end) > max(start, gap_start)
        ]
        ours = recent[max(start - known, 0) : max(end - known, 0)]
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

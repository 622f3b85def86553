"""Compares retransmissions with the bytes that one direction delivered last.

The bytes delivered first are kept; a retransmission is compared as far back as delivered bytes
are stored, and counts as a duplicate beyond.
"""

from __future__ import annotations

from typing import Final, NamedTuple, final

from mypy_extensions import i64, mypyc_attr

MAX_GAPS: Final = 16
"""Last gaps that are stored, to distinguish late bytes from duplicates."""


class Retransmission(NamedTuple):
    """The bytes of a segment before the next expected byte, by what they repeat.

    before: bytes before position 0. late: position and length of bytes that fall into a gap.
    conflicting: bytes that differ from those delivered, the first one at `conflict_at`.
    duplicate: the rest.
    """

    before: int
    late: list[tuple[int, int]]
    conflicting: int
    conflict_at: int
    duplicate: int


@final
@mypyc_attr(acyclic=True)
class DeliveredBytes:
    """The last delivered bytes of one direction, and its last gaps.

    stored: bytes stored, up to twice the limit, because old ones are dropped only now and then.
    """

    __slots__ = ("_gaps", "_limit", "_recent", "position", "stored")

    def __init__(self, remembered_bytes: int) -> None:
        self.position: i64 = 0
        self.stored: i64 = 0
        self._limit: i64 = remembered_bytes
        self._recent: bytearray | None = None
        self._gaps: tuple[tuple[int, int], ...] = ()

    def save(self) -> bytes:
        """Return the stored bytes, for `restore`."""
        return b"" if self._recent is None else bytes(self._recent)

    def restore(self, position: i64, recent: bytes) -> None:
        """Continue behind bytes that were delivered elsewhere, and stored in the same way."""
        self.position = position
        self._recent = bytearray(recent)
        self.stored = len(recent)

    def deliver(self, data: bytes) -> None:
        """Store delivered bytes. Stored ones are moved once for each `limit` bytes of new ones."""
        size: i64 = len(data)
        self.position += size
        recent = self._recent
        if recent is None or size >= self._limit:
            self._recent = bytearray(data[max(0, size - self._limit) :])
            self.stored = min(size, self._limit)
            return
        self.stored += size
        if self.stored > 2 * self._limit:
            del recent[: self.stored - self._limit]
            self.stored = self._limit
        recent += data

    def recent(self) -> bytes:
        """Return the last bytes, up to the limit."""
        if self._recent is None:
            return b""
        return bytes(self._recent[max(0, self.stored - self._limit) :])

    def clear(self) -> None:
        """Drop the stored bytes."""
        self._recent = None
        self.stored = 0

    def skip(self, end: int) -> None:
        """Record a gap up to `end`."""
        self._gaps = (*self._gaps[1 - MAX_GAPS :], (self.position, end))
        self.position = end
        self.clear()

    def last(self, back: int) -> bytes:
        """Return the byte `back` bytes before the next expected one; b"" if it is not stored."""
        recent = self.recent()
        return recent[-back:][:1] if back <= len(recent) else b""

    def compare(self, start: int, data: bytes) -> Retransmission:
        """Compare a retransmission that lies entirely before the next expected byte."""
        before = min(max(-start, 0), len(data))
        start, data = start + before, data[before:]
        recent = self.recent()
        first = self.position - len(recent)
        end = start + len(data)
        late = [
            (max(start, gap_start), min(end, gap_end) - max(start, gap_start))
            for gap_start, gap_end in self._gaps
            if min(end, gap_end) > max(start, gap_start)
        ]
        ours = recent[max(start - first, 0) : max(end - first, 0)]
        differing = differences(data[len(data) - len(ours) :], ours)
        duplicate = len(data) - sum(length for _, length in late) - len(differing)
        conflict_at = end - len(ours) + differing[0] if differing else end
        return Retransmission(before, late, len(differing), conflict_at, duplicate)


def differences(data: bytes, delivered: bytes) -> list[int]:
    """List the indices at which two strings of the same length differ."""
    if data == delivered:
        return []
    return [
        index
        for index, (ours, theirs) in enumerate(zip(data, delivered, strict=True))
        if ours != theirs
    ]

"""Counts the messages of which a capture has only a part."""

from __future__ import annotations

from .rows import Row, Status


class Losses:
    """The messages of which a capture has only a part, and the bytes that it lacks."""

    __slots__ = ("bytes", "messages")

    def __init__(self) -> None:
        self.messages = self.bytes = 0

    def add(self, row: Row) -> None:
        """Count a gap, or a message with one."""
        if row.status is Status.GAP:
            self.bytes += row.length
        elif row.status is Status.TRUNCATED:
            self.messages += 1

"""Counts the messages of which a capture has only a part."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..display import bytes_text, plural
from .rows import Row, Status

WITH_LOSSES: Final = frozenset({"connections", "problems"})
"""Tables that have what is not whole in a capture."""


class Losses:
    """The messages of which a capture has only a part, and the bytes that it lacks."""

    __slots__ = ("bytes", "messages")

    def __init__(self, messages: int = 0, bytes: int = 0) -> None:
        self.messages, self.bytes = messages, bytes

    def add(self, row: Row) -> None:
        """Count a gap, or a message with one."""
        if row.status is Status.GAP:
            self.bytes += row.length
        elif row.status is Status.TRUNCATED:
            self.messages += 1

    def text(self, lacking: str) -> str:
        """Say what the capture lacks; "" for nothing. lacking: what lacks it, too, and its verb."""
        if not (self.messages and self.bytes):
            return ""
        return (
            f"{plural(self.messages, 'message')} not whole in the capture "
            f"({bytes_text(self.bytes)} missing): {lacking} what was in them"
        )


def lack(tables: Iterable[str]) -> bool:
    """Return whether tables lack what a capture lacks, and none of them shows it."""
    return not WITH_LOSSES.issuperset(tables)

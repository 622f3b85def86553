"""Splits text into lines, part by part."""

from __future__ import annotations

from collections.abc import Iterator


class Lines:
    """Lines of text. most: bytes of a line that are kept; one more shows that there are more."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept = b""
        self._size = self._position = 0

    def feed(self, text: bytes) -> Iterator[tuple[int, bytes]]:
        """Return the lines that have ended, and where each begins in the text."""
        *lines, rest = text.split(b"\n")
        for line in lines:
            yield self._position, (self._kept + line)[: self._most + 1]
            self._position += self._size + len(line) + 1
            self._kept, self._size = b"", 0
        self._kept += rest[: self._most + 1 - len(self._kept)]
        self._size += len(rest)

    def finish(self) -> tuple[int, bytes]:
        """Return the last line, which has no end."""
        return self._position, self._kept

"""Splits text into lines, part by part."""

from __future__ import annotations

from collections.abc import Iterator


class Lines:
    """Lines of text. most: bytes of a line that are kept; one more shows that there are more."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._size = self._position = 0

    def feed(self, text: bytes) -> Iterator[tuple[int, bytes]]:
        """Return the lines that have ended, and where each begins in the text."""
        *lines, rest = text.split(b"\n")
        for line in lines:
            self._keep(line)
            yield self.finish()
            self._position += self._size + 1
            self._parts, self._size = [], 0
        self._keep(rest)

    def _keep(self, part: bytes) -> None:
        if self._size <= self._most:
            self._parts.append(part)
        self._size += len(part)

    def finish(self) -> tuple[int, bytes]:
        """Return the last line, which has no end."""
        return self._position, b"".join(self._parts)[: self._most + 1]

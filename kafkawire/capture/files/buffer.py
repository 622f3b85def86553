"""Bytes of a file that a decoder was given and has not consumed.

Law: bytes are joined only when enough of them are there, so that a long packet which comes in small
pieces is not copied once for each of them.
"""

from __future__ import annotations


class Inbox:
    """position: offset in the file of the first byte that is held."""

    def __init__(self, position: int = 0) -> None:
        self.position = position
        self._chunks: list[bytes] = []
        self._held = 0
        self._need = 0

    def __len__(self) -> int:
        return self._held

    def add(self, chunk: bytes) -> bytes | None:
        """Take a chunk; returns all that is held, None where more is needed."""
        self._chunks.append(chunk)
        self._held += len(chunk)
        return self.take() if self._held >= self._need else None

    def take(self) -> bytes:
        """Look at all that is held; it stays held until `keep`."""
        if len(self._chunks) != 1:
            self._chunks = [b"".join(self._chunks)]
        return self._chunks[0]

    def keep(self, start: int, need: int = 0) -> None:
        """Consume what lies before `start`; look again when `need` bytes are held."""
        rest = self.take()[start:]
        self.position += start
        self._chunks = [rest]
        self._held = len(rest)
        self._need = need

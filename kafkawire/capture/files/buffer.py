"""Buffers the unconsumed input bytes of a decoder.

Law: chunks are joined only when enough bytes are available, so a large packet in small chunks is
not copied once per chunk.
"""

from __future__ import annotations


class InputBuffer:
    """Input bytes; position: the offset in the file of the first held byte."""

    def __init__(self, position: int = 0) -> None:
        self.position = position
        self._chunks: list[bytes] = []
        self._held = 0
        self._need = 0

    def __len__(self) -> int:
        return self._held

    def add(self, chunk: bytes) -> bytes | None:
        """Append a chunk; return all held bytes, or None if more are needed."""
        self._chunks.append(chunk)
        self._held += len(chunk)
        return self.peek() if self._held >= self._need else None

    def peek(self) -> bytes:
        """Return all held bytes; they are consumed by `consume` only."""
        if len(self._chunks) != 1:
            self._chunks = [b"".join(self._chunks)]
        return self._chunks[0]

    def consume(self, start: int, need: int = 0) -> None:
        """Consume the bytes before `start`; `add` returns None until `need` bytes are held."""
        rest = self.peek()[start:]
        self.position += start
        self._chunks = [rest]
        self._held = len(rest)
        self._need = need

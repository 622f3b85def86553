"""The bytes that wait to be sent on one connection, in parts.

Parts are sent in order, and copied only where they are small or the socket takes less than a
piece; the transport never buffers more than one piece, so the rest stays where it is stored.

    put ─▶ parts ─▶ piece (small parts joined, large ones cut) ─▶ transport ─▶ socket
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final

SMALL_BYTES: Final = 1 << 13
"""Parts below this size are joined: a write of its own costs more than a copy."""
PIECE_BYTES: Final = 1 << 18
"""The most bytes that are written at once."""


class Output:
    """The output of one transport. Call `resume` and `pause` as its protocol is called."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._parts: deque[bytes | memoryview] = deque()
        self._full = False
        # full as soon as the socket takes less than a piece, until the transport is empty
        transport.set_write_buffer_limits(high=0)

    @property
    def is_flushed(self) -> bool:
        """Whether the socket has taken everything."""
        return not (self._full or self._parts)

    def put(self, parts: Iterable[bytes]) -> None:
        """Send parts, now or as the socket takes them."""
        self._parts.extend(parts)
        self._write()

    def pause(self) -> None:
        """Stop writing: the transport holds bytes that the socket has not taken."""
        self._full = True

    def resume(self) -> None:
        """Write again: the transport is empty."""
        self._full = False
        self._write()

    def clear(self) -> None:
        """Drop what is not sent."""
        self._parts.clear()

    def _write(self) -> None:
        while self._parts and not self._full:
            self._transport.write(self._piece())

    def _piece(self) -> bytes | memoryview:
        """Take the next bytes to write."""
        parts = self._parts
        first = parts.popleft()
        if len(first) > PIECE_BYTES:
            view = memoryview(first)
            parts.appendleft(view[PIECE_BYTES:])
            return view[:PIECE_BYTES]
        if not parts or len(first) >= SMALL_BYTES:
            return first
        joined, size = [first], len(first)
        while parts and len(parts[0]) < SMALL_BYTES and size < PIECE_BYTES:
            joined.append(parts.popleft())
            size += len(joined[-1])
        return b"".join(joined) if len(joined) > 1 else first

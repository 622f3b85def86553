"""Whether sockets have received bytes that the event loop has not read yet.

A system call per question, no descriptors of its own; where it cannot know, it says yes.
"""

from __future__ import annotations

import asyncio
import select
from typing import Final

POLLS: Final = hasattr(select, "poll")
"""Whether the platform can poll sockets (not Windows)."""
UNKNOWN: Final = -1


class Readiness:
    """The sockets of one client."""

    def __init__(self) -> None:
        self._poll = select.poll() if POLLS else None
        self._blind = 0  # sockets that cannot be polled

    def add(self, transport: asyncio.BaseTransport) -> int:
        """Watch the socket of a transport; return what `remove` takes."""
        socket = transport.get_extra_info("socket")
        number = UNKNOWN if socket is None or self._poll is None else socket.fileno()
        if self._poll is None or number < 0:
            self._blind += 1
            return UNKNOWN
        self._poll.register(number, select.POLLIN)
        return int(number)

    def remove(self, number: int) -> None:
        """Stop watching."""
        if self._poll is None or number == UNKNOWN:
            self._blind -= 1
        else:
            self._poll.unregister(number)

    def any(self) -> bool:
        """Whether a socket may have bytes to read."""
        return self._blind > 0 or (self._poll is not None and bool(self._poll.poll(0)))

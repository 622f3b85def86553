"""A client's connection, as the broker sees it.

Law: requests are taken one at a time, in order: the next waits until the one before is answered, so
answers are in order and a client that does not read costs no more than `unsent`.

    bytes ─▶ buffer ─▶ frame ─▶ request in work (`busy`) ─▶ answer ─▶ the next frame
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ..errors import InvalidLength, LimitExceeded
from .bounds import BACKLOG

if TYPE_CHECKING:
    from .security.server import Authentication

SIZE: Final = 4


@dataclass(slots=True)
class Connection:
    """One connection. busy: the `reply_to` of the request in work, if any. last_active: when its last
    whole request was taken, or the first byte of the one that is incomplete came. queued: whether
    it waits for its turn. working: whether its request is served piece by piece. paused: whether
    its client is not read.
    """

    id: int
    node_id: int
    host: str
    last_active: float
    authentication: Authentication | None = None
    buffer: bytearray = field(default_factory=bytearray)
    busy: int | None = None
    unsent: int = 0
    draining: bool = False
    closing: bool = False
    silent: bool = False
    queued: bool = False
    working: bool = False
    paused: bool = False

    @property
    def ready(self) -> bool:
        """Whether the next request may be taken."""
        return self.busy is None and not (self.draining or self.closing or self.silent)

    @property
    def has_work(self) -> bool:
        """Whether it may use a turn: to go on with its request, or to look for the next."""
        if self.working or self.busy is not None:
            return self.working and not self.closing
        stopped = self.draining or self.closing or self.silent
        return len(self.buffer) >= SIZE and not stopped

    @property
    def may_read(self) -> bool:
        """Whether more should be read of the client: not while many bytes of it wait already."""
        return (self.ready and not self.queued) or len(self.buffer) < BACKLOG

    @property
    def idle_reason(self) -> str:
        """What an idle connection waits for, in the words of the reason that it is closed with."""
        if self.draining:
            return "responses were not read for"
        return "a request was not complete after" if self.buffer else "nothing came for"

    def next_frame(self, max_bytes: int, config: str) -> bytes | None:
        """Take the next whole frame, without its size; None if it is not there yet.

        config: the key that `max_bytes` is from. Raises InvalidLength, LimitExceeded.
        """
        buffer = self.buffer
        if len(buffer) < SIZE:
            return None
        size = int.from_bytes(buffer[:SIZE], "big", signed=True)
        if size < 0:
            raise InvalidLength(f"a frame of {size} bytes", "", 0)
        if size > max_bytes:
            raise LimitExceeded(f"a frame of {size} bytes; {config} is {max_bytes}", "", 0)
        if len(buffer) < SIZE + size:
            return None
        frame = bytes(memoryview(buffer)[SIZE : SIZE + size])
        del buffer[: SIZE + size]
        return frame

"""A client's connection, as the broker sees it.

Law: requests are taken one at a time, in order: the next waits until the one before is answered, so
answers are in order and a client that does not read costs no more than `unsent`.

    bytes ─▶ buffer ─▶ frame ─▶ request in work (`busy`) ─▶ answer ─▶ the next frame
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ..errors import InvalidLength, LimitExceeded

if TYPE_CHECKING:
    from .sasl.server import Authentication

SIZE: Final = 4


@dataclass(slots=True)
class Connection:
    """One connection. busy: the `reply_to` of the request in work, if any. heard_at: when something
    came last.
    """

    id: int
    node_id: int
    host: str
    heard_at: float
    authentication: Authentication | None = None
    buffer: bytearray = field(default_factory=bytearray)
    busy: int | None = None
    unsent: int = 0
    draining: bool = False
    closing: bool = False
    silent: bool = False

    @property
    def ready(self) -> bool:
        """Whether the next request may be taken."""
        return self.busy is None and not (self.draining or self.closing or self.silent)

    def next_frame(self, max_bytes: int) -> bytes | None:
        """Take the next whole frame, without its size; None if it is not there yet.

        Raises InvalidLength, LimitExceeded.
        """
        buffer = self.buffer
        if len(buffer) < SIZE:
            return None
        size = int.from_bytes(buffer[:SIZE], "big", signed=True)
        if size < 0:
            raise InvalidLength(f"a frame of {size} bytes", "", 0)
        if size > max_bytes:
            raise LimitExceeded(
                f"a frame of {size} bytes; socket.request.max.bytes is {max_bytes}", "", 0
            )
        if len(buffer) < SIZE + size:
            return None
        frame = bytes(memoryview(buffer)[SIZE : SIZE + size])
        del buffer[: SIZE + size]
        return frame

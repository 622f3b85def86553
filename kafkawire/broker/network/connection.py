"""A client's connection on the broker's side.

Requests of a connection are processed one at a time, in order: the next one waits for the
response to the one before. So responses are in order, and a client that does not read costs no more
memory than `unsent`.

    bytes ─▶ buffer ─▶ frame ─▶ request in process (`busy`) ─▶ response ─▶ next frame
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ...errors import InvalidLength, LimitExceeded
from ..bounds import BACKLOG
from ..request import ANONYMOUS
from ..security.protocols import SecurityProtocol

if TYPE_CHECKING:
    from ..security.server import Authentication

SIZE: Final = 4


@dataclass(slots=True)
class Connection:
    """One connection.

    busy: the `reply_to` of the request in process, if any. last_active: when its last complete
    request was taken, or the first byte of an incomplete one arrived. queued: whether it is queued
    in the scheduler. working: whether its request is processed in several time slices. paused:
    whether reading from its client is paused. silent: a fault dropped a response, so nothing more
    is sent. muted: whether its client exceeded a quota and has to wait. listener: the name of the
    listener that accepted it, "" in memory; protocol: of that listener. user: the principal of its
    certificate; that of SASL is in `authentication`. time: seconds in which its request was
    processed; begun: when the current slice of it began, by the clock of the context. throttled:
    whether its address has opened too many, so that it is not served and closes soon. waiting:
    whether it has no slot yet; counted: whether it has one.
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
    muted: bool = False
    listener: str = ""
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    user: str = ANONYMOUS
    time: float = 0.0
    begun: float | None = None
    throttled: bool = False
    waiting: bool = False
    counted: bool = False

    @property
    def ready(self) -> bool:
        """Whether the next request may be processed."""
        stopped = self.draining or self.closing or self.silent or self.muted or self.waiting
        return self.busy is None and not stopped

    @property
    def has_work(self) -> bool:
        """Whether it can use a time slice: to continue its request, or to take the next one."""
        if self.working or self.busy is not None:
            return self.working and not self.closing
        return len(self.buffer) >= SIZE and not (
            self.draining or self.closing or self.silent or self.muted or self.waiting
        )

    @property
    def may_read(self) -> bool:
        """Whether to read more from the client: not while too many bytes are buffered."""
        return len(self.buffer) < BACKLOG or (self.ready and not self.queued)

    @property
    def idle_reason(self) -> str:
        """What an idle connection was waiting for; begins the reason it is closed with."""
        if self.draining:
            return "responses not read within"
        return "request not complete within" if self.buffer else "no request within"

    def next_frame(self, max_bytes: int, config: str) -> bytes | None:
        """Take the next complete frame, without its size; None if it is incomplete.

        config: the configuration key of `max_bytes`. Raises InvalidLength, LimitExceeded.
        """
        buffer = self.buffer
        if len(buffer) < SIZE:
            return None
        size = int.from_bytes(buffer[:SIZE], "big", signed=True)
        if size < 0:
            raise InvalidLength(f"invalid frame size {size}", "", 0)
        if size > max_bytes:
            raise LimitExceeded(f"frame of {size} bytes exceeds {config} ({max_bytes})", "", 0)
        end = SIZE + size
        if len(buffer) < end:
            return None
        frame = bytes(memoryview(buffer)[SIZE:end])
        del buffer[:end]
        return frame

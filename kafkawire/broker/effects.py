"""The effects that a broker returns to its caller for its clients, in order."""

from __future__ import annotations

from typing import NamedTuple

from ..primitives import Message
from .fetched import Fetched
from .request import Request


class Reply(NamedTuple):
    """Send a response frame (or what a fault left of it): `buffers`, one after the other.

    data: the same joined.
    """

    connection: int
    buffers: list[bytes]

    @property
    def data(self) -> bytes:
        return b"".join(self.buffers)


class Close(NamedTuple):
    """Close the connection after the bytes sent before are flushed."""

    connection: int
    reason: str


class AwaitDrain(NamedTuple):
    """Raise `Drained` when the sent bytes are flushed; no request is processed until then."""

    connection: int


class PauseReading(NamedTuple):
    """Stop reading from a client until `ResumeReading`: too many bytes of it are buffered."""

    connection: int


class ResumeReading(NamedTuple):
    """Read from a client again."""

    connection: int


class Report(NamedTuple):
    """Reports a request and its response.

    result: the response; of a Fetch, perhaps apart from its records.
    took: seconds since the request arrived.
    """

    request: Request
    result: Message | Fetched | None
    took: float

    @property
    def response(self) -> Message | None:
        """The response; None if none was sent (acks=0, or dropped by a fault)."""
        return self.result.complete() if isinstance(self.result, Fetched) else self.result


Effect = Reply | Close | AwaitDrain | PauseReading | ResumeReading | Report

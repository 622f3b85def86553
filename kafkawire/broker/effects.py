"""The effects that a broker returns to its caller for its clients, in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..display import printable
from ..primitives import Message, Structure
from ..protocol import ErrorCode
from ..protocol.fields import Field, Step, steps_to
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


class PauseAccepting(NamedTuple):
    """Read nothing from a connection until `ResumeAccepting`, and accept none after it.

    It waits for a slot at its listener (`max.connections`).
    """

    connection: int


class ResumeAccepting(NamedTuple):
    """Read from a connection that has waited, and accept others again."""

    connection: int


class PauseReading(NamedTuple):
    """Stop reading from a client until `ResumeReading`: too many bytes of it are buffered."""

    connection: int


class ResumeReading(NamedTuple):
    """Read from a client again."""

    connection: int


class Report(NamedTuple):
    """Reports a request and its response.

    response: None if none was sent (acks=0, or dropped by a fault).
    took: seconds since the request arrived.
    """

    request: Request
    response: Message | None
    took: float

    def __repr__(self) -> str:
        """Return `<Produce v10, client app, broker 1: NOT_LEADER_OR_FOLLOWER>`."""
        request, response = self.request, self.response
        name = type(request.body).__name__.removesuffix("Request")
        if response is None:
            outcome = "no response"
        else:
            codes = sorted(set(error_codes(response, request.version)))
            outcome = ", ".join(map(ErrorCode.name_of, codes)) or "ok"
        client = "" if request.client_id is None else f", client {printable(request.client_id)}"
        return f"<{name} v{request.version}{client}, broker {request.node_id}: {outcome}>"


FlowControl = AwaitDrain | PauseAccepting | ResumeAccepting | PauseReading | ResumeReading
Effect = Reply | Close | FlowControl | Report


def error_codes(message: Message, version: int) -> Iterator[int]:
    """Yield the error codes of a response other than 0."""
    yield from _codes(message, steps_to(type(message), version, _is_error_code))


def _is_error_code(_: type[Structure], field: Field) -> bool | None:
    return True if field.attribute.endswith("error_code") and field.is_a("int16") else None


def _codes(value: Any, steps: tuple[Step[bool], ...]) -> Iterator[int]:
    for step in steps:
        inner = getattr(value, step.attribute)
        if step.use:
            if inner:
                yield inner
        elif inner is not None:
            for each in inner if isinstance(inner, list) else (inner,):
                yield from _codes(each, step.inner)

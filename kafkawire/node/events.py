"""The events of a node.

Events are values; the time is passed beside them (`handle(event, now)`).
"""

from __future__ import annotations

from typing import NamedTuple

from ..primitives import Message


class RequestReceived(NamedTuple):
    """A request arrived at a listener. token: chosen by the caller, at least 0, never reused."""

    token: int
    listener: str
    version: int
    body: Message


class ResponseReceived(NamedTuple):
    """The response to a `SendRequest`.

    None: the connection failed, the time (`request.timeout.ms`) is over, or the other side does
    not support the request. Every `SendRequest` is followed by one of these.
    """

    token: int
    body: Message | None


class ShutdownRequested(NamedTuple):
    """The process should end: others take over what the node leads, and the logs are closed."""


Event = RequestReceived | ResponseReceived | ShutdownRequested

"""The requests in process, and the way of their responses to clients, as Kafka's RequestChannel.

A request is in `pending` from its arrival to its response, or to the end of its connection.

    response ─▶ frame ─▶ fault ─┬─▶ Report, Reply
                                └─▶ delayed until `ReplyDue`, damaged, dropped, or Close
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from ...errors import EncodeError
from ...metadata.client_quotas import CONNECTION_CREATION
from ...primitives import Message
from ...protocol import ErrorCode
from ...protocol.frame import encode_response_buffers
from ..bounds import UNSENT
from ..context import Context
from ..effects import AwaitDrain, Close, Reply, Report
from ..events import MutedUntil, ReplyDue
from ..faults import Action, Fault
from ..forwarding.repairs import shorten_error_messages
from ..request import Request
from .connection import Connection
from .connections import Connections
from .scheduler import RequestScheduler

ErrorResponse = Callable[[Request, ErrorCode], Message]
Complete = Callable[[Any], None]
LOG: Final = logging.getLogger("kafkawire.broker")


class RequestChannel:
    """The requests in process of all connections, by `reply_to`, and the faults that they hit.

    error_response: builds the response to a request that has failed.
    """

    def __init__(
        self,
        context: Context,
        connections: Connections,
        scheduler: RequestScheduler,
        error_response: ErrorResponse,
    ) -> None:
        self.context = context
        self.connections = connections
        self.scheduler = scheduler
        self.pending: dict[int, Request] = {}
        self.faults: dict[int, Fault] = {}
        self.completions: dict[int, Complete] = {}
        """What completes the response to a request of which a part was refused."""
        self.error_response = error_response
        self.before_response: Callable[[Request, Message, float], None] | None = None
        """Throttles the client of a request, and says so in its response; None without quotas."""
        self._delayed: dict[int, list[bytes]] = {}

    # -- responses

    def respond(self, reply_to: int, message: Message, now: float) -> None:
        """Send the response to a request, or what a fault leaves of it.

        Does nothing if its client has disconnected.
        """
        request = self.pending.get(reply_to)
        if request is None:
            return
        fault = self.faults.pop(reply_to, None) if self.faults else None
        complete = self.completions.pop(reply_to, None) if self.completions else None
        try:
            if complete is not None:
                complete(message)
            if self.before_response is not None:
                self.before_response(request, message, now)
            frame = _encode(message, request)
        except Exception as error:
            LOG.exception("encoding the response to %s v%d", request.api_key.name, request.version)
            encoded = self._encode_error(request, error, now)
            if encoded is None:
                return
            message, frame = encoded
        if self.context.reports:
            self.report(request, message, now)
        if fault is not None and fault.action is Action.DELAY:
            self._delayed[reply_to] = frame
            self.context.deadlines.set(ReplyDue(reply_to), now + fault.delay)
            return
        connection = self.finish(request)
        if fault is None or fault.action is Action.ERROR:
            self.send(connection, frame)
        else:
            self._send_faulty(connection, frame, fault)
        auth = connection.authentication
        if auth is not None and auth.failed and not connection.closing:
            self.close(connection, f"{request.api_key.name}: authentication failed")

    def report(self, request: Request, message: Message | None, now: float) -> None:
        """Report a request and its response; the Fetch of a follower is not worth it."""
        context = self.context
        if context.reports and not request.is_from_follower:
            context.effects.append(Report(request, message, now - request.at))

    def fail(self, reply_to: int, error: ErrorCode, now: float) -> None:
        """Send the response with an error to a request, if its client has not disconnected."""
        request = self.pending.get(reply_to)
        if request is not None:
            self.respond(reply_to, self.error_response(request, error), now)

    def _encode_error(
        self, request: Request, error: Exception, now: float
    ) -> tuple[Message, list[bytes]] | None:
        """Encode the response to a request that has failed; close if that fails too."""
        try:
            message = self.error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR)
            frame = _encode(message, request)
        except Exception:
            LOG.exception(
                "encoding the error response to %s v%d", request.api_key.name, request.version
            )
        else:
            return message, frame
        self.report(request, None, now)
        self.close(self.finish(request), unexpected(error))
        return None

    def _send_faulty(self, connection: Connection, frame: list[bytes], fault: Fault) -> None:
        """Send what a fault leaves of a response."""
        if fault.action is Action.DROP:
            connection.silent = True
        elif fault.action is Action.DISCONNECT:
            self.close(connection, "a fault: disconnect")
        else:
            self.send(connection, [fault.damage(b"".join(frame), self.context.draw)])
            if fault.action is Action.TRUNCATE:
                self.close(connection, "a fault: truncated")

    def send_delayed(self, reply_to: int) -> None:
        """Send a response that a fault delayed."""
        frame = self._delayed.pop(reply_to)
        request = self.pending.get(reply_to)
        if request is not None:
            self.send(self.finish(request), frame)

    # -- the end of a request

    def finish(self, request: Request) -> Connection:
        """Mark a request as finished; its connection may process the next."""
        del self.pending[request.reply_to]
        if self.completions:
            self.completions.pop(request.reply_to, None)
        connection = self.connections.find(request.connection)
        assert connection is not None  # its request is pending
        connection.busy = None
        if connection.buffer or connection.paused:
            self.scheduler.resume(connection)
        return connection

    def end(self, reply_to: int, now: float) -> None:
        """Finish a request without a response, if its client has not disconnected."""
        request = self.pending.get(reply_to)
        if request is not None:
            self.finish(request)
            self.report(request, None, now)

    def forget(self, connection: Connection) -> Request | None:
        """Drop the request in process of a client that disconnected, and return it."""
        if connection.busy is None:
            return None
        self.faults.pop(connection.busy, None)
        self.completions.pop(connection.busy, None)
        if self._delayed.pop(connection.busy, None) is not None:
            self.context.deadlines.cancel(ReplyDue(connection.busy))
        return self.pending.pop(connection.busy, None)

    # -- connections

    def mute(self, connection_id: int, seconds: float, now: float) -> None:
        """Take no further request of a connection for a while: its client exceeded a quota."""
        connection = self.connections.find(connection_id)
        if connection is not None:
            connection.muted = True
            self.context.deadlines.set(MutedUntil(connection_id), now + seconds)

    def take_time(self, connection_id: int) -> float:
        """Return the seconds in which the request of a connection was processed, and begin anew."""
        connection = self.connections.find(connection_id)
        if connection is None:
            return 0.0
        clock = self.context.clock()
        seconds = connection.time + (0.0 if connection.begun is None else clock - connection.begun)
        connection.time, connection.begun = 0.0, None if connection.begun is None else clock
        return seconds

    def unmute(self, connection_id: int) -> None:
        """Take requests again; close a connection that was never to be served."""
        connection = self.connections.find(connection_id)
        if connection is None:
            return
        if connection.throttled:
            self.close(connection, f"{connection.host} exceeds its {CONNECTION_CREATION}")
            return
        connection.muted = False
        self.scheduler.resume(connection)

    def send(self, connection: Connection, frame: list[bytes]) -> None:
        """Send a frame, in pieces."""
        if connection.closing:
            return
        self.context.effects.append(Reply(connection.id, frame))
        size = len(frame[0]) if len(frame) == 1 else sum(map(len, frame))
        connection.unsent += size
        self.scheduler.sent += size
        if connection.unsent > UNSENT:
            connection.draining = True
            self.context.emit(AwaitDrain(connection.id))

    def close(self, connection: Connection, reason: str) -> None:
        """Close a connection and drop its buffered requests."""
        self.connections.close(connection)
        self.context.emit(Close(connection.id, reason))


def _encode(message: Message, request: Request) -> list[bytes]:
    try:
        return encode_response_buffers(message, request.version, request.correlation_id)
    except EncodeError:
        if not shorten_error_messages(message, request.version):
            raise
        return encode_response_buffers(message, request.version, request.correlation_id)


def unexpected(error: Exception) -> str:
    """Return the reason for closing a connection after an unexpected error."""
    return f"unexpected error in the broker: {type(error).__name__}: {error}"

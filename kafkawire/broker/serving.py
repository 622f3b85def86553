"""Processes frames: header, version check, authentication, handler, faults, response.

Law: every request ends in exactly one response, in none where the protocol has none, or in a closed
connection with a reason; until then it is a delayed operation.

    frame ─┬─ after SaslHandshake v0: a raw token
           └─ header ─▶ API and version supported? authenticated? ─▶ body ─▶ fault ─▶ handler
"""

from __future__ import annotations

import logging
from types import GeneratorType
from typing import TYPE_CHECKING, Final

from ..errors import DecodeError, RemoteProtocolError, TrailingBytes, UnsupportedVersion
from ..messages.api_key import ApiKey
from ..primitives import Limits, Message
from ..protocol import ErrorCode, decode_request_body, decode_request_header, encode_frame
from .bounds import SLICE_ELEMENTS
from .connection import SIZE, Connection
from .effects import Report
from .error_responses import unknown_key, unsupported_response
from .events import ReplyDue
from .faults import Action, Fault
from .handlers import HANDLERS, api_versions, error_response
from .request import DELAYED, NO_RESPONSE, HandlerResult, Request, Work

if TYPE_CHECKING:
    from .cluster import Cluster

LOG: Final = logging.getLogger("kafkawire.broker")
BEFORE_AUTHENTICATION = frozenset(
    {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
)
KNOWN = frozenset(int(key) for key in ApiKey)
REQUEST_MAX_BYTES = "socket.request.max.bytes"
SASL_MAX_BYTES = "sasl.server.max.receive.size"


class Serving:
    """The requests in process of all connections."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.pending: dict[int, Request] = {}
        self._faults: dict[int, Fault] = {}
        self._delayed: dict[int, tuple[int, bytes]] = {}
        self._work_of: dict[int, Work] = {}
        self._count = 0
        self._limits = Limits(max_frame_bytes=cluster.settings.number(REQUEST_MAX_BYTES))

    # -- in

    def take(self, connection: Connection, now: float) -> int:
        """Continue the connection's request, or take its next complete frame.

        Returns the size of the frame, 0 if there was none; 1 for a part of a large request.
        """
        if connection.working:
            assert connection.busy is not None
            request = self.pending[connection.busy]
            self._continue(connection, request, self._work_of[connection.busy], now)
            return 1
        auth = connection.authentication
        try:
            most, config = self._limits.max_frame_bytes, REQUEST_MAX_BYTES
            if auth is not None and not auth.done:
                config = SASL_MAX_BYTES
                most = min(most, self.cluster.settings.number(config))
            frame = self.cluster.connections.next_frame(connection, most, config)
            if frame is None:
                return 0
            connection.last_active = now
            if auth is not None and auth.takes_raw_tokens:
                self._raw_token(connection, frame)
            else:
                self._request(connection, frame, now)
        except (DecodeError, UnsupportedVersion, RemoteProtocolError) as error:
            self.cluster.close(connection, str(error))
            return 0
        except Exception as error:
            LOG.exception("processing a frame of connection %d", connection.id)
            self.cluster.close(connection, unexpected(error))
            return 0
        return SIZE + len(frame)

    def _raw_token(self, connection: Connection, token: bytes) -> None:
        assert connection.authentication is not None
        result = connection.authentication.token(token)
        self.cluster.send(connection, len(result).to_bytes(4, "big") + result)

    def _request(self, connection: Connection, frame: bytes, now: float) -> None:
        head = decode_request_header(frame, limits=self._limits)
        header = head.header
        number, version = header.request_api_key, header.request_api_version
        if number not in KNOWN:
            self.cluster.send(connection, unknown_key(header.correlation_id))
            return
        key = ApiKey(number)
        versions = self.cluster.offered.get(key)
        auth = connection.authentication
        if auth is not None and not auth.done and key not in BEFORE_AUTHENTICATION:
            raise RemoteProtocolError(f"{key.name} before authentication")
        if key is ApiKey.API_VERSIONS and versions is not None and version not in versions:
            self._send_unsupported(connection, header.correlation_id)
            return
        if versions is not None and version not in versions:
            raise RemoteProtocolError(
                f"unsupported version: {key.name} v{version}; "
                f"Kafka {self.cluster.release} supports {versions}"
            )
        try:
            body = decode_request_body(key, version, frame, head.end, False, self._limits)
        except TrailingBytes:  # librdkafka's Metadata has some; Kafka ignores them too
            body = decode_request_body(key, version, frame, head.end, True, self._limits)
        self._count += 1
        request = Request(
            self._count,
            connection.id,
            connection.node_id,
            key,
            version,
            header.correlation_id,
            header.client_id,
            connection.host,
            body,
            now,
            len(frame),
        )
        self.pending[request.reply_to] = request
        connection.busy = request.reply_to
        self._work(connection, request, served=versions is not None, now=now)

    def _send_unsupported(self, connection: Connection, correlation_id: int) -> None:
        result = api_versions.unsupported(self.cluster)
        self.cluster.send(connection, encode_frame(result, 0, correlation_id))

    def _work(self, connection: Connection, request: Request, served: bool, now: float) -> None:
        fault = next(
            (f for f in self.cluster.faults if f.matches(request, self.cluster.draw)), None
        )
        if fault is not None:
            if fault.action is Action.DISCONNECT and not fault.carried_out:
                self._finished(request)
                self.cluster.close(connection, "a fault: disconnect")
                return
            self._faults[request.reply_to] = fault
        self._settle(request, self._outcome(connection, request, served, fault, now), now)

    def _outcome(
        self,
        connection: Connection,
        request: Request,
        served: bool,
        fault: Fault | None,
        now: float,
    ) -> HandlerResult:
        if not served:
            return unsupported_response(request)
        if fault is not None and fault.action is Action.ERROR:
            if not request.expects_response:  # an error of a Produce with acks=0 closes
                self.cluster.close(connection, f"a fault: {fault.error.name}, acks=0")
                return NO_RESPONSE
            return error_response(request, fault.error)
        broker = self.cluster.brokers[request.node_id]
        try:
            return HANDLERS[request.api_key].handle(broker, request, connection, now)
        except RemoteProtocolError:
            raise  # a protocol error of the client closes the connection
        except Exception as error:
            LOG.exception("processing %s v%d", request.api_key.name, request.version)
            return self._failed(connection, request, error)

    def _failed(self, connection: Connection, request: Request, error: Exception) -> HandlerResult:
        """Respond to an unexpected error, or close if no response is expected."""
        if request.expects_response:
            return error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR)
        self.cluster.close(connection, unexpected(error))
        return NO_RESPONSE

    def _settle(self, request: Request, result: HandlerResult, now: float) -> None:
        if result is DELAYED:
            return
        if isinstance(result, GeneratorType):
            self._continue(self.cluster.connections[request.connection], request, result, now)
            return
        if result is NO_RESPONSE:
            connection = self._finished(request)
            fault = self._faults.pop(request.reply_to, None)
            self.cluster.emit(Report(request, None, now - request.at))
            if fault is not None and fault.action is Action.DISCONNECT:
                self.cluster.close(connection, "a fault: disconnect")
            return
        assert isinstance(result, Message)
        self.respond(request.reply_to, result, now)

    def _continue(self, connection: Connection, request: Request, work: Work, now: float) -> None:
        """Process the next elements of a large request; respond after the last."""
        served = 0
        while served < SLICE_ELEMENTS:
            try:
                served += next(work)
            except StopIteration as end:
                self._drop_work(connection)
                self._settle(request, end.value, now)
                return
            except Exception as error:
                LOG.exception("processing %s v%d", request.api_key.name, request.version)
                self._drop_work(connection)
                self._settle(request, self._failed(connection, request, error), now)
                return
        connection.working = True
        self._work_of[request.reply_to] = work

    def _drop_work(self, connection: Connection) -> None:
        if connection.working and connection.busy is not None:
            connection.working = False
            del self._work_of[connection.busy]

    # -- out

    def respond(self, reply_to: int, message: Message, now: float) -> None:
        """Send the response to a request, or what a fault leaves of it."""
        request = self.pending.get(reply_to)
        if request is None:
            return
        fault = self._faults.pop(reply_to, None)
        try:
            frame = encode_frame(message, request.version, request.correlation_id)
        except Exception as error:
            LOG.exception("encoding the response to %s v%d", request.api_key.name, request.version)
            try:
                message = error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR)
                frame = encode_frame(message, request.version, request.correlation_id)
            except Exception:
                LOG.exception(
                    "encoding the error response to %s v%d", request.api_key.name, request.version
                )
                self.cluster.emit(Report(request, None, now - request.at))
                self.cluster.close(self._finished(request), unexpected(error))
                return
        if fault is not None and fault.action is Action.DELAY:
            self._delayed[reply_to] = request.connection, frame
            self.cluster.deadlines.set(ReplyDue(reply_to), now + fault.delay)
            self.cluster.emit(Report(request, message, now - request.at))
            return
        connection = self._finished(request)
        self.cluster.emit(Report(request, message, now - request.at))
        if fault is None or fault.action is Action.ERROR:
            self.cluster.send(connection, frame)
        elif fault.action is Action.DROP:
            connection.silent = True
        elif fault.action is Action.DISCONNECT:
            self.cluster.close(connection, "a fault: disconnect")
        else:
            self.cluster.send(connection, fault.damage(frame, self.cluster.draw))
            if fault.action is Action.TRUNCATE:
                self.cluster.close(connection, "a fault: truncated")
        self._close_if_unauthenticated(connection, request)

    def _close_if_unauthenticated(self, connection: Connection, request: Request) -> None:
        auth = connection.authentication
        if auth is not None and auth.failed and not connection.closing:
            self.cluster.close(connection, f"{request.api_key.name}: authentication failed")

    def send_delayed(self, reply_to: int, _now: float) -> None:
        """Send a response that a fault delayed."""
        _, frame = self._delayed.pop(reply_to)
        request = self.pending.get(reply_to)
        if request is not None:
            self.cluster.send(self._finished(request), frame)

    def forget(self, connection: Connection) -> None:
        """Drop the request of a client that disconnected."""
        if connection.busy is None:
            return
        request = self.pending.pop(connection.busy, None)
        self._faults.pop(connection.busy, None)
        self._drop_work(connection)
        if self._delayed.pop(connection.busy, None) is not None:
            self.cluster.deadlines.cancel(ReplyDue(connection.busy))
        if request is not None:
            self.cluster.brokers[request.node_id].drop(request)

    def _finished(self, request: Request) -> Connection:
        """Mark a request as finished; its connection may process the next."""
        del self.pending[request.reply_to]
        connection = self.cluster.connections[request.connection]
        connection.busy = None
        self.cluster.resume(connection)
        return connection


def unexpected(error: Exception) -> str:
    """Return the reason for closing a connection after an unexpected error."""
    return f"unexpected error in the broker: {type(error).__name__}: {error}"

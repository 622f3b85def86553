"""Processes frames: header, version check, authentication, faults, handler.

Every request ends in exactly one response, in none where the protocol has none, or in a closed
connection with a reason; until then it is a delayed operation.

    frame ─┬─ after SaslHandshake v0: a raw token
           └─ header ─▶ API and version supported? authenticated? ─▶ body ─▶ fault ─▶ handler
"""

# over 300 lines: the whole way of a request, from its bytes to its outcome

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import GeneratorType
from typing import Final

from ..errors import DecodeError, RemoteProtocolError, TrailingBytes, UnsupportedVersion
from ..messages.api_key import ApiKey
from ..primitives import Limits, Message
from ..protocol import (
    ErrorCode,
    decode_request_body,
    decode_request_header,
    encode_frame_buffers,
)
from .bounds import SLICE_ELEMENTS
from .broker import Broker
from .context import Context
from .events import MetadataAwaited
from .faults import Action, Fault
from .handlers import HANDLERS, Handler, api_versions, guarded
from .network.connection import SIZE, Connection
from .network.request_channel import RequestChannel, unexpected
from .releases import Versions
from .request import (
    DELAYED,
    NO_RESPONSE,
    UNTIL_METADATA,
    HandlerResult,
    Request,
    Work,
)

LOG: Final = logging.getLogger("kafkawire.broker")
KEYS: Final[Mapping[int, ApiKey]] = {int(key): key for key in ApiKey}
REQUEST_MAX_BYTES: Final = "socket.request.max.bytes"
METADATA_WAIT_SECONDS: Final = 1.0
"""How long a request waits for a topic that it has created: clients would retry later."""
SASL_MAX_BYTES: Final = "sasl.server.max.receive.size"


class RequestHandler:
    """Processes the requests of all connections, each on the broker that it was sent to.

    brokers: the broker that the connections of a listener lead to.
    """

    def __init__(
        self,
        context: Context,
        channel: RequestChannel,
        brokers: Mapping[str, Broker],
        handlers: Mapping[ApiKey, Handler] = HANDLERS,
    ) -> None:
        self._context = context
        self._channel = channel
        self._brokers = brokers
        self._handlers = handlers
        self._work_of: dict[int, Work[Message]] = {}
        self._waiting: dict[int, Connection] = {}
        """The requests that wait for a change of the metadata, and their connections."""
        self._count = 0
        self._limits = Limits(max_frame_bytes=context.settings.number(REQUEST_MAX_BYTES))

    def _timed(self, connection: Connection, now: float) -> int:
        """Process a request, and count the time that it takes."""
        clock = self._context.clock
        begun = connection.begun = clock()
        try:
            return self.process(connection, now)
        finally:
            connection.time += clock() - (connection.begun or begun)
            connection.begun = None

    def process(self, connection: Connection, now: float) -> int:
        """Continue the connection's request, or take its next complete frame.

        Returns the size of the frame, 0 if there was none; 1 for a part of a large request.
        """
        if self._channel.before_response is not None and connection.begun is None:
            return self._timed(connection, now)
        if connection.working:
            assert connection.busy is not None
            request = self._channel.pending[connection.busy]
            self._continue(connection, request, self._work_of[connection.busy], None, now)
            return 1
        auth = connection.authentication
        try:
            most, config = self._limits.max_frame_bytes, REQUEST_MAX_BYTES
            if auth is not None and not auth.done:
                config = SASL_MAX_BYTES
                most = min(most, self._context.settings.number(config))
            frame = connection.next_frame(most, config)
            if frame is None:
                return 0
            size = SIZE + len(frame)
            self._channel.connections.buffered -= size
            connection.last_active = now
            if auth is not None and auth.takes_raw_tokens:
                self._raw_token(connection, frame, now)
            else:
                self._request(connection, frame, now)
        except (DecodeError, UnsupportedVersion, RemoteProtocolError) as error:
            self._channel.close(connection, str(error))
            return 0
        except Exception as error:
            LOG.exception("processing a frame of connection %d", connection.id)
            self._channel.close(connection, unexpected(error))
            return 0
        return size

    def _raw_token(self, connection: Connection, token: bytes, now: float) -> None:
        assert connection.authentication is not None
        result = connection.authentication.token(token, self._context.wall_ms(now))
        self._channel.send(connection, [len(result).to_bytes(4, "big") + result])

    # over 40 lines: one request from bytes to outcome
    def _request(self, connection: Connection, frame: bytes, now: float) -> None:
        head = decode_request_header(frame, limits=self._limits)
        header = head.header
        key, version = KEYS.get(header.request_api_key), header.request_api_version
        if key is None:
            raise RemoteProtocolError(f"unknown API key {header.request_api_key}")
        broker = self._brokers[connection.listener]
        versions = broker.apis.served.get(key)
        if versions is None:
            raise RemoteProtocolError(
                f"{key.name}: brokers of Kafka {broker.apis.release} do not offer it"
            )
        auth = connection.authentication
        if auth is not None:
            auth.check(key, self._context.wall_ms(now))
        if not versions.first <= version <= versions.last:
            if key is ApiKey.API_VERSIONS:
                self._send_unsupported(connection, versions, header.correlation_id)
                if auth is not None and auth.failed:
                    self._channel.close(connection, "API_VERSIONS: authentication failed")
                return
            raise RemoteProtocolError(
                f"unsupported version: {key.name} v{version}; "
                f"Kafka {broker.apis.release} supports {versions}"
            )
        try:
            body = decode_request_body(key, version, frame, head.end, False, self._limits)
        except TrailingBytes:  # librdkafka's Metadata has some; Kafka ignores them too
            body = decode_request_body(key, version, frame, head.end, True, self._limits)
        self._count = reply_to = self._count + 1
        request = Request(
            reply_to,
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
            connection.user if auth is None else auth.user,
        )
        self._channel.pending[reply_to] = request
        connection.busy = reply_to
        self._handle(connection, broker, request, now)

    def _send_unsupported(
        self, connection: Connection, supported: Versions, correlation_id: int
    ) -> None:
        result = api_versions.unsupported(supported)
        self._channel.send(connection, encode_frame_buffers(result, 0, correlation_id))

    def _handle(self, connection: Connection, broker: Broker, request: Request, now: float) -> None:
        fault = self._fault_of(request) if self._context.faults else None
        if fault is not None:
            if fault.action is Action.DISCONNECT and not fault.carried_out:
                self._channel.finish(request)
                self._channel.close(connection, "a fault: disconnect")
                return
            self._channel.faults[request.reply_to] = fault
        auth = connection.authentication
        result: HandlerResult
        if auth is not None and auth.failed:
            result = self._error(connection, request, ErrorCode.ILLEGAL_SASL_STATE, "no token")
        elif fault is not None and fault.action is Action.ERROR:
            reason = f"a fault: {fault.error.name}, acks=0"
            result = self._error(connection, request, fault.error, reason)
        else:
            try:
                handler = self._handlers[request.api_key]
                if broker.authorizer is None:
                    result = handler.handle(broker, request, request.body, connection, now)
                else:
                    result = guarded(handler, broker, request, connection, now)
            except RemoteProtocolError:
                raise  # a protocol error of the client closes the connection
            except Exception as error:
                LOG.exception("processing %s v%d", request.api_key.name, request.version)
                result = self._failed(connection, request, error)
        self._settle(request, result, now)

    def _fault_of(self, request: Request) -> Fault | None:
        """Return the first fault that matches a request; none meets what nodes send each other."""
        if request.is_from_node:
            return None
        draw = self._context.draw
        return next((each for each in self._context.faults if each.matches(request, draw)), None)

    def _error(
        self, connection: Connection, request: Request, error: ErrorCode, reason: str
    ) -> HandlerResult:
        """Respond with an error, or close, for this reason, if no response is expected."""
        if request.expects_response:
            return self._channel.error_response(request, error)
        self._channel.close(connection, reason)
        return NO_RESPONSE

    def _failed(self, connection: Connection, request: Request, error: Exception) -> HandlerResult:
        """Respond to an unexpected error, or close if no response is expected."""
        reason = unexpected(error)
        return self._error(connection, request, ErrorCode.UNKNOWN_SERVER_ERROR, reason)

    def _settle(self, request: Request, result: HandlerResult, now: float) -> None:
        if result is DELAYED:
            return
        if isinstance(result, Message):
            self._channel.respond(request.reply_to, result, now)
        elif isinstance(result, GeneratorType):
            connection = self._channel.connections[request.connection]
            self._continue(connection, request, result, None, now)
        elif result is NO_RESPONSE:
            connection = self._channel.finish(request)
            fault = self._channel.faults.pop(request.reply_to, None)
            self._channel.report(request, None, now)
            if fault is not None and fault.action is Action.DISCONNECT:
                self._channel.close(connection, "a fault: disconnect")

    def _continue(
        self,
        connection: Connection,
        request: Request,
        work: Work[Message],
        changed: bool | None,
        now: float,
    ) -> None:
        """Process the next elements of a large request; respond after the last.

        changed: whether the metadata has changed, for which it has waited.
        """
        served = 0
        while served < SLICE_ELEMENTS:
            try:
                step = work.send(changed)
            except StopIteration as end:
                self._drop_work(connection)
                self._settle(request, end.value, now)
                return
            except Exception as error:
                LOG.exception("processing %s v%d", request.api_key.name, request.version)
                self._drop_work(connection)
                self._settle(request, self._failed(connection, request, error), now)
                return
            if step == UNTIL_METADATA:
                self._wait(connection, request, work, now)
                return
            served += step
            changed = None
        connection.working = True
        self._work_of[request.reply_to] = work

    def _wait(
        self, connection: Connection, request: Request, work: Work[Message], now: float
    ) -> None:
        connection.working = False
        self._work_of[request.reply_to] = work
        self._waiting[request.reply_to] = connection
        deadline = MetadataAwaited(request.reply_to)
        self._context.deadlines.set(deadline, now + METADATA_WAIT_SECONDS)

    def metadata_changed(self, now: float) -> None:
        """Go on with the requests that wait for a change of the metadata."""
        for reply_to in list(self._waiting):
            self._resume(reply_to, True, now)

    def metadata_awaited(self, due: MetadataAwaited, now: float) -> None:
        """Go on with a request that has waited long enough."""
        self._resume(due.reply_to, False, now)

    def _resume(self, reply_to: int, changed: bool, now: float) -> None:
        connection = self._waiting.pop(reply_to)
        self._context.deadlines.cancel(MetadataAwaited(reply_to))
        request = self._channel.pending[reply_to]
        self._continue(connection, request, self._work_of[reply_to], changed, now)

    def _drop_work(self, connection: Connection) -> None:
        connection.working = False
        if connection.busy is not None and self._work_of.pop(connection.busy, None) is not None:
            self._waiting.pop(connection.busy, None)
            self._context.deadlines.cancel(MetadataAwaited(connection.busy))

    def forget(self, connection: Connection) -> None:
        """Drop the request in process of a client that disconnected."""
        self._drop_work(connection)
        request = self._channel.forget(connection)
        if request is not None:
            self._brokers[connection.listener].machines.forget(connection.id)

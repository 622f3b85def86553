"""A connection that sends any request in any version, and keeps what went over it.

Authentication is that of the clients; every wait has a timeout.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import ssl
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from ..client.config import Values
from ..client.failures import ClientError
from ..client.network.authentication import Accepted, Authentication, Refused, Token
from ..client.network.negotiated_versions import Versions
from ..client.network.oauthbearer import FromTokenProvider, OAuthBearerToken
from ..client.network.sasl import Credentials
from ..client.network.transport import RequestToken, ShellEvent, TokenFailed, TokenReceived
from ..client.security import credentials, token_source
from ..display import host_and_port
from ..messages import REGISTRY
from ..messages.api_key import ApiKey
from ..messages.api_versions_request import ApiVersionsRequest
from ..messages.api_versions_response import ApiVersionsResponse
from ..messages.sasl_authenticate_request import SaslAuthenticateRequest
from ..messages.sasl_authenticate_response import SaslAuthenticateResponse
from ..messages.sasl_handshake_response import SaslHandshakeResponse
from ..net.brokers.recording import Recording
from ..net.clients.tls import tls_context
from ..net.clients.token_requests import TokenRequests
from ..net.clients.token_sources import provider_of
from ..primitives import Message
from ..protocol.frame import SIZE, Frame, decode_frame, encode_frame, read_size
from ..protocol.json_form import Json, to_json

CLIENT_ID: Final = "kafkawire-conformance"
SOFTWARE: Final = "kafkawire-conformance"
NONCE_BYTES: Final = 24

M = TypeVar("M", bound=Message)


class Unanswered(ClientError):
    """The broker cannot be reached, closed the connection, or sent no response in time."""


class Overdue(Unanswered):
    """The broker sent no response in time."""


class Disconnected(Unanswered):
    """The broker closed the connection."""


class Exchange(NamedTuple):
    """A request and its response.

    body_version: of the response's body. data: the frame of the response; None for no response.
    """

    api: ApiKey
    version: int
    request: Message
    response: Message | None
    data: bytes | None
    body_version: int = 0

    def request_json(self) -> dict[str, Json]:
        """Return the request as in Kafka's JSON form."""
        return to_json(self.request, self.version)

    def response_json(self) -> dict[str, Json] | None:
        """Return the response as in Kafka's JSON form; None if there is none, or undecodable."""
        return None if self.response is None else to_json(self.response, self.body_version)


@dataclass(frozen=True)
class Target:
    """How to connect: client configuration, and seconds until an answer is overdue."""

    values: Values
    timeout_s: float

    def tls(self) -> ssl.SSLContext | None:
        return tls_context(self.values)


class Connection:
    """One connection, one request at a time.

    address: host and port of the broker. exchanges: what was sent and received, in order, without
    what authenticates.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        address: tuple[str, int],
        timeout_s: float,
        recording: Recording | None,
    ) -> None:
        self.address = address
        self.exchanges: list[Exchange] = []
        self._reader = reader
        self._writer = writer
        self._timeout_s = timeout_s
        self._correlation_id = 0
        self._recording = recording
        self._stream = 0
        if recording is not None:
            ours, theirs = (writer.get_extra_info(end) for end in ("sockname", "peername"))
            self._stream = recording.open(ours[:2], theirs[:2])

    @classmethod
    async def open(
        cls, address: tuple[str, int], target: Target, recording: Recording | None = None
    ) -> Connection:
        """Connect and authenticate. Raises Unanswered."""
        host, port = address
        context = target.tls()
        try:
            async with asyncio.timeout(target.timeout_s):
                reader, writer = await asyncio.open_connection(host, port, ssl=context)
        except TimeoutError:
            raise Unanswered(
                f"{host_and_port(host, port)}: no connection in {target.timeout_s:g} s"
            ) from None
        except (OSError, OverflowError, ValueError) as error:  # no address has such a host or port
            raise Unanswered(f"{host_and_port(host, port)}: {error}") from None
        opened = cls(reader, writer, address, target.timeout_s, recording)
        try:
            await opened._authenticate(target)
        except BaseException:
            opened.close()
            raise
        opened.exchanges.clear()
        return opened

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        if self._recording is not None and self._stream:
            self._recording.closed(self._stream)
            self._stream = 0

    async def send(self, request: Message, version: int, kind: type[M]) -> M:
        """Send a request; return its response.

        Raises Unanswered, DecodeError if the response is not one of that version, to the last byte.
        """
        api = api_of(request)
        number = len(self.exchanges)
        self.exchanges.append(Exchange(api, version, request, None, None))
        await self.write(self.encoded(request, version))
        data = await self.read()
        self.exchanges[number] = Exchange(api, version, request, None, data)
        frame = self.decoded(data, api, version)
        self.exchanges[number] = Exchange(
            api, version, request, frame.body, data, frame.body_version
        )
        if not isinstance(frame.body, kind):
            raise Unanswered(f"a {type(frame.body).__name__}, expected {kind.__name__}")
        return frame.body

    async def send_without_response(self, request: Message, version: int) -> None:
        """Send a request that a broker must not respond to."""
        self.exchanges.append(Exchange(api_of(request), version, request, None, None))
        await self.write(self.encoded(request, version))

    async def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        if self._recording is not None:
            self._recording.received(self._stream, data)
        self._writer.write(data)
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._writer.drain()
        except TimeoutError:
            raise Overdue("not sent: timed out") from None
        except OSError as error:
            raise Disconnected(f"not sent: {error}") from None

    def end(self) -> None:
        """Tell the broker that nothing follows, where the transport can: TLS cannot."""
        if self._writer.can_write_eof():
            with contextlib.suppress(OSError):  # the broker closed the connection
                self._writer.write_eof()

    async def read(self) -> bytes:
        """Read one frame, its size included."""
        try:
            async with asyncio.timeout(self._timeout_s):
                size = await self._reader.readexactly(SIZE)
                data = size + await self._reader.readexactly(read_size(size))
        except TimeoutError:
            raise Overdue(f"no response in {self._timeout_s:g} s") from None
        except (asyncio.IncompleteReadError, OSError):
            raise Disconnected("the broker closed the connection") from None
        if self._recording is not None:
            self._recording.sent(self._stream, data)
        return data

    def encoded(self, request: Message, version: int) -> bytes:
        self._correlation_id += 1
        return encode_frame(request, version, self._correlation_id, client_id=CLIENT_ID)

    def decoded(self, data: bytes, api: ApiKey, version: int) -> Frame:
        frame = decode_frame(data, response_to=(api, version))
        if frame.correlation_id != self._correlation_id:
            raise Unanswered(
                f"correlation id {frame.correlation_id}, expected {self._correlation_id}"
            )
        return frame

    async def _authenticate(self, target: Target) -> None:
        identity = await _identity(target.values)
        if identity is None:
            return
        offered = await self.send(ApiVersionsRequest(), 0, ApiVersionsResponse)
        exchange = Authentication(identity, Versions.of(offered.api_keys), _nonce)
        if exchange.raw:
            raise Unanswered("SaslHandshake 1 is not offered")
        response = await self.send(exchange.request, exchange.version, SaslHandshakeResponse)
        step = exchange.on_handshake(response)
        while isinstance(step, Token):
            request = SaslAuthenticateRequest(auth_bytes=step.data)
            step = exchange.on_authenticate(await self.send(request, 0, SaslAuthenticateResponse))
        match step:
            case Refused(detail=detail):
                raise Unanswered(detail)
            case Accepted():
                return


def api_of(request: Message) -> ApiKey:
    """Return the API of a request."""
    key = REGISTRY.get(type(request).__name__).api_key
    assert key is not None
    return ApiKey(key)


def _nonce() -> str:
    return secrets.token_urlsafe(NONCE_BYTES)


async def _identity(values: Values) -> Credentials | OAuthBearerToken | None:
    configured = credentials(values)
    return await _token(values) if isinstance(configured, FromTokenProvider) else configured


async def _token(values: Values) -> OAuthBearerToken:
    outcome: asyncio.Future[ShellEvent] = asyncio.get_running_loop().create_future()
    provider = provider_of(token_source(values))
    assert provider is not None
    TokenRequests(outcome.set_result).start(RequestToken(0), provider)
    match await outcome:
        case TokenReceived(token=token):
            return token
        case TokenFailed(detail=detail):
            raise Unanswered(detail)
        case other:
            raise AssertionError(other)

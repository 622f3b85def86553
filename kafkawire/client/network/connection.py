"""Drives one connection to one broker, from ApiVersions to close.

Responses arrive in the order of their requests (Kafka's guarantee, checked by correlation
ids); each Submit ends in exactly one ResponseReceived, NoResponse or Sent, whatever the peer does.

    CONNECTING ─▶ NEGOTIATING ─▶ HANDSHAKING ─▶ AUTHENTICATING ─▶ READY ─▶ CLOSED
                   ApiVersions    SaslHandshake   SaslAuthenticate  ▲ │  (from any state)
                       └──────────────────(no SASL)─────────────────┘ │
                                       ▲────── reauthentication ──────┘  (KIP-368)
    With OAUTHBEARER, REQUESTING_TOKEN comes before each HANDSHAKING.
"""

# over 300 lines: one machine; setup and requests share its state

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from ...errors import EncodeError, LocalProtocolError, RemoteProtocolError
from ...messages.api_key import ApiKey
from ...messages.api_versions_request import ApiVersionsRequest
from ...messages.api_versions_response import ApiVersionsResponse
from ...messages.sasl_authenticate_request import SaslAuthenticateRequest
from ...messages.sasl_authenticate_response import SaslAuthenticateResponse
from ...messages.sasl_handshake_response import SaslHandshakeResponse
from ...primitives import Message
from ...protocol.error_code import ErrorCode
from ...protocol.frame import SIZE
from ..cluster import FinalizedFeatures
from ..requests import RETRIABLE, NoResponse, Reason, ResponseReceived, Same, Sent
from .authentication import MAY_REQUIRE_SASL, Accepted, Authentication, Refused, Step, Token
from .backoff import Rng
from .connection_states import (
    LEGAL,
    SETUP_TIMED_OUT,
    CloseConnection,
    ConnectionClosed,
    ConnectionEffect,
    ConnectionEvent,
    ConnectionReady,
    ConnectionSettings,
    S,
    State,
    Submit,
    is_cause,
)
from .in_flight_requests import InFlightRequests
from .negotiated_versions import (
    FIRST_TRY,
    NO_VERSIONS,
    NONE,
    OTHER_SERVERS,
    Opening,
    Versions,
    features_of,
    ours,
)
from .oauthbearer import FromTokenProvider, OAuthBearerToken
from .sasl import Credentials
from .transport import (
    BytesReceived,
    Close,
    ConnectionLost,
    ConnectionMade,
    RequestToken,
    TokenFailed,
    TokenReceived,
    Write,
    WritingPaused,
    WritingResumed,
)


class Connection:
    """The machine of one connection.

    node: the broker's id, for the responses. nonce, rng: randomness for SCRAM and jitter.
    frames: the received bytes.
    """

    def __init__(
        self,
        number: int,
        node: int,
        settings: ConnectionSettings,
        opening: Opening,
        now: float,
        *,
        nonce: Callable[[], str],
        rng: Rng,
    ) -> None:
        self.number = number
        self.node = node
        self.state = S.CONNECTING
        self.versions = NONE
        self._features = FinalizedFeatures()
        self._pipeline = InFlightRequests(settings)
        self.in_flight = self._pipeline.in_flight
        self.frames = self._pipeline.frames
        self._settings = settings
        self._opening = opening
        self._nonce = nonce
        self._rng = rng
        self._setup_deadline: float | None = now + settings.setup_timeout_s
        self._authentication: Authentication | None = None
        self._reauthenticate_at: float | None = None
        self._renewing = False
        self._paused = False
        self._unconfirmed = False  # a request without a response was written
        self._responded = False  # to a request of an owner

    @property
    def can_send(self) -> bool:
        """Whether a request would be accepted now."""
        full = len(self.in_flight) >= self._settings.max_in_flight
        return self.state is S.READY and not (full or self._renewing or self._paused)

    def handle(self, event: ConnectionEvent, now: float) -> list[ConnectionEffect]:
        """Handle an event; LocalProtocolError for an event that the state does not allow."""
        handler, states = HANDLERS.get(type(event), (None, ()))
        if handler is None or self.state not in states:
            raise LocalProtocolError(
                f"unexpected {type(event).__name__} in state {self.state.value}"
            )
        return handler(self, event, now)

    def next_deadline(self) -> float | None:
        deadlines = [waiting.deadline for waiting in self.in_flight]
        if self._setup_deadline is not None:
            deadlines.append(self._setup_deadline)
        if self._reauthenticate_at is not None and not self._renewing:
            deadlines.append(self._reauthenticate_at)
        return min(deadlines, default=None)

    def advance(self, now: float) -> list[ConnectionEffect]:
        if self._setup_deadline is not None and now >= self._setup_deadline:
            return self._end(Reason.TIMED_OUT, SETUP_TIMED_OUT[self.state], now)
        if any(waiting.deadline <= now for waiting in self.in_flight):
            return self._end(Reason.TIMED_OUT, "no response in time", now)
        if self._reauthenticate_at is not None and now >= self._reauthenticate_at:
            self._renewing = True
            return self._renew(now)
        return []

    # Events.

    def _on_connection_made(self, _: ConnectionMade, now: float) -> list[ConnectionEffect]:
        self._setup_deadline = None
        self._transition(S.NEGOTIATING)
        newest = min(FIRST_TRY, ours(ApiKey.API_VERSIONS).highest)
        return self._send_api_versions(newest if self._opening is Opening.NEWEST else 0, now)

    def _on_connection_lost(self, event: ConnectionLost, now: float) -> list[ConnectionEffect]:
        detail = event.reason
        if self.state is S.NEGOTIATING:
            self._opening = self._opening.other
            detail = f"{detail}: {NO_VERSIONS.format(self._pipeline.version)}"
        elif self._is_first_request() and self._settings.credentials is None:
            detail = f"{detail} {MAY_REQUIRE_SASL}"
        return self._end(Reason.DISCONNECTED, detail, now, fatal=event.fatal, close=False)

    def _is_first_request(self) -> bool:
        return self.state is S.READY and bool(self.in_flight) and not self._responded

    def _pause(self, _: WritingPaused, now: float) -> list[ConnectionEffect]:  # noqa: ARG002
        self._paused = True
        return []

    def _resume(self, _: WritingResumed, now: float) -> list[ConnectionEffect]:  # noqa: ARG002
        self._paused = False
        return []

    def _on_close(self, event: CloseConnection, now: float) -> list[ConnectionEffect]:
        return self._end(event.reason, event.detail, now, deliberate=True)

    def _send(self, event: Submit, now: float) -> list[ConnectionEffect]:
        request = event.request
        version = self.versions.choose(request.api, request.body)
        if version is None:
            detail = self.versions.why_none(request.api, request.body)
            return [
                NoResponse(request, Reason.NO_VERSION, False, detail, sent=False, node=self.node)
            ]
        try:
            message = request.body.build(version)
            write = self._pipeline.write(self.number, message, version)
        except EncodeError as error:
            return [NoResponse(request, Reason.INVALID_REQUEST, False, str(error), sent=False)]
        except Exception as error:  # noqa: BLE001 - fails this request only
            detail = f"{type(error).__name__}: {error}"
            return [NoResponse(request, Reason.INVALID_REQUEST, False, detail, sent=False)]
        if not request.has_response:
            self._unconfirmed = True
            return [write, Sent(request, version)]
        self._pipeline.expect(request, request.api, version, event.deadline, now)
        return [write]

    def _on_bytes(self, event: BytesReceived, now: float) -> list[ConnectionEffect]:
        frames = self.frames
        effects: list[ConnectionEffect] = []
        try:
            frame = frames.whole(event.data)
            if frame is None:
                frames.feed(event.data)
                frame = frames.take()
            while frame is not None:
                effects += self._frame(frame, now)
                frame = None if self.state is S.CLOSED else frames.take()
        except RemoteProtocolError as error:
            for beginning, detail in OTHER_SERVERS.items():
                if self.state is S.NEGOTIATING and event.data.startswith(beginning):
                    return self._end(Reason.DISCONNECTED, detail, now, fatal=True)
            effects += self._end(Reason.INVALID_RESPONSE, str(error), now)
        return effects

    # Frames.

    def _frame(self, frame: bytes, now: float) -> list[ConnectionEffect]:
        if not self.in_flight:
            raise RemoteProtocolError("response without a request")
        oldest = self.in_flight[0]
        tokens = self._authentication if self.state is S.AUTHENTICATING else None
        if tokens is not None and tokens.raw:
            self.in_flight.popleft()
            return self._step(tokens.on_challenge(frame), now)
        message, version = self._pipeline.decode(frame, oldest)
        self.in_flight.popleft()
        if oldest.request is None:
            return SETUP_HANDLERS[self.state](self, message, now)
        self._responded = True
        effects: list[ConnectionEffect] = [
            ResponseReceived(oldest.request, version, message, self.node, now - oldest.sent_at)
        ]
        return effects + self._renew(now) if self._renewing else effects

    # Connection setup.

    def _send_api_versions(self, version: int, now: float) -> list[ConnectionEffect]:
        name, number = self._settings.software if version >= 3 else ("", "")
        request = ApiVersionsRequest(client_software_name=name, client_software_version=number)
        return self._send_setup_request(request, ApiKey.API_VERSIONS, version, now)

    def _on_api_versions(self, message: Message, now: float) -> list[ConnectionEffect]:
        assert isinstance(message, ApiVersionsResponse)
        self.versions = Versions.of(message.api_keys)
        self._features = features_of(message)
        if message.error_code == ErrorCode.UNSUPPORTED_VERSION:
            requested = self._pipeline.version
            theirs = self.versions.choose(
                ApiKey.API_VERSIONS, Same(message, 0, max(requested - 1, 0))
            )
            if requested == 0:
                raise RemoteProtocolError("ApiVersions 0 rejected")
            return self._send_api_versions(theirs or 0, now)
        if message.error_code:
            name = ErrorCode.name_of(message.error_code)
            raise RemoteProtocolError(f"ApiVersions rejected: {name}")
        self._opening = Opening.NEWEST
        return self._authenticate(now)

    def _authenticate(self, now: float) -> list[ConnectionEffect]:
        match self._settings.credentials:
            case None:
                self._transition(S.READY)
                return [ConnectionReady(self._features)]
            case Credentials() as credentials:
                return self._send_sasl_handshake(credentials, now)
            case FromTokenProvider():
                self._transition(S.REQUESTING_TOKEN)
                self._setup_deadline = now + self._settings.request_timeout_s
                return [RequestToken(self.number)]

    def _on_token(self, event: TokenReceived, now: float) -> list[ConnectionEffect]:
        self._setup_deadline = None
        return self._send_sasl_handshake(event.token, now)

    def _on_token_failed(self, event: TokenFailed, now: float) -> list[ConnectionEffect]:
        return self._end(Reason.AUTHENTICATION_FAILED, event.detail, now, fatal=True)

    def _send_sasl_handshake(
        self, credentials: Credentials | OAuthBearerToken, now: float
    ) -> list[ConnectionEffect]:
        self._transition(S.HANDSHAKING)
        self._authentication = Authentication(credentials, self.versions, self._nonce)
        request, version = self._authentication.request, self._authentication.version
        return self._send_setup_request(request, ApiKey.SASL_HANDSHAKE, version, now)

    def _on_sasl_handshake(self, message: Message, now: float) -> list[ConnectionEffect]:
        assert isinstance(message, SaslHandshakeResponse)
        assert self._authentication is not None
        self._transition(S.AUTHENTICATING)
        return self._step(self._authentication.on_handshake(message), now)

    def _on_sasl_authenticate(self, message: Message, now: float) -> list[ConnectionEffect]:
        assert isinstance(message, SaslAuthenticateResponse)
        assert self._authentication is not None
        return self._step(self._authentication.on_authenticate(message), now)

    def _step(self, step: Step, now: float) -> list[ConnectionEffect]:
        match step:
            case Token(data=token):
                return self._token(token, now)
            case Refused(detail=detail):
                return self._end(Reason.AUTHENTICATION_FAILED, detail, now, fatal=True)
            case Accepted():
                self._reauthenticate_at = step.reauthenticate_at(now, self._rng)
                self._authentication = None
                self._renewing = False
                self._transition(S.READY)
                return [ConnectionReady(self._features)]

    def _token(self, token: bytes, now: float) -> list[ConnectionEffect]:
        assert self._authentication is not None
        if self._authentication.raw:
            deadline = now + self._settings.request_timeout_s
            self._pipeline.expect(None, ApiKey.SASL_AUTHENTICATE, 0, deadline)
            return [Write(self.number, [len(token).to_bytes(SIZE, "big") + token])]
        request = SaslAuthenticateRequest(auth_bytes=token)
        version = self.versions.choose(ApiKey.SASL_AUTHENTICATE, Same(request, 0, 2)) or 0
        return self._send_setup_request(request, ApiKey.SASL_AUTHENTICATE, version, now)

    def _renew(self, now: float) -> list[ConnectionEffect]:
        """Reauthenticate once nothing is in flight; until then no request is accepted."""
        if self.in_flight:
            return []
        self._reauthenticate_at = None
        return self._authenticate(now)

    # Common to all states.

    def _send_setup_request(
        self, request: Message, api: ApiKey, version: int, now: float
    ) -> list[ConnectionEffect]:
        write = self._pipeline.write(self.number, request, version)
        self._pipeline.expect(None, api, version, now + self._settings.request_timeout_s)
        return [write]

    def _transition(self, state: State) -> None:
        if state not in LEGAL[self.state]:
            raise LocalProtocolError(
                f"invalid state transition from {self.state.value} to {state.value}"
            )
        self.state = state

    def _end(
        self,
        reason: Reason,
        detail: str,
        now: float,
        *,
        fatal: bool = False,
        deliberate: bool = False,
        close: bool = True,
    ) -> list[ConnectionEffect]:
        """Close, and fail every in-flight request."""
        self._transition(S.CLOSED)
        self._setup_deadline = self._reauthenticate_at = None
        effects: list[ConnectionEffect] = []
        if close:
            effects.append(Close(self.number, after_peer=deliberate and self._unconfirmed))
        for at, waiting in enumerate(self.in_flight):
            if waiting.request is not None:
                why = reason if is_cause(reason, at, waiting, now) else Reason.DISCONNECTED
                effects.append(NoResponse(waiting.request, why, why in RETRIABLE, detail))
        self.in_flight.clear()
        effects.append(ConnectionClosed(reason, detail, fatal, deliberate, self._opening))
        return effects


C = Connection

SetupHandler: TypeAlias = Callable[[Connection, Message, float], list[ConnectionEffect]]

SETUP_HANDLERS: Final[Mapping[State, SetupHandler]] = {
    S.NEGOTIATING: C._on_api_versions,
    S.HANDSHAKING: C._on_sasl_handshake,
    S.AUTHENTICATING: C._on_sasl_authenticate,
}
"""Handlers of the responses to the connection's own requests."""

Handler: TypeAlias = Callable[[Connection, Any, float], list[ConnectionEffect]]

_OPEN: Final = tuple(state for state in S if state is not S.CLOSED)
_CONNECTED: Final = _OPEN[1:]

# fmt: off
HANDLERS: Final[Mapping[type[ConnectionEvent], tuple[Handler, tuple[State, ...]]]] = {
    ConnectionMade:  (C._on_connection_made, (S.CONNECTING,)),
    BytesReceived:   (C._on_bytes,           _CONNECTED),
    WritingPaused:   (C._pause,              _CONNECTED),
    WritingResumed:  (C._resume,             _CONNECTED),
    TokenReceived:   (C._on_token,           (S.REQUESTING_TOKEN,)),
    TokenFailed:     (C._on_token_failed,    (S.REQUESTING_TOKEN,)),
    Submit:          (C._send,               (S.READY,)),
    ConnectionLost:  (C._on_connection_lost, _OPEN),
    CloseConnection: (C._on_close,           _OPEN),
}
"""Event -> handler, and the states in which the event is legal."""
# fmt: on

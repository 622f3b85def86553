"""One connection to one broker, from its first byte to its last.

Law: requests are answered in the order they were sent (the broker's promise, checked by their
correlation ids); each Ask taken ends in exactly one Answered, Unanswered or Sent, whatever the
peer does.

    CONNECTING ─▶ NEGOTIATING ─▶ HANDSHAKING ─▶ AUTHENTICATING ─▶ READY ─▶ CLOSED
                   ApiVersions    SaslHandshake   SaslAuthenticate  ▲ │  (from anywhere)
                       └──────────────────(no SASL)─────────────────┘ │
                                       ▲────── reauthentication ──────┘  (KIP-368)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

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
from ..requests import RETRIABLE, NoResponse, Reason, ResponseReceived, Same, Sent
from .authentication import Accepted, Authentication, Refused, Step, Token
from .backoff import Rng
from .connection_states import (
    LEGAL,
    CloseConnection,
    ConnectionSettings,
    Ended,
    Opened,
    S,
    State,
    Submit,
    blamed,
)
from .in_flight_requests import InFlightRequests
from .negotiated_versions import FIRST_TRY, NONE, Opening, Versions, ours
from .transport import (
    BytesReceived,
    Close,
    ConnectionLost,
    ConnectionMade,
    Write,
    WritingPaused,
    WritingResumed,
)

NO_VERSIONS: Final = "no answer to ApiVersions {}; is it older than 0.10, or does it want TLS?"
REAUTHENTICATE_FROM: Final = 0.85
REAUTHENTICATE_SPREAD: Final = 0.10
"""Which part of a session's lifetime passes before it is renewed, as Java's client has it."""


class Connection:
    """The machine.

    node: the broker's id, for the answers. nonce, lot: draw what SCRAM and spreading need.
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
        self._pipeline = InFlightRequests(settings)
        self.in_flight = self._pipeline.in_flight
        self._settings = settings
        self._opening = opening
        self._nonce = nonce
        self._rng = rng
        self._setup_until: float | None = now + settings.setup_timeout_s
        self._authentication: Authentication | None = None
        self._reauthenticate_at: float | None = None
        self._renewing = False
        self._paused = False

    @property
    def can_send(self) -> bool:
        """Whether an Ask would be taken now."""
        full = len(self.in_flight) >= self._settings.max_in_flight
        return self.state is S.READY and not (full or self._renewing or self._paused)

    def handle(self, event: object, now: float) -> list[object]:
        """Take in what happened; an event that has no place in the state is our own mistake."""
        handler = HANDLERS.get((self.state, type(event)))
        if handler is None:
            raise LocalProtocolError(f"{type(event).__name__} has no place in {self.state.value}")
        return handler(self, event, now)

    def next_deadline(self) -> float | None:
        deadlines = [waiting.deadline for waiting in self.in_flight]
        if self._setup_until is not None:
            deadlines.append(self._setup_until)
        if self._reauthenticate_at is not None and not self._renewing:
            deadlines.append(self._reauthenticate_at)
        return min(deadlines, default=None)

    def advance(self, now: float) -> list[object]:
        if self._setup_until is not None and now >= self._setup_until:
            return self._end(Reason.TIMED_OUT, "no connection in time", now)
        if any(waiting.deadline <= now for waiting in self.in_flight):
            return self._end(Reason.TIMED_OUT, "no answer in time", now)
        if self._reauthenticate_at is not None and now >= self._reauthenticate_at:
            self._renewing = True
            return self._renew(now)
        return []

    # Events.

    def _made(self, _: object, now: float) -> list[object]:
        self._setup_until = None
        self._become(S.NEGOTIATING)
        newest = min(FIRST_TRY, ours(ApiKey.API_VERSIONS).highest)
        return self._ask_versions(newest if self._opening is Opening.NEWEST else 0, now)

    def _lost(self, event: ConnectionLost, now: float) -> list[object]:
        detail = event.reason
        if self.state is S.NEGOTIATING:
            self._opening = self._opening.other
            detail = f"{detail}: {NO_VERSIONS.format(self._pipeline.version)}"
        return self._end(Reason.DISCONNECTED, detail, now, fatal=event.fatal, close=False)

    def _pause(self, _: WritingPaused, now: float) -> list[object]:  # noqa: ARG002
        self._paused = True
        return []

    def _resume(self, _: WritingResumed, now: float) -> list[object]:  # noqa: ARG002
        self._paused = False
        return []

    def _shut(self, event: CloseConnection, now: float) -> list[object]:
        return self._end(event.reason, event.detail, now, deliberate=True)

    def _send(self, event: Submit, _: float) -> list[object]:
        ask = event.ask
        version = self.versions.choose(ask.api, ask.body)
        if version is None:
            theirs, mine = self.versions.offered(ask.api), ours(ask.api)
            said = f"{theirs.lowest} to {theirs.highest}" if theirs else "none"
            needs = f"{max(mine.lowest, ask.body.lowest)} to {min(mine.highest, ask.body.highest)}"
            detail = f"{ask.api.name}: the broker has {said}, needed is {needs}"
            return [NoResponse(ask, Reason.NO_VERSION, False, detail, sent=False)]
        try:
            message = ask.body.build(version)
            written = self._pipeline.write(self.number, message, version)
        except EncodeError as error:
            return [NoResponse(ask, Reason.INVALID_REQUEST, False, str(error), sent=False)]
        except Exception as error:  # noqa: BLE001 - one request's trouble stays its own
            detail = f"{type(error).__name__}: {error}"
            return [NoResponse(ask, Reason.INVALID_REQUEST, False, detail, sent=False)]
        if not ask.has_response:
            return [written, Sent(ask, version)]
        self._pipeline.expect(ask, ask.api, version, event.deadline)
        return [written]

    def _received(self, event: BytesReceived, now: float) -> list[object]:
        self._pipeline.feed(event.data)
        effects: list[object] = []
        try:
            while self.state is not S.CLOSED and (frame := self._pipeline.take()) is not None:
                effects += self._frame(frame, now)
        except RemoteProtocolError as error:
            effects += self._end(Reason.INVALID_RESPONSE, str(error), now)
        return effects

    # Frames.

    def _frame(self, frame: bytes, now: float) -> list[object]:
        if not self.in_flight:
            raise RemoteProtocolError("a response that nobody asked for")
        asked = self.in_flight[0]
        tokens = self._authentication if self.state is S.AUTHENTICATING else None
        if tokens is not None and tokens.raw:
            self.in_flight.popleft()
            return self._step(tokens.challenged(frame), now)
        message, version = self._pipeline.decoded(frame, asked)
        self.in_flight.popleft()
        if asked.ask is None:
            return OPENING[self.state](self, message, now)
        effects: list[object] = [ResponseReceived(asked.ask, version, message, self.node)]
        return effects + self._renew(now) if self._renewing else effects

    # The opening.

    def _ask_versions(self, version: int, now: float) -> list[object]:
        name, number = self._settings.software if version >= 3 else ("", "")
        request = ApiVersionsRequest(client_software_name=name, client_software_version=number)
        return self._ask_own(request, ApiKey.API_VERSIONS, version, now)

    def _versions_answered(self, message: Message, now: float) -> list[object]:
        assert isinstance(message, ApiVersionsResponse)
        self.versions = Versions.of(message.api_keys)
        if message.error_code == ErrorCode.UNSUPPORTED_VERSION:
            tried = self._pipeline.version
            theirs = self.versions.choose(ApiKey.API_VERSIONS, Same(message, 0, max(tried - 1, 0)))
            if tried == 0:
                raise RemoteProtocolError("ApiVersions 0 is refused")
            return self._ask_versions(theirs or 0, now)
        if message.error_code:
            name = ErrorCode.name_of(message.error_code)
            raise RemoteProtocolError(f"ApiVersions is refused: {name}")
        return self._negotiated(now)

    def _negotiated(self, now: float) -> list[object]:
        self._opening = Opening.NEWEST
        if self._settings.credentials is None:
            self._become(S.READY)
            return [Opened()]
        return self._shake_hands(now)

    def _shake_hands(self, now: float) -> list[object]:
        assert self._settings.credentials is not None
        self._become(S.HANDSHAKING)
        self._authentication = Authentication(
            self._settings.credentials, self.versions, self._nonce
        )
        request, version = self._authentication.request, self._authentication.version
        return self._ask_own(request, ApiKey.SASL_HANDSHAKE, version, now)

    def _hands_shaken(self, message: Message, now: float) -> list[object]:
        assert isinstance(message, SaslHandshakeResponse)
        assert self._authentication is not None
        self._become(S.AUTHENTICATING)
        return self._step(self._authentication.hands_shaken(message), now)

    def _token_answered(self, message: Message, now: float) -> list[object]:
        assert isinstance(message, SaslAuthenticateResponse)
        assert self._authentication is not None
        return self._step(self._authentication.answered(message), now)

    def _step(self, step: Step, now: float) -> list[object]:
        match step:
            case Token(data=token):
                return self._token(token, now)
            case Refused(detail=detail):
                return self._end(Reason.AUTHENTICATION_FAILED, detail, now, fatal=True)
            case Accepted(lifetime_s=lifetime_s):
                if lifetime_s > 0:
                    part = REAUTHENTICATE_FROM + REAUTHENTICATE_SPREAD * self._rng()
                    self._reauthenticate_at = now + lifetime_s * part
                self._authentication = None
                self._renewing = False
                self._become(S.READY)
                return [Opened()]

    def _token(self, token: bytes, now: float) -> list[object]:
        assert self._authentication is not None
        if self._authentication.raw:
            deadline = now + self._settings.request_timeout_s
            self._pipeline.expect(None, ApiKey.SASL_AUTHENTICATE, 0, deadline)
            return [Write(self.number, len(token).to_bytes(SIZE, "big") + token)]
        request = SaslAuthenticateRequest(auth_bytes=token)
        version = self.versions.choose(ApiKey.SASL_AUTHENTICATE, Same(request, 0, 2)) or 0
        return self._ask_own(request, ApiKey.SASL_AUTHENTICATE, version, now)

    def _renew(self, now: float) -> list[object]:
        """Authenticate again, once nothing is in flight: until then nothing new is taken."""
        if self.in_flight:
            return []
        self._reauthenticate_at = None
        return self._shake_hands(now)

    # What all of them do.

    def _ask_own(self, request: Message, api: ApiKey, version: int, now: float) -> list[object]:
        written = self._pipeline.write(self.number, request, version)
        self._pipeline.expect(None, api, version, now + self._settings.request_timeout_s)
        return [written]

    def _become(self, state: State) -> None:
        if state not in LEGAL[self.state]:
            raise LocalProtocolError(f"{self.state.value} does not become {state.value}")
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
    ) -> list[object]:
        """Close, and tell everybody who waits."""
        self._become(S.CLOSED)
        self._setup_until = self._reauthenticate_at = None
        effects: list[object] = [Close(self.number)] if close else []
        for at, waiting in enumerate(self.in_flight):
            if waiting.ask is not None:
                why = reason if blamed(reason, at, waiting, now) else Reason.DISCONNECTED
                effects.append(NoResponse(waiting.ask, why, why in RETRIABLE, detail))
        self.in_flight.clear()
        effects.append(Ended(reason, detail, fatal, deliberate, self._opening))
        return effects


C = Connection

OPENING: Final[Mapping[State, Callable[[Connection, Message, float], list[object]]]] = {
    S.NEGOTIATING: C._versions_answered,
    S.HANDSHAKING: C._hands_shaken,
    S.AUTHENTICATING: C._token_answered,
}
"""Who takes the answer to a request that the connection itself sent."""

# fmt: off
HANDLERS: Final[Mapping[tuple[State, type], Callable[..., list[object]]]] = {
    (S.CONNECTING,     ConnectionMade): C._made,
    (S.CONNECTING,     ConnectionLost): C._lost,
    (S.CONNECTING,     CloseConnection):           C._shut,

    (S.NEGOTIATING,    BytesReceived):  C._received,
    (S.NEGOTIATING,    WritingPaused):  C._pause,
    (S.NEGOTIATING,    WritingResumed): C._resume,
    (S.NEGOTIATING,    ConnectionLost): C._lost,
    (S.NEGOTIATING,    CloseConnection):           C._shut,

    (S.HANDSHAKING,    BytesReceived):  C._received,
    (S.HANDSHAKING,    WritingPaused):  C._pause,
    (S.HANDSHAKING,    WritingResumed): C._resume,
    (S.HANDSHAKING,    ConnectionLost): C._lost,
    (S.HANDSHAKING,    CloseConnection):           C._shut,

    (S.AUTHENTICATING, BytesReceived):  C._received,
    (S.AUTHENTICATING, WritingPaused):  C._pause,
    (S.AUTHENTICATING, WritingResumed): C._resume,
    (S.AUTHENTICATING, ConnectionLost): C._lost,
    (S.AUTHENTICATING, CloseConnection):           C._shut,

    (S.READY,          Submit):         C._send,
    (S.READY,          BytesReceived):  C._received,
    (S.READY,          WritingPaused):  C._pause,
    (S.READY,          WritingResumed): C._resume,
    (S.READY,          ConnectionLost): C._lost,
    (S.READY,          CloseConnection):           C._shut,
}
# fmt: on

"""Authenticates one connection with SASL.

The server's final message is verified before the connection is used; a rejection is fatal for
these credentials.

    SaslHandshake 1 ─▶ SaslAuthenticate(token) ─▶ ... ─▶ Accepted | Refused
    SaslHandshake 0 ─▶ token with only a size  ─▶ ... ─▶ Accepted | Refused
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ...display import printable
from ...errors import RemoteProtocolError
from ...messages.api_key import ApiKey
from ...messages.sasl_authenticate_response import SaslAuthenticateResponse
from ...messages.sasl_handshake_request import SaslHandshakeRequest
from ...messages.sasl_handshake_response import SaslHandshakeResponse
from ...protocol.error_code import ErrorCode
from ..requests import Same
from .backoff import Rng
from .negotiated_versions import Versions
from .oauthbearer import OAuthBearerToken
from .sasl import Credentials, mechanism

MAX_TOKENS: Final = 16
"""Maximum tokens in one exchange; SCRAM needs two."""

NO_SASL: Final = "the broker does not use SASL here: set security.protocol to PLAINTEXT or SSL"
MAY_REQUIRE_SASL: Final = (
    "at the first request; does it require SASL (security.protocol SASL_PLAINTEXT or SASL_SSL)?"
)
REAUTHENTICATE_FROM: Final = 0.85
REAUTHENTICATE_SPREAD: Final = 0.10
"""Share of a session's lifetime before reauthentication, as in Java's client."""


@dataclass(frozen=True, slots=True)
class Token:
    """Send this token next."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Refused:
    """The broker or this client rejected the authentication."""

    detail: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """The authentication is complete; lifetime_s: of the session, 0 for unlimited (KIP-368)."""

    lifetime_s: float

    def reauthenticate_at(self, now: float, rng: Rng) -> float | None:
        """Return when to reauthenticate; None for never."""
        if self.lifetime_s <= 0:
            return None
        return now + self.lifetime_s * (REAUTHENTICATE_FROM + REAUTHENTICATE_SPREAD * rng())


Step = Token | Refused | Accepted


class Authentication:
    """One SASL exchange; raw: whether tokens travel without Kafka headers."""

    def __init__(
        self,
        credentials: Credentials | OAuthBearerToken,
        versions: Versions,
        nonce: Callable[[], str],
    ) -> None:
        self.request = SaslHandshakeRequest(mechanism=credentials.mechanism)
        handshake = Same(self.request, 0, 1)
        self.version = versions.choose(ApiKey.SASL_HANDSHAKE, handshake) or 0
        self.raw = self.version == 0
        self._mechanism = mechanism(credentials, nonce)
        self._tokens = 0
        self._lifetime_s = 0.0

    def on_handshake(self, response: SaslHandshakeResponse) -> Step:
        """Handle the response to SaslHandshake."""
        if response.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            return Refused(NO_SASL)
        if response.error_code:
            name, mechanisms = (
                ErrorCode.name_of(response.error_code),
                ", ".join(response.mechanisms),
            )
            return Refused(f"{name}; the broker supports {mechanisms or 'no mechanism'}")
        return self._send(self._mechanism.first())

    def on_authenticate(self, response: SaslAuthenticateResponse) -> Step:
        """Handle the response to SaslAuthenticate."""
        if response.error_code:
            name = ErrorCode.name_of(response.error_code)
            message = printable(response.error_message or "") or "no error message"
            rejection = self._mechanism.rejection
            reason = "" if rejection in message else f"; token rejected: {rejection}"
            return Refused(f"{name}: {message}{reason}")
        self._lifetime_s = response.session_lifetime_ms / 1000
        return self.on_challenge(response.auth_bytes)

    def on_challenge(self, challenge: bytes) -> Step:
        """Handle the server's challenge."""
        try:
            token = self._mechanism.step(challenge)
        except RemoteProtocolError as error:
            return Refused(str(error))
        return Accepted(self._lifetime_s) if token is None else self._send(token)

    def _send(self, token: bytes) -> Step:
        self._tokens += 1
        if self._tokens > MAX_TOKENS:
            return Refused(f"SASL: not complete after {MAX_TOKENS} tokens")
        return Token(token)

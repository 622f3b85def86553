"""SASL over one connection: what to say next, and when it is done.

Law: the server's last word is checked before the connection is used; a refusal is final for these
credentials.

    SaslHandshake 1 ─▶ SaslAuthenticate(token) ─▶ ... ─▶ Accepted | Refused
    SaslHandshake 0 ─▶ token with only a size  ─▶ ... ─▶ Accepted | Refused
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ...errors import RemoteProtocolError
from ...messages.api_key import ApiKey
from ...messages.sasl_authenticate_response import SaslAuthenticateResponse
from ...messages.sasl_handshake_request import SaslHandshakeRequest
from ...messages.sasl_handshake_response import SaslHandshakeResponse
from ...protocol.error_code import ErrorCode
from ..requests import Same
from .negotiated_versions import Versions
from .sasl import Credentials, mechanism

MOST_TOKENS: Final = 16
"""Of one exchange; SCRAM needs two."""


@dataclass(frozen=True, slots=True)
class Token:
    """Say this next."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Refused:
    """The broker, or we, will not go on."""

    detail: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """We are who we say; lifetime_s: for so long, 0 for ever (KIP-368)."""

    lifetime_s: float


Step = Token | Refused | Accepted


class Authentication:
    """One exchange; raw: whether tokens travel without headers."""

    def __init__(
        self, credentials: Credentials, versions: Versions, nonce: Callable[[], str]
    ) -> None:
        self.request = SaslHandshakeRequest(mechanism=credentials.mechanism)
        handshake = Same(self.request, 0, 1)
        self.version = versions.choose(ApiKey.SASL_HANDSHAKE, handshake) or 0
        self.raw = self.version == 0
        self._mechanism = mechanism(credentials, nonce)
        self._tokens = 0
        self._lifetime_s = 0.0

    def hands_shaken(self, answer: SaslHandshakeResponse) -> Step:
        """Take the answer to the handshake."""
        if answer.error_code:
            name, known = ErrorCode.name_of(answer.error_code), ", ".join(answer.mechanisms)
            return Refused(f"{name}; the broker has {known or 'no mechanism'}")
        return self._say(self._mechanism.first())

    def answered(self, answer: SaslAuthenticateResponse) -> Step:
        """Take the answer to a token."""
        if answer.error_code:
            name = ErrorCode.name_of(answer.error_code)
            return Refused(f"{name}: {answer.error_message or 'no more is said'}")
        self._lifetime_s = answer.session_lifetime_ms / 1000
        return self.challenged(answer.auth_bytes)

    def challenged(self, challenge: bytes) -> Step:
        """Take what the server said."""
        try:
            token = self._mechanism.step(challenge)
        except RemoteProtocolError as error:
            return Refused(str(error))
        return Accepted(self._lifetime_s) if token is None else self._say(token)

    def _say(self, token: bytes) -> Step:
        self._tokens += 1
        if self._tokens > MOST_TOKENS:
            return Refused(f"SASL: no end after {MOST_TOKENS} tokens")
        return Token(token)

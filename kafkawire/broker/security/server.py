"""Authenticates a connection with SASL.

No other request is served before authentication; a failure closes the connection.

    HANDSHAKE ─▶ TOKENS (SaslAuthenticate) or RAW_TOKENS (after SaslHandshake v0) ─▶ DONE
                                  └───────────────▶ FAILED
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from ...errors import RemoteProtocolError
from .scram import HASHES, ITERATIONS, Credential, Scram, credential

PLAIN: Final = "PLAIN"
MECHANISMS: Final = (PLAIN, *HASHES)
"""Implemented mechanisms; a broker enables those in its `sasl.enabled.mechanisms`."""


class State(Enum):
    """The state of an authentication."""

    HANDSHAKE = "handshake"
    TOKENS = "tokens"
    RAW_TOKENS = "raw tokens"
    DONE = "done"
    FAILED = "failed"


S = State
LEGAL: Final[Mapping[State, frozenset[State]]] = {
    S.HANDSHAKE: frozenset({S.TOKENS, S.RAW_TOKENS, S.FAILED}),
    S.TOKENS: frozenset({S.DONE, S.FAILED}),
    S.RAW_TOKENS: frozenset({S.DONE, S.FAILED}),
    S.DONE: frozenset({S.HANDSHAKE, S.TOKENS}),  # re-authentication (KIP-368)
    S.FAILED: frozenset(),
}


ScramCredentials = Callable[[str, str], Credential | None]
"""(mechanism, user) -> the credential; None for none."""


TokenCredentials = Callable[[str, str], tuple[str, Credential] | None]
"""(mechanism, id of a delegation token) -> its owner and its credential; None for none."""


def no_credential(_mechanism: str, _user: str) -> None:
    """Find no credential."""


class Users:
    """The users and their passwords. new_salt: returns the salt of a SCRAM credential.

    credentials: those that take precedence over one derived from a password. tokens: those of
    delegation tokens.
    """

    def __init__(
        self,
        passwords: Mapping[str, str],
        new_salt: Callable[[], bytes],
        credentials: ScramCredentials = no_credential,
        tokens: TokenCredentials = no_credential,
    ) -> None:
        self._passwords = dict(passwords)
        self._new_salt = new_salt
        self._credentials = credentials
        self.token = tokens
        self._scram: dict[tuple[str, str], Credential] = {}

    def check_password(self, user: str, password: str) -> bool:
        """Whether a user and password are valid."""
        known = self._passwords.get(user)
        return known is not None and hmac.compare_digest(known.encode(), password.encode())

    def scram(self, mechanism: str, user: str) -> Credential | None:
        """Return a user's SCRAM credential; that of a password is derived at first use."""
        altered = self._credentials(mechanism, user)
        if altered is not None:
            return altered
        password = self._passwords.get(user)
        if password is None:
            return None
        key = mechanism, user
        if key not in self._scram:
            self._scram[key] = credential(mechanism, password, self._new_salt(), ITERATIONS)
        return self._scram[key]


@dataclass(slots=True)
class Authentication:
    """The authentication of one connection.

    user: the authenticated principal, once done. has_token: whether it authenticated with a
    delegation token. lenient_nonce: as of `Scram`.
    """

    enabled: tuple[str, ...]
    users: Users
    new_nonce: Callable[[], str]
    state: State = State.HANDSHAKE
    mechanism: str = ""
    user: str = ""
    has_token: bool = False
    lenient_nonce: bool = False
    _scram: Scram | None = field(default=None)

    @property
    def done(self) -> bool:
        """Whether the connection is authenticated."""
        return self.state is State.DONE

    @property
    def takes_raw_tokens(self) -> bool:
        """Whether the next frame is a raw token, after SaslHandshake v0."""
        return self.state is State.RAW_TOKENS

    @property
    def failed(self) -> bool:
        """Whether the connection must close."""
        return self.state is State.FAILED

    def handshake(self, mechanism: str, version: int) -> bool:
        """Select the mechanism; return whether it is enabled."""
        if mechanism not in self.enabled:
            self.fail()
            return False
        self.mechanism = mechanism
        self._scram = None
        self._move_to(S.TOKENS if version else S.RAW_TOKENS)
        if mechanism != PLAIN:
            self._scram = Scram(
                mechanism,
                lambda user: self.users.scram(mechanism, user),
                lambda token_id: self.users.token(mechanism, token_id),
                self.new_nonce(),
                self.lenient_nonce,
            )
        return True

    def token(self, data: bytes) -> bytes:
        """Process a token; return the server's. Raises RemoteProtocolError."""
        try:
            response, authenticated = (
                self._plain(data) if self._scram is None else self._scram.step(data)
            )
        except RemoteProtocolError:
            self.fail()
            raise
        if authenticated:
            if self._scram is not None:
                self.user, self.has_token = self._scram.user, self._scram.has_token
            self._move_to(S.DONE)
        return response

    def _plain(self, data: bytes) -> tuple[bytes, bool]:
        """Process `[authzid] NUL user NUL password` (RFC 4616)."""
        try:
            parts = data.decode().split("\0")
        except UnicodeDecodeError:
            raise RemoteProtocolError("PLAIN token is not valid UTF-8") from None
        if len(parts) != 3 or not parts[1] or not parts[2]:
            raise RemoteProtocolError("invalid PLAIN token: expected authzid, user and password")
        authzid, user, password = parts
        if not self.users.check_password(user, password):
            raise RemoteProtocolError("Authentication failed: Invalid username or password")
        if authzid not in ("", user):
            raise RemoteProtocolError(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        self.user, self.has_token = user, False
        return b"", True

    def fail(self) -> None:
        """Fail the authentication: the connection will close."""
        self._move_to(S.FAILED)

    def _move_to(self, state: State) -> None:
        if state not in LEGAL[self.state]:
            raise RemoteProtocolError(
                f"{self.state.value} -> {state.value} is not a legal transition"
            )
        self.state = state

"""Authenticates a connection with SASL.

No other request is served before authentication; a failure closes the connection.

    HANDSHAKE ─▶ TOKENS (SaslAuthenticate) or RAW_TOKENS (after SaslHandshake v0) ─▶ DONE
      ▲  └─▶ OTHER_MECHANISM ───▶ FAILED ◀────────────┘                                │
      └──────────────────────── re-authentication (KIP-368) ───────────────────────────┘
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final

from ...configs.scram import HASHES, ITERATIONS
from ...errors import RemoteProtocolError
from ...messages.api_key import ApiKey
from ...sasl.oauthbearer import OAUTHBEARER
from .jwt import TokenValidator
from .oauthbearer import OAuthBearer, shown
from .scram import Credential, Scram, TokenCredential, credential
from .session import EXPIRED, MIN_REAUTH_INTERVAL_MS, Session, session_end

PLAIN: Final = "PLAIN"
MECHANISMS: Final = (PLAIN, *HASHES)
"""Implemented mechanisms with passwords; a broker enables those in its `sasl.enabled.mechanisms`,
where OAUTHBEARER may be, too.
"""
BEFORE_AUTHENTICATION: Final = frozenset(
    {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
)


class State(Enum):
    """The state of an authentication."""

    HANDSHAKE = "handshake"
    TOKENS = "tokens"
    RAW_TOKENS = "raw tokens"
    OTHER_MECHANISM = "other mechanism"
    DONE = "done"
    FAILED = "failed"


S = State
LEGAL: Final[Mapping[State, frozenset[State]]] = {
    S.HANDSHAKE: frozenset({S.TOKENS, S.RAW_TOKENS, S.OTHER_MECHANISM, S.FAILED}),
    S.TOKENS: frozenset({S.DONE, S.FAILED}),
    S.RAW_TOKENS: frozenset({S.DONE, S.FAILED}),
    S.OTHER_MECHANISM: frozenset({S.FAILED}),
    S.DONE: frozenset({S.HANDSHAKE}),
    S.FAILED: frozenset(),
}


ScramCredentials = Callable[[str, str], Credential | None]
"""(mechanism, user) -> the credential; None for none."""


TokenCredentials = Callable[[str, str], TokenCredential | None]
"""(mechanism, id of a delegation token) -> its credential; None for none."""


def no_credential(_mechanism: str, _user: str) -> None:
    """Find no credential."""


def no_validator() -> TokenValidator:
    """Find no validator."""
    raise KeyError(OAUTHBEARER)


class Users:
    """The users and their passwords. new_salt: returns the salt of a SCRAM credential.

    credentials: those that take precedence over one derived from a password. tokens: those of
    delegation tokens. plain: the users with PLAIN alone, and their passwords.
    """

    def __init__(
        self,
        passwords: Mapping[str, str],
        new_salt: Callable[[], bytes],
        credentials: ScramCredentials = no_credential,
        tokens: TokenCredentials = no_credential,
        plain: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._passwords = dict(passwords)
        self._plain = {**self._passwords, **plain}
        self._new_salt = new_salt
        self._credentials = credentials
        self.token = tokens
        self._scram: dict[tuple[str, str], Credential] = {}

    def check_password(self, user: str, password: str) -> bool:
        """Whether a user and password are valid with PLAIN."""
        expected = self._plain.get(user)
        return expected is not None and hmac.compare_digest(expected.encode(), password.encode())

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
            self._scram[key] = credential(mechanism, password, self._new_salt(), ITERATIONS.start)
        return self._scram[key]


@dataclass(slots=True)
class Authentication:
    """The authentication of one connection.

    user: the authenticated principal, once done. has_token: whether it authenticated with a
    delegation token. lenient_nonce: as of `Scram`. max_reauth_ms: returns
    `connections.max.reauth.ms` of a mechanism. validator: returns that of the tokens of
    OAUTHBEARER; KeyError without one. session: since the last authentication. Times are
    milliseconds since 1970.
    """

    enabled: tuple[str, ...]
    users: Users
    new_nonce: Callable[[], str]
    state: State = State.HANDSHAKE
    mechanism: str = ""
    user: str = ""
    has_token: bool = False
    lenient_nonce: bool = False
    max_reauth_ms: Callable[[str], int] = lambda _: 0
    validator: Callable[[], TokenValidator] = no_validator
    session: Session | None = None
    _oauth: OAuthBearer | None = field(default=None, repr=False)
    _scram: Scram | None = field(default=None)
    _reauthenticated_ms: int | None = None

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

    @property
    def other_mechanism(self) -> str:
        """Why a client that wants another mechanism than before is refused."""
        before = "" if self.session is None else self.session.mechanism
        return (
            f"SASL mechanism '{self.mechanism}' requested by client is not supported for "
            f"re-authentication of mechanism '{before}'"
        )

    def check(self, key: ApiKey, now_ms: int) -> None:
        """Raise RemoteProtocolError for a request before authentication, or after the session.

        Another request than the next token fails the authentication; its response is an error.
        """
        if self.state is S.TOKENS and key is not ApiKey.SASL_AUTHENTICATE:
            self.fail()
        elif not self.done:
            if key not in BEFORE_AUTHENTICATION:
                raise RemoteProtocolError(f"{key.name} before authentication")
        elif self.session is not None and self.session.is_expired(now_ms):
            again = key is ApiKey.SASL_HANDSHAKE and self.may_reauthenticate(now_ms)
            if not again:
                raise RemoteProtocolError(EXPIRED)

    def may_reauthenticate(self, now_ms: int) -> bool:
        """Whether the client may authenticate again: sessions have an end, and not too often."""
        if not self.done or self.session is None or self.session.ends_ms is None:
            return False
        before = self._reauthenticated_ms
        return before is None or now_ms - before >= MIN_REAUTH_INTERVAL_MS

    def reauthenticate(self, now_ms: int) -> None:
        """Begin again on a connection that is authenticated."""
        self._reauthenticated_ms = now_ms
        self._move_to(S.HANDSHAKE)

    def handshake(self, mechanism: str, version: int) -> bool:
        """Select the mechanism; return whether it is enabled."""
        if mechanism not in self.enabled:
            self.fail()
            return False
        if self.session is not None and mechanism != self.session.mechanism:
            self.mechanism = mechanism
            self._move_to(S.OTHER_MECHANISM)
            return True
        self.mechanism = mechanism
        self._scram = self._oauth = None
        self._move_to(S.TOKENS if version else S.RAW_TOKENS)
        if mechanism == OAUTHBEARER:
            self._oauth = OAuthBearer(self.validator())
        elif mechanism != PLAIN:
            self._scram = Scram(
                mechanism,
                lambda user: self.users.scram(mechanism, user),
                lambda token_id: self.users.token(mechanism, token_id),
                self.new_nonce(),
                self.lenient_nonce,
            )
        return True

    def token(self, data: bytes, now_ms: int) -> bytes:
        """Process a token; return the server's. Raises RemoteProtocolError."""
        try:
            if self._oauth is not None:
                response, valid = self._oauth.step(data, now_ms)
                if valid is not None:
                    self._authenticated(valid.principal, valid.expires_ms, now_ms)
            elif self._scram is not None:
                response = self._scram_token(self._scram, data, now_ms)
            else:
                response = b""
                self._authenticated(self._plain(data), None, now_ms)
        except RemoteProtocolError:
            self.fail()
            raise
        return response

    def _scram_token(self, scram: Scram, data: bytes, now_ms: int) -> bytes:
        response, authenticated = scram.step(data)
        if authenticated:
            token = scram.token
            self._authenticated(scram.user, None if token is None else token.expires_ms, now_ms)
            self.has_token = token is not None
        return response

    def _authenticated(self, user: str, expires_ms: int | None, now_ms: int) -> None:
        """Begin a session. Raises RemoteProtocolError for another user than before.

        expires_ms: of the credential, None if it does not expire.
        """
        if self.session is not None and user != self.session.user:
            raise RemoteProtocolError(
                "Cannot change principals during re-authentication from "
                f"User.{shown(self.session.user)}: User.{shown(user)}"
            )
        end = session_end(now_ms, self.max_reauth_ms(self.mechanism), expires_ms)
        self.user, self.has_token = user, False
        self.session = Session(self.mechanism, user, end)
        self._move_to(S.DONE)

    def _plain(self, data: bytes) -> str:
        """Return the user of `[authzid] NUL user NUL password` (RFC 4616)."""
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
        return user

    def fail(self) -> None:
        """Fail the authentication: the connection will close."""
        self._move_to(S.FAILED)

    def _move_to(self, state: State) -> None:
        if state not in LEGAL[self.state]:
            raise RemoteProtocolError(
                f"{self.state.value} -> {state.value} is not a legal transition"
            )
        self.state = state

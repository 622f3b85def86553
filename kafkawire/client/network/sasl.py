"""SASL mechanisms: the tokens of one exchange.

Credentials appear in no repr and no error.

    PLAIN          NUL user NUL password  (RFC 4616)   ─▶ empty
    SCRAM-SHA-256  see scram.py
    SCRAM-SHA-512
    OAUTHBEARER    see oauthbearer.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from ...configs.scram import HASHES
from ...errors import LocalProtocolError, RemoteProtocolError
from ...sasl.oauthbearer import OAUTHBEARER
from .oauthbearer import OAuthBearer, OAuthBearerToken
from .scram import Scram

PLAIN: Final = "PLAIN"
WITH_PASSWORD: Final = (PLAIN, *HASHES)
MECHANISMS: Final = (*WITH_PASSWORD, OAUTHBEARER)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Username, password and mechanism."""

    mechanism: str
    username: str
    password: str = field(repr=False)

    def __post_init__(self) -> None:
        if self.mechanism not in WITH_PASSWORD:
            mechanisms = ", ".join(WITH_PASSWORD)
            raise LocalProtocolError(
                f"unknown SASL mechanism {self.mechanism!r}: expected one of {mechanisms}"
            )
        if self.mechanism == PLAIN and "\0" in self.username + self.password:
            raise LocalProtocolError("SASL PLAIN: NUL in username or password")


class Mechanism(Protocol):
    """One exchange of tokens.

    rejection: why the server rejected the credentials, as its challenge says, escaped; else empty.
    """

    rejection: str

    def first(self) -> bytes: ...

    def step(self, challenge: bytes) -> bytes | None: ...


class Plain:
    """The password in plain text."""

    rejection = ""

    def __init__(self, username: str, password: str) -> None:
        self._token = f"\0{username}\0{password}".encode()

    def first(self) -> bytes:
        return self._token

    def step(self, challenge: bytes) -> bytes | None:
        if challenge:
            raise RemoteProtocolError("SASL PLAIN: unexpected server challenge")
        return None


def mechanism(credentials: Credentials | OAuthBearerToken, nonce: Callable[[], str]) -> Mechanism:
    """Start an exchange; `nonce` returns SCRAM's nonce, never the same twice."""
    if isinstance(credentials, OAuthBearerToken):
        return OAuthBearer(credentials)
    username, password = credentials.username, credentials.password
    if credentials.mechanism == PLAIN:
        return Plain(username, password)
    return Scram(credentials.mechanism, username, password, nonce())

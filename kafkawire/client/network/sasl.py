"""SASL as a connection needs it: a mechanism's tokens, one after the other.

Law: credentials show in no repr and no error.

    PLAIN          NUL user NUL password  (RFC 4616)   ─▶ anything
    SCRAM-SHA-256  see scram.py
    SCRAM-SHA-512
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from ...errors import LocalProtocolError, RemoteProtocolError
from .scram import HASHES, Scram

PLAIN: Final = "PLAIN"
MECHANISMS: Final = (PLAIN, *HASHES)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who one is, and by which mechanism that is proved."""

    mechanism: str
    username: str
    password: str = field(repr=False)

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            known = ", ".join(MECHANISMS)
            raise LocalProtocolError(f"SASL mechanism {self.mechanism!r}; known are {known}")
        if self.mechanism == PLAIN and "\0" in self.username + self.password:
            raise LocalProtocolError("SASL PLAIN: a NUL in the username or password")


class Mechanism(Protocol):
    """One exchange of tokens."""

    def first(self) -> bytes: ...

    def step(self, challenge: bytes) -> bytes | None: ...


class Plain:
    """The password, as it is."""

    def __init__(self, username: str, password: str) -> None:
        self._token = f"\0{username}\0{password}".encode()

    def first(self) -> bytes:
        return self._token

    def step(self, challenge: bytes) -> bytes | None:
        if challenge:
            raise RemoteProtocolError("SASL PLAIN: the server asks for more than the password")
        return None


def mechanism(credentials: Credentials, nonce: Callable[[], str]) -> Mechanism:
    """Begin an exchange; `nonce` draws what SCRAM needs afresh each time."""
    username, password = credentials.username, credentials.password
    if credentials.mechanism == PLAIN:
        return Plain(username, password)
    return Scram(credentials.mechanism, username, password, nonce())

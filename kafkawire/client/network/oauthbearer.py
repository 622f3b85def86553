"""SASL OAUTHBEARER: a bearer token, which a provider returns (RFC 7628, KIP-255).

The token appears in no repr and no error; every text of the server is escaped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from ...display import cut, printable
from ...errors import LocalProtocolError, RemoteProtocolError
from ...sasl.oauthbearer import (
    ACKNOWLEDGEMENT,
    B64TOKEN,
    EXTENSION_NAME,
    EXTENSION_VALUE,
    OAUTHBEARER,
    RESERVED,
    initial_response,
)

LONGEST_REASON: Final = 1000
"""Columns of a server's reason in an error."""


@dataclass(frozen=True, slots=True)
class OAuthBearerToken:
    """A bearer token.

    value: as in an `Authorization: Bearer` header. expires_at: seconds since the epoch; None if
    that is unknown. extensions: SASL extensions by name (KIP-342). Raises LocalProtocolError for a
    value or an extension that SASL cannot carry.
    """

    mechanism: ClassVar[str] = OAUTHBEARER

    value: str = field(repr=False)
    expires_at: float | None = None
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not B64TOKEN.fullmatch(self.value):
            raise LocalProtocolError(
                f"SASL OAUTHBEARER: a token of {len(self.value)} characters that are not those of"
                " RFC 6750 (letters, digits, -._~+/ and = at the end)"
            )
        for name, value in self.extensions.items():
            if name == RESERVED or not EXTENSION_NAME.fullmatch(name):
                raise LocalProtocolError(
                    f"SASL OAUTHBEARER: invalid extension name {name!r}: expected letters, and not"
                    f" {RESERVED!r}"
                )
            if not EXTENSION_VALUE.fullmatch(value):
                raise LocalProtocolError(
                    f"SASL OAUTHBEARER: the value of extension {name!r} is not printable ASCII"
                )


TokenProvider = Callable[[], OAuthBearerToken | Awaitable[OAuthBearerToken]]
"""Returns a token that is valid now, or a coroutine that does."""


@dataclass(frozen=True, slots=True)
class FromTokenProvider:
    """Credentials of OAUTHBEARER: a token of the shell's provider for each authentication."""


class OAuthBearer:
    """One exchange with a token."""

    def __init__(self, token: OAuthBearerToken) -> None:
        self._token = token
        self.rejection = ""

    def first(self) -> bytes:
        return initial_response(self._token.value, self._token.extensions)

    def step(self, challenge: bytes) -> bytes | None:
        """Acknowledge a rejection, as RFC 7628 (section 3.2.3) requires; an error follows."""
        if self.rejection:
            raise RemoteProtocolError(f"SASL OAUTHBEARER: token rejected: {self.rejection}")
        if not challenge:
            return None
        self.rejection = cut(printable(challenge.decode(errors="replace")), LONGEST_REASON)
        return ACKNOWLEDGEMENT

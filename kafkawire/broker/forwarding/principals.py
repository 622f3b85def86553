"""The principals of clients, and which of them may request delegation tokens (KIP-48).

Requests about tokens are only allowed on authenticated connections that have not themselves
authenticated with a token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...controller.operations.delegation_tokens import USER_TYPE, Principal
from ..request import ANONYMOUS, Request
from ..security.protocols import SecurityProtocol

if TYPE_CHECKING:
    from ..security.server import Authentication

NO_TIME: Final = -1
"""What a broker's response has for a time of a token that it refuses."""


def principal_of(request: Request) -> Principal:
    """Return the principal of a request's client."""
    return Principal(USER_TYPE, request.user)


def is_allowed(request: Request, protocol: SecurityProtocol, auth: Authentication | None) -> bool:
    """Return whether a client may create, renew, expire and describe tokens.

    protocol: of its listener. auth: the authentication of the connection.
    """
    if auth is not None and auth.has_token:
        return False
    return protocol.has_sasl or (protocol.has_tls and request.user != ANONYMOUS)

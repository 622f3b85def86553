"""SaslHandshake: negotiates the SASL mechanism.

v0   the first
v1   no new fields │ tokens in SaslAuthenticate, no longer raw
"""

from __future__ import annotations

from ...errors import RemoteProtocolError
from ...messages.sasl_handshake_request import SaslHandshakeRequest
from ...messages.sasl_handshake_response import SaslHandshakeResponse
from ...protocol import ErrorCode
from ..broker import Broker
from ..network.connection import Connection
from ..request import Request

E = ErrorCode


def handle(
    broker: Broker,
    request: Request,
    body: SaslHandshakeRequest,
    connection: Connection,
    now: float,
) -> SaslHandshakeResponse:
    """Select the mechanism; an error if SASL is disabled, or the client is authenticated."""
    auth, now_ms = connection.authentication, broker.context.wall_ms(now)
    if auth is None:
        return error_response(body, E.ILLEGAL_SASL_STATE)
    if auth.done:
        if not auth.may_reauthenticate(now_ms):
            return error_response(body, E.ILLEGAL_SASL_STATE)
        auth.reauthenticate(now_ms)
    if auth.session is not None and body.mechanism not in auth.enabled:
        raise RemoteProtocolError(f"re-authentication with {body.mechanism}")
    supported = auth.handshake(body.mechanism, request.version)
    error = E.NONE if supported else E.UNSUPPORTED_SASL_MECHANISM
    return SaslHandshakeResponse(error_code=error, mechanisms=list(auth.enabled))


def error_response(_body: SaslHandshakeRequest, error: ErrorCode) -> SaslHandshakeResponse:
    """Return a response with the error."""
    return SaslHandshakeResponse(error_code=error)

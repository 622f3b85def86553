"""SaslAuthenticate: processes a token of the negotiated mechanism.

v0   the first
v1   response +session_lifetime_ms
v2   flexible
"""

from __future__ import annotations

from ...errors import RemoteProtocolError
from ...messages.sasl_authenticate_request import SaslAuthenticateRequest
from ...messages.sasl_authenticate_response import SaslAuthenticateResponse
from ...protocol import ErrorCode
from ..broker import Broker
from ..network.connection import Connection
from ..request import Request
from ..security.server import State

E = ErrorCode


def handle(
    broker: Broker,
    _request: Request,
    body: SaslAuthenticateRequest,
    connection: Connection,
    now: float,
) -> SaslAuthenticateResponse:
    """Pass the token to the mechanism; a failed authentication closes the connection."""
    auth, now_ms = connection.authentication, broker.context.wall_ms(now)
    if auth is None or auth.state is not State.TOKENS:
        message = "SaslAuthenticate request received after successful authentication"
        if auth is not None and auth.state is State.HANDSHAKE:
            raise RemoteProtocolError("SaslAuthenticate before SaslHandshake")
        if auth is not None and auth.state is State.OTHER_MECHANISM:
            raise RemoteProtocolError(auth.other_mechanism)
        return SaslAuthenticateResponse(error_code=E.ILLEGAL_SASL_STATE, error_message=message)
    try:
        response = auth.token(body.auth_bytes, now_ms)
    except RemoteProtocolError as error:
        return SaslAuthenticateResponse(
            error_code=E.SASL_AUTHENTICATION_FAILED, error_message=str(error)
        )
    lifetime_ms = auth.session.lifetime_ms(now_ms) if auth.done and auth.session else 0
    return SaslAuthenticateResponse(auth_bytes=response, session_lifetime_ms=lifetime_ms)


def error_response(_body: SaslAuthenticateRequest, error: ErrorCode) -> SaslAuthenticateResponse:
    """Return a response with the error."""
    return SaslAuthenticateResponse(error_code=error, error_message=error.name)

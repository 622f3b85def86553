"""Guards the handlers: what the sender of a request may not do never reaches them.

request ─▶ checks of its API ─┬─▶ refused: the response with Kafka's error
└─▶ what is allowed ─▶ handler ─▶ response, completed with what
was refused
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import RemoteProtocolError
from ...primitives import Message
from ..broker import Broker
from ..network.connection import Connection
from ..request import NO_RESPONSE, HandlerResult, Request
from .access import access_of
from .checks import Partly, judge
from .table import checks_of

Process = Callable[[Request], HandlerResult]
"""What a handler does with a request."""


def handle(
    process: Process, broker: Broker, request: Request, connection: Connection
) -> HandlerResult:
    """Let a handler process what the sender of a request may do.

    Raises RemoteProtocolError, which closes the connection, before the ACLs are loaded.
    """
    access = access_of(broker, request)
    if access is None:
        return process(request)
    checks = checks_of(request.api_key)
    if checks and not access.authorizer.is_loaded:
        raise RemoteProtocolError(f"{request.api_key.name} before the ACLs are loaded")
    verdict = judge(access, request.body, checks)
    if verdict is None:
        return process(request)
    if not request.expects_response:
        return _without_response(process, broker, request, verdict, connection)
    if isinstance(verdict, Message):
        return verdict
    allowed = request._replace(body=verdict.body)
    broker.channel.pending[request.reply_to] = allowed
    broker.channel.completions[request.reply_to] = verdict.complete
    return process(allowed)


def _without_response(
    process: Process,
    broker: Broker,
    request: Request,
    verdict: Message | Partly,
    connection: Connection,
) -> HandlerResult:
    """Handle what is allowed, and close the connection: so the client learns of the rest."""
    result: HandlerResult = NO_RESPONSE
    if isinstance(verdict, Partly):
        result = process(request._replace(body=verdict.body))
    reason = f"{request.api_key.name} without a response is not authorized"
    broker.channel.close(connection, reason)
    return result

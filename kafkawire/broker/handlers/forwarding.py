"""Forwards requests: the handler of each API that a controller, the quorum or replicas respond to.

A broker of a cluster with ZooKeeper forwards nothing: clients send to the controller itself.
"""

from __future__ import annotations

from typing import Final

from ...messages import REGISTRY
from ...messages.api_key import ApiKey
from ...metadata.client_quotas import CONTROLLER_MUTATION
from ...primitives import Message
from ...protocol import ErrorCode
from ..broker import Broker
from ..forwarding.envelope import MUTATIONS
from ..forwarding.principals import principal_of
from ..network.connection import Connection
from ..request import HandlerResult, Request

ONLY_CONTROLLER: Final = frozenset(
    {ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS}
)
"""APIs that only the controller serves with ZooKeeper; configurations every broker may change."""


def handle(
    broker: Broker, request: Request, _body: Message, _connection: Connection, now: float
) -> HandlerResult:
    """Hand a request to who responds to it."""
    is_controller = broker.node_id == broker.metadata.controller_id
    if broker.control is not None and not is_controller and request.api_key in ONLY_CONTROLLER:
        return broker.channel.error_response(request, ErrorCode.NOT_CONTROLLER)
    is_limited = broker.throttling.quotas.limit(CONTROLLER_MUTATION)
    if is_limited and request.api_key in MUTATIONS and broker.control is None:
        return broker.controller.forward_for(principal_of(request), request, now)
    return broker.controller.forward(request, now)


def error_response(body: Message, error: ErrorCode) -> Message:
    """Build a response with the error, at the top or for each part of the request."""
    # imported only where needed
    from ...controller.operations.refusals import REFUSALS

    refusal = REFUSALS.get(type(body))
    if refusal is not None:
        return refusal(body, error)
    name = type(body).__name__.replace("Request", "Response")
    response: Message = REGISTRY.load(name)(error_code=error)
    return response

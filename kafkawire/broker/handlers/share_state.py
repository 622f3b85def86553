"""The handler of the APIs for the state of share partitions, which brokers send each other.

InitializeShareGroupState    v0
ReadShareGroupState          v0
WriteShareGroupState         v0
                             v1   request +delivery_complete_count
DeleteShareGroupState        v0
ReadShareGroupStateSummary   v0
                             v1   response +delivery_complete_count
"""

from __future__ import annotations

from ...primitives import Message
from ..broker import Broker
from ..network.connection import Connection
from ..request import DELAYED, HandlerResult, Request
from ..share_coordinator.requests import error_response

__all__ = ["error_response", "handle"]


def handle(
    broker: Broker, request: Request, body: Message, _connection: Connection, now: float
) -> HandlerResult:
    """Hand a request to the share coordinators of the node."""
    unserved = broker.share_groups_error
    if unserved:
        return error_response(body, unserved)

    def respond(response: Message, now: float) -> None:
        broker.channel.respond(request.reply_to, response, now)

    broker.share_coordinators.handle(body, respond, now)
    return DELAYED

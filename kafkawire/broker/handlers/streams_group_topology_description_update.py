"""StreamsGroupTopologyDescriptionUpdate: a member sends the graph of its topology (KIP-1331).

v0   the first; flexible
"""

from __future__ import annotations

from ...messages.streams_group_topology_description_update_request import (
    StreamsGroupTopologyDescriptionUpdateRequest,
)
from ...messages.streams_group_topology_description_update_response import (
    StreamsGroupTopologyDescriptionUpdateResponse,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..network.connection import Connection
from ..request import Request

NO_PLUGIN = "The broker has no streams group topology description plugin configured."


def handle(
    broker: Broker,
    _request: Request,
    body: StreamsGroupTopologyDescriptionUpdateRequest,
    _connection: Connection,
    _now: float,
) -> StreamsGroupTopologyDescriptionUpdateResponse:
    """Refuse it, as Kafka without a plugin that stores descriptions; no heartbeat requests one."""
    response = error_response(body, broker.streams_groups_error or ErrorCode.UNSUPPORTED_VERSION)
    if not broker.streams_groups_error:
        response.error_message = NO_PLUGIN
    return response


def error_response(
    _body: StreamsGroupTopologyDescriptionUpdateRequest, error: ErrorCode
) -> StreamsGroupTopologyDescriptionUpdateResponse:
    """Return a response with the error."""
    return StreamsGroupTopologyDescriptionUpdateResponse(error_code=error)

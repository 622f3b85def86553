"""ListConfigResources: lists what has, or may have, a configuration (KIP-1142).

v0   the first; flexible │ client metrics only
v1   request +resource_types; response +resource_type
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ...configs import ResourceType
from ...messages.list_config_resources_request import ListConfigResourcesRequest
from ...messages.list_config_resources_response import ConfigResource, ListConfigResourcesResponse
from ...protocol import ErrorCode
from ..broker import Broker
from ..network.connection import Connection
from ..request import Request

RESOURCE_TYPES_FROM: Final = 1


def handle(
    broker: Broker,
    request: Request,
    body: ListConfigResourcesRequest,
    _connection: Connection,
    _now: float,
) -> ListConfigResourcesResponse:
    """List the resources of the requested types, of all types for an empty list."""
    types = body.resource_types or LISTED
    if request.version < RESOURCE_TYPES_FROM:
        types = [ResourceType.CLIENT_METRICS]
    if not LISTED.keys() >= set(types):
        return error_response(body, ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=type)
            for type in dict.fromkeys(types)
            for name in LISTED[type](broker)
        ]
    )


def error_response(
    _body: ListConfigResourcesRequest, error: ErrorCode
) -> ListConfigResourcesResponse:
    """Return a response with the error."""
    return ListConfigResourcesResponse(error_code=error)


def _node_ids(broker: Broker) -> Iterable[str]:
    return [str(each.node_id) for each in broker.metadata.alive_endpoints()]


LISTED: Final[Mapping[int, Callable[[Broker], Iterable[str]]]] = {
    ResourceType.TOPIC: lambda broker: [each.name for each in broker.topics],
    ResourceType.BROKER: _node_ids,
    ResourceType.BROKER_LOGGER: _node_ids,
    ResourceType.CLIENT_METRICS: lambda broker: broker.metadata.configured(
        ResourceType.CLIENT_METRICS
    ),
    ResourceType.GROUP: lambda broker: broker.metadata.configured(ResourceType.GROUP),
}
"""Type of a resource -> the names of those that are listed."""

"""DescribeCluster: lists the brokers of the cluster, or its controllers (KIP-700, KIP-919).

v0   the first; flexible
v1   request +endpoint_type; response +endpoint_type
v2   request +include_fenced_brokers; response +is_fenced
"""

from __future__ import annotations

from typing import Final

from ...messages.describe_cluster_request import DescribeClusterRequest
from ...messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse
from ...protocol import ErrorCode
from ..broker import Broker
from ..metadata_cache import NO_CONTROLLER
from ..network.connection import Connection
from ..request import Request
from ..security.operations import CLUSTER_OPERATIONS

E = ErrorCode
ENDPOINT_TYPE_FROM: Final = 1
BROKERS: Final = 1
CONTROLLERS: Final = 2


def handle(
    broker: Broker,
    request: Request,
    body: DescribeClusterRequest,
    _connection: Connection,
    _now: float,
) -> DescribeClusterResponse:
    """List the brokers that are up; on the listener of controllers, the controllers."""
    error = _error(broker, request, body)
    if error is not E.NONE:
        return error_response(body, error)
    response = _controllers(broker) if broker.is_controller else _brokers(broker)
    response.cluster_id = broker.context.cluster_id
    if body.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def _error(broker: Broker, request: Request, body: DescribeClusterRequest) -> ErrorCode:
    """Return the error of a request for nodes that the listener does not describe."""
    requested = body.endpoint_type if request.version >= ENDPOINT_TYPE_FROM else BROKERS
    if requested == (CONTROLLERS if broker.is_controller else BROKERS):
        return E.NONE
    if request.version < ENDPOINT_TYPE_FROM:
        return E.INVALID_REQUEST
    is_type = requested in (BROKERS, CONTROLLERS)
    return E.MISMATCHED_ENDPOINT_TYPE if is_type else E.UNSUPPORTED_ENDPOINT_TYPE


def _brokers(broker: Broker) -> DescribeClusterResponse:
    return DescribeClusterResponse(
        controller_id=broker.metadata.controller_id,
        brokers=[
            DescribeClusterBroker(broker_id=node_id, host=host, port=port, rack=rack)
            for node_id, host, port, rack in broker.metadata.alive_endpoints()
        ],
    )


def _controllers(broker: Broker) -> DescribeClusterResponse:
    leader_id, addresses = broker.machines.controllers()
    return DescribeClusterResponse(
        endpoint_type=CONTROLLERS,
        controller_id=NO_CONTROLLER if leader_id is None else leader_id,
        brokers=[
            DescribeClusterBroker(broker_id=node_id, host=host, port=port)
            for node_id, (host, port) in addresses.items()
        ],
    )


def error_response(_body: DescribeClusterRequest, error: ErrorCode) -> DescribeClusterResponse:
    """Return a response with the error."""
    return DescribeClusterResponse(error_code=error, error_message=error.name, cluster_id="")

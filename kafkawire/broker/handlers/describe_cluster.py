"""DescribeCluster: lists the brokers of the cluster (KIP-700).

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
    """List the brokers that are up."""
    if request.version >= ENDPOINT_TYPE_FROM and body.endpoint_type != BROKERS:
        known = body.endpoint_type == CONTROLLERS
        return error_response(
            body, E.MISMATCHED_ENDPOINT_TYPE if known else E.UNSUPPORTED_ENDPOINT_TYPE
        )
    response = DescribeClusterResponse(
        cluster_id=broker.context.cluster_id,
        controller_id=broker.metadata.controller_id,
        brokers=[
            DescribeClusterBroker(broker_id=node_id, host=host, port=port, rack=rack)
            for node_id, host, port, rack in broker.metadata.alive_endpoints()
        ],
    )
    if body.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def error_response(_body: DescribeClusterRequest, error: ErrorCode) -> DescribeClusterResponse:
    """Return a response with the error."""
    return DescribeClusterResponse(error_code=error, error_message=error.name, cluster_id="")

"""Moves leaders away from a broker that is to stop, in a cluster with ZooKeeper.

Law: only the elected controller does; a request with an earlier epoch of the broker is refused.
"""

from __future__ import annotations

from ....messages.controlled_shutdown_request import ControlledShutdownRequest
from ....messages.controlled_shutdown_response import (
    ControlledShutdownResponse,
    RemainingPartition,
)
from ....protocol import ErrorCode
from ...request import Request
from ..controller import Controller
from ..leadership import shut_down

E = ErrorCode
UNKNOWN_EPOCH = -1


def controlled_shutdown(
    controller: Controller, request: Request, body: ControlledShutdownRequest, now: float
) -> ControlledShutdownResponse:
    """Move the leaders away; the response lists the partitions that the broker still leads."""
    error = _error(controller, request, body)
    if error is not E.NONE:
        return ControlledShutdownResponse(error_code=error)
    return ControlledShutdownResponse(
        remaining_partitions=[
            RemainingPartition(topic_name=each.topic, partition_index=each.index)
            for each in shut_down(controller, body.broker_id, now)
        ]
    )


def _error(controller: Controller, request: Request, body: ControlledShutdownRequest) -> ErrorCode:
    assert controller.zookeeper is not None
    registry = controller.zookeeper.registry
    if request.node_id != registry.controller_id:
        return E.STALE_CONTROLLER_EPOCH
    epoch = registry.broker_epochs.get(body.broker_id)
    if epoch is None:
        return E.BROKER_NOT_AVAILABLE
    if UNKNOWN_EPOCH != body.broker_epoch < epoch:
        return E.STALE_BROKER_EPOCH
    return E.NONE

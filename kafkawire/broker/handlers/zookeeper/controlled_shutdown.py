"""ControlledShutdown: a broker that is to stop has the controller move its leaders away.

v0   the first
v1   no new fields
v2   request +broker_epoch │ KIP-380
v3   flexible
"""

from __future__ import annotations

from dataclasses import dataclass

from ....messages.broker_heartbeat_request import BrokerHeartbeatRequest
from ....messages.controlled_shutdown_request import ControlledShutdownRequest
from ....messages.controlled_shutdown_response import (
    ControlledShutdownResponse,
    RemainingPartition,
)
from ....primitives import Message
from ....protocol import ErrorCode
from ...broker import Broker
from ...control_state import Ensemble
from ...network.connection import Connection
from ...request import HandlerResult, Request


def handle(
    broker: Broker,
    request: Request,
    body: ControlledShutdownRequest,
    _connection: Connection,
    now: float,
) -> HandlerResult:
    """Move the leaders away, as the quorum does for a broker whose heartbeat wants to shut down.

    While no other replica of a partition is in sync, none is moved: the broker tries again.
    """
    assert broker.control is not None
    error = broker.control.check_shutdown(body.broker_id, body.broker_epoch)
    registration = broker.image.brokers.get(body.broker_id)
    if error is ErrorCode.NONE and registration is None:
        error = ErrorCode.BROKER_NOT_AVAILABLE
    if error is not ErrorCode.NONE or registration is None:
        return error_response(body, error)
    ensemble = broker.control.ensemble
    remaining = _remaining(ensemble, body.broker_id)
    if remaining.remaining_partitions:
        return remaining
    ensemble.moving.add(body.broker_id)
    heartbeat = BrokerHeartbeatRequest(
        broker_id=body.broker_id,
        broker_epoch=registration.epoch,
        current_metadata_offset=broker.image.offset,
        want_shut_down=True,
    )
    return broker.controller.forward(request, now, heartbeat, Moved(ensemble, body.broker_id))


@dataclass(frozen=True, slots=True)
class Moved:
    """Makes the response when the quorum has moved the leaders of a broker."""

    ensemble: Ensemble
    broker_id: int

    def response(self, _body: Message, _now: float) -> ControlledShutdownResponse:
        """List the partitions that the broker still leads, though there are other replicas."""
        return _remaining(self.ensemble, self.broker_id)


def _remaining(ensemble: Ensemble, broker_id: int) -> ControlledShutdownResponse:
    """List the partitions that have other replicas, but none that is in sync."""
    return ControlledShutdownResponse(
        remaining_partitions=[
            RemainingPartition(topic_name=each.topic, partition_index=each.index)
            for each in ensemble.led_by(broker_id)
            if len(each.replicas) > 1 and list(each.isr) == [broker_id]
        ]
    )


def error_response(
    _body: ControlledShutdownRequest, error: ErrorCode
) -> ControlledShutdownResponse:
    """Return a response with the error."""
    return ControlledShutdownResponse(error_code=error)

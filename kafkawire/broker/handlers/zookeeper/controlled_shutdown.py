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

    Those of partitions without another replica in sync remain: the broker tries again.
    """
    assert broker.control is not None
    error = broker.control.check_shutdown(body.broker_id, body.broker_epoch)
    registration = broker.image.brokers.get(body.broker_id)
    if error is ErrorCode.NONE and registration is None:
        error = ErrorCode.BROKER_NOT_AVAILABLE
    if error is not ErrorCode.NONE or registration is None:
        return error_response(body, error)
    heartbeat = BrokerHeartbeatRequest(
        broker_id=body.broker_id,
        broker_epoch=registration.epoch,
        current_metadata_offset=broker.image.offset,
        want_shut_down=True,
    )
    moved = Moved(broker.control.ensemble, body.broker_id)
    return broker.controller.forward(request, now, heartbeat, moved)


@dataclass(frozen=True, slots=True)
class Moved:
    """Makes the response when the quorum has moved the leaders of a broker."""

    ensemble: Ensemble
    broker_id: int

    def response(self, body: Message, _now: float) -> ControlledShutdownResponse:
        """List the partitions that the broker still leads, though there are other replicas."""
        error = getattr(body, "error_code", ErrorCode.NONE)
        if error:
            return ControlledShutdownResponse(error_code=error)
        return ControlledShutdownResponse(
            remaining_partitions=[
                RemainingPartition(topic_name=each.topic, partition_index=each.index)
                for each in self.ensemble.led_by(self.broker_id)
                if len(each.replicas) > 1
            ]
        )


def error_response(
    _body: ControlledShutdownRequest, error: ErrorCode
) -> ControlledShutdownResponse:
    """Return a response with the error."""
    return ControlledShutdownResponse(error_code=error)

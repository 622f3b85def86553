"""UpdateMetadata: the controller sends a broker the live brokers and the state of partitions.

v0   the first
v1   request +endpoints -v0_host -v0_port
v2   request +rack
v3   request +listener
v4   request +offline_replicas │ KIP-112
v5   request +broker_epoch +topic_states -ungrouped_partition_states -topic_name │ KIP-380
v6   flexible
v7   request +topic_id │ KIP-516
v8   request +is_k_raft_controller +type
"""

from __future__ import annotations

from ....messages.update_metadata_request import UpdateMetadataRequest
from ....messages.update_metadata_response import UpdateMetadataResponse
from ....protocol import ErrorCode
from ...broker import Broker
from ...network.connection import Connection
from ...request import Request


def handle(
    broker: Broker,
    _request: Request,
    body: UpdateMetadataRequest,
    _connection: Connection,
    _now: float,
) -> UpdateMetadataResponse:
    """Compare the epochs; the brokers share their metadata, so nothing else is new to them."""
    assert broker.control is not None
    error = broker.control.check(body.controller_epoch, body.broker_epoch)
    return UpdateMetadataResponse(error_code=error)


def error_response(_body: UpdateMetadataRequest, error: ErrorCode) -> UpdateMetadataResponse:
    """Return a response with the error."""
    return UpdateMetadataResponse(error_code=error)

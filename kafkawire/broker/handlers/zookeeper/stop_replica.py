"""StopReplica: the controller stops replicas on a broker, and perhaps deletes them.

v0   the first
v1   request +broker_epoch +topics -ungrouped_partitions │ KIP-380
v2   flexible
v3   request +topic_states -delete_partitions -topics │ KIP-570
v4   request +is_k_raft_controller
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ....messages.stop_replica_request import StopReplicaRequest
from ....messages.stop_replica_response import StopReplicaPartitionError, StopReplicaResponse
from ....protocol import ErrorCode
from ...broker import Broker
from ...control_state import UNKNOWN_EPOCH
from ...network.connection import Connection
from ...request import Request, Work


class _Replica(NamedTuple):
    topic: str
    partition: int
    leader_epoch: int
    delete: bool


def handle(
    broker: Broker,
    _request: Request,
    body: StopReplicaRequest,
    _connection: Connection,
    _now: float,
) -> StopReplicaResponse | Work[StopReplicaResponse]:
    """Stop each replica whose leader epoch is not older than that of the broker."""
    assert broker.control is not None
    error = broker.control.check(body.controller_epoch, body.broker_epoch)
    if error is not ErrorCode.NONE:
        return StopReplicaResponse(error_code=error)
    return _results(broker, body)


def _results(broker: Broker, body: StopReplicaRequest) -> Work[StopReplicaResponse]:
    assert broker.control is not None
    errors = []
    for each in _replicas(body):
        yield 1
        key = each.topic, each.partition
        errors.append(_error(each, broker.control.stop(key, each.leader_epoch, each.delete)))
    return StopReplicaResponse(partition_errors=errors)


def _replicas(body: StopReplicaRequest) -> Iterator[_Replica]:
    """The replicas in each of the three forms of the request."""
    delete = body.delete_partitions
    for each in body.ungrouped_partitions:
        yield _Replica(each.topic_name, each.partition_index, UNKNOWN_EPOCH, delete)
    for topic in body.topics:
        for index in topic.partition_indexes:
            yield _Replica(topic.name, index, UNKNOWN_EPOCH, delete)
    for states in body.topic_states:
        for state in states.partition_states:
            yield _Replica(
                states.topic_name, state.partition_index, state.leader_epoch, state.delete_partition
            )


def _error(replica: _Replica, error: ErrorCode) -> StopReplicaPartitionError:
    return StopReplicaPartitionError(
        topic_name=replica.topic, partition_index=replica.partition, error_code=error
    )


def error_response(body: StopReplicaRequest, error: ErrorCode) -> StopReplicaResponse:
    """Return a response with the error, for each partition too."""
    return StopReplicaResponse(
        error_code=error, partition_errors=[_error(each, error) for each in _replicas(body)]
    )

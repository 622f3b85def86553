"""LeaderAndIsr: the controller sends the partitions that a broker leads or follows.

v0   the first
v1   request +is_new
v2   request +broker_epoch +topic_states -ungrouped_partition_states -topic_name │ KIP-380
v3   request +adding_replicas +removing_replicas │ KIP-455
v4   flexible
v5   request +type +topic_id; response +topics -partition_errors -topic_name
v6   request +leader_recovery_state │ KIP-704
v7   request +is_k_raft_controller
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ....messages.leader_and_isr_request import LeaderAndIsrPartitionState, LeaderAndIsrRequest
from ....messages.leader_and_isr_response import LeaderAndIsrPartitionError, LeaderAndIsrResponse
from ....protocol import ErrorCode
from ...broker import Broker
from ...network.connection import Connection
from ...request import Request, Work


class _State(NamedTuple):
    topic: str
    state: LeaderAndIsrPartitionState


def handle(
    broker: Broker,
    _request: Request,
    body: LeaderAndIsrRequest,
    _connection: Connection,
    _now: float,
) -> LeaderAndIsrResponse | Work[LeaderAndIsrResponse]:
    """Lead or follow each partition from its leader epoch on."""
    assert broker.control is not None
    error = broker.control.check(body.controller_epoch, body.broker_epoch)
    if error is not ErrorCode.NONE:
        return error_response(body, error)
    return _results(broker, body)


def _results(broker: Broker, body: LeaderAndIsrRequest) -> Work[LeaderAndIsrResponse]:
    assert broker.control is not None
    errors = []
    for topic, state in _states(body):
        yield 1
        partition = broker.topics.partition(topic, state.partition_index)
        hosted = partition is not None and broker.node_id in partition.replicas
        error = broker.control.become(
            (topic, state.partition_index),
            state.leader_epoch,
            hosted and broker.node_id in state.replicas,
        )
        errors.append(_error(topic, state, error))
    return LeaderAndIsrResponse(partition_errors=errors)


def _states(body: LeaderAndIsrRequest) -> Iterator[_State]:
    for state in body.ungrouped_partition_states:
        yield _State(state.topic_name, state)
    for topic in body.topic_states:
        for state in topic.partition_states:
            yield _State(topic.topic_name, state)


def _error(
    topic: str, state: LeaderAndIsrPartitionState, error: ErrorCode
) -> LeaderAndIsrPartitionError:
    return LeaderAndIsrPartitionError(
        topic_name=topic, partition_index=state.partition_index, error_code=error
    )


def error_response(body: LeaderAndIsrRequest, error: ErrorCode) -> LeaderAndIsrResponse:
    """Return a response with the error, for each partition too."""
    return LeaderAndIsrResponse(
        error_code=error,
        partition_errors=[_error(topic, state, error) for topic, state in _states(body)],
    )

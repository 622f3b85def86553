"""Serves DescribeQuorum: the leader's view of the voters and observers (KIP-595, 836, 853)."""

from __future__ import annotations

from typing import Final

from ..messages.describe_quorum_response import (
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)
from ..primitives import Message
from ..protocol.error_code import ErrorCode
from .config import PARTITION, TOPIC
from .events import RequestReceived
from .leading import find_progress, timestamp
from .quorum import Quorum
from .voters import ReplicaKey
from .wire import leader_id, only_partition

ERRORS_AS_TEXT_FROM: Final = 2
OBSERVER_SECONDS: Final = 300.0
"""How long an observer that does not fetch is still listed."""


def handle_describe(quorum: Quorum, received: RequestReceived, now: float) -> Message:
    """Describe the quorum."""
    version = received.version
    if only_partition(received.request) is None:
        return DescribeQuorumResponse(error_code=ErrorCode.INVALID_REQUEST)
    partition = PartitionData(
        partition_index=PARTITION,
        leader_id=leader_id(quorum),
        leader_epoch=quorum.epoch,
    )
    leadership = quorum.leadership
    nodes: list[Node] = []
    if leadership is None:
        partition.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    else:
        watermark = leadership.high_watermark
        partition.high_watermark = -1 if watermark is None else watermark
        voters = quorum.voters.keys
        partition.current_voters = [_state(quorum, key, version, now) for key in voters]
        partition.observers = [
            _state(quorum, key, version, now)
            for key, each in sorted(leadership.progress.items())
            if not quorum.voters.has(key)
            and (key.id == quorum.node_id or now - each.last_fetch < OBSERVER_SECONDS)
        ]
        nodes = _nodes(quorum) if version >= ERRORS_AS_TEXT_FROM else []
    topic = TopicData(topic_name=TOPIC, partitions=[partition])
    return DescribeQuorumResponse(topics=[topic], nodes=nodes)


def _state(quorum: Quorum, key: ReplicaKey, version: int, now: float) -> ReplicaState:
    assert quorum.leadership is not None
    own = key.id == quorum.node_id
    progress = find_progress(quorum.leadership, key)
    state = ReplicaState(replica_id=key.id)
    if version >= ERRORS_AS_TEXT_FROM:
        state.replica_directory_id = key.directory_id
    state.log_end_offset = quorum.log.end.offset if own else -1
    if own:
        state.last_fetch_timestamp = state.last_caught_up_timestamp = timestamp(quorum, now)
    elif progress is not None:
        state.log_end_offset = progress.end_offset
        if progress.last_fetch >= 0:
            state.last_fetch_timestamp = timestamp(quorum, progress.last_fetch)
        if progress.last_caught_up >= 0:
            state.last_caught_up_timestamp = timestamp(quorum, progress.last_caught_up)
    if version == 0:
        state.last_fetch_timestamp = state.last_caught_up_timestamp = -1
    return state


def _nodes(quorum: Quorum) -> list[Node]:
    return [
        Node(
            node_id=voter.key.id,
            listeners=[
                Listener(name=each.name, host=each.host, port=each.port) for each in voter.endpoints
            ],
        )
        for voter in quorum.voters
    ]

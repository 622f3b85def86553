"""Reads what a Fetch is for, and what DescribeQuorum shows (KIP-595, 836, 853).

A replica whose log is not a beginning of this one gets no records.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

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
from .effects import Reply
from .events import RequestReceived
from .log import OffsetAndEpoch, ReplicatedLog, SnapshotId
from .quorum import Quorum
from .states import State
from .voters import ReplicaKey
from .wire import leader_id, new_fetch_response, only_partition

ERRORS_AS_TEXT_FROM: Final = 2
OBSERVER_SECONDS: Final = 300.0
"""How long an observer that does not fetch is still listed."""


class Fetched(NamedTuple):
    """The response to a Fetch, and whether it may wait for records."""

    response: Message
    may_wait: bool


def check_leader(quorum: Quorum, epoch: int) -> ErrorCode:
    """Check the epoch of a request that only its leader serves."""
    if epoch < quorum.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > quorum.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if quorum.state is not State.LEADER:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE


class Invalid(NamedTuple):
    """Why a replica cannot fetch from where its log ends: its log diverges, or is too old."""

    diverging: OffsetAndEpoch | None
    snapshot: SnapshotId | None


def validate(log: ReplicatedLog, offset: int, epoch: int) -> Invalid | None:
    """Compare where a replica's log ends with this log; None: it is a beginning of this one."""
    snapshot = log.latest_snapshot
    if snapshot is not None and (offset < log.start_offset or (offset == 0 < snapshot.offset)):
        return Invalid(None, snapshot)
    if offset == 0:
        return None
    end = log.end_offset_for_epoch(epoch)
    if end.epoch < 0 and snapshot is not None:
        return Invalid(None, snapshot)
    if end.epoch != epoch or end.offset < offset:
        return Invalid(end, None)
    return None


def read(quorum: Quorum, request: Any, version: int) -> Fetched:
    """Read what a Fetch is for."""
    leadership = quorum.leadership
    assert leadership is not None
    partition = only_partition(request)
    watermark = leadership.high_watermark
    invalid = validate(quorum.log, partition.fetch_offset, partition.last_fetched_epoch)
    if invalid is not None:
        response = new_fetch_response(
            quorum,
            version,
            high_watermark=watermark,
            diverging=invalid.diverging,
            snapshot=invalid.snapshot,
        )
        return Fetched(response, False)
    most = min(request.max_bytes, partition.partition_max_bytes, quorum.config.max_bytes)
    behind = partition.fetch_offset < quorum.log.end.offset
    records = quorum.log.read(partition.fetch_offset, max(most, 0)) if behind else b""
    news = watermark is not None and partition.high_watermark < watermark
    response = new_fetch_response(quorum, version, records=records, high_watermark=watermark)
    return Fetched(response, not records and not news)


def _has_news(quorum: Quorum, request: Any) -> bool:
    """Whether there is anything that a replica which has fetched to the end does not know."""
    partition, leadership = only_partition(request), quorum.leadership
    watermark = None if leadership is None else leadership.high_watermark
    is_new = watermark is None or partition.high_watermark >= watermark
    return not is_new or partition.fetch_offset != quorum.log.end.offset


def complete_held(quorum: Quorum, now: float) -> None:
    """Respond to Fetches that waited: there are records, or their time is over."""
    for reply_to, held in list(quorum.held.items()):
        if quorum.leadership is None:
            break
        if held.deadline > now and not _has_news(quorum, held.request):
            continue
        fetched = read(quorum, held.request, held.version)
        if not fetched.may_wait or held.deadline <= now:
            del quorum.held[reply_to]
            quorum.effects.append(Reply(reply_to, fetched.response))


# -- DescribeQuorum


def handle_describe(
    quorum: Quorum, received: RequestReceived, _partition: Any, now: float
) -> Message:
    """Describe the quorum."""
    version = received.version
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
    progress = quorum.leadership.find(key)
    state = ReplicaState(replica_id=key.id)
    if version >= ERRORS_AS_TEXT_FROM:
        state.replica_directory_id = key.directory_id
    state.log_end_offset = quorum.log.end.offset if own else -1
    if own:
        state.last_fetch_timestamp = state.last_caught_up_timestamp = quorum.timestamp(now)
    elif progress is not None:
        state.log_end_offset = progress.end_offset
        if progress.last_fetch >= 0:
            state.last_fetch_timestamp = quorum.timestamp(progress.last_fetch)
        if progress.last_caught_up >= 0:
            state.last_caught_up_timestamp = quorum.timestamp(progress.last_caught_up)
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

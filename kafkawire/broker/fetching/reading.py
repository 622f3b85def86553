"""Reading for a Fetch: when there is enough, and what goes out.

Law: a Fetch is answered at once when it has its minimum, an error to tell, or nothing to wait for;
otherwise it is parked, and its records are read when it is answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ...messages.fetch_request import FetchRequest
from ...messages.fetch_response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from ...protocol import ErrorCode
from ..events import FetchWaited
from ..log.conversion import readable
from ..log.partition_log import OffsetOutOfRange
from ..request import PARKED, Answer, Request
from ..topics import Partition
from .sessions import NO_SESSION, TOPIC_IDS_FROM, Context, Target
from .waiting import Wait

if TYPE_CHECKING:
    from ..broker import Broker
    from ..cluster import Cluster

E = ErrorCode
SOFT_LIMITS_FROM: Final = 3
LEADERS_TOLD_FROM: Final = 16
READ_COMMITTED: Final = 1
NOTHING: Final = -1
MOVED: Final = frozenset({E.NOT_LEADER_OR_FOLLOWER, E.FENCED_LEADER_EPOCH})


class Place(NamedTuple):
    """A target as this broker finds it. diverging: where the client's log leaves ours (KIP-595)."""

    partition: Partition | None
    error: ErrorCode
    diverging: EpochEndOffset | None = None


def fetch(broker: Broker, request: Request, body: FetchRequest, now: float) -> Answer:
    """Answer a Fetch, or park it."""
    context = broker.sessions.resolve(body, request.version, now)
    if isinstance(context, ErrorCode):
        return FetchResponse(error_code=context)
    wait_seconds = body.max_wait_ms / 1000
    wait = waiting_for(broker, request, body, context) if wait_seconds > 0 else None
    if wait is None:
        return read(broker, request, body, context)
    broker.waiting.park(wait)
    broker.cluster.deadlines.set(FetchWaited(request.reply_to), now + wait_seconds)
    return PARKED


def wake(broker: Broker, key: tuple[str, int], now: float) -> None:
    """Answer the parked fetches that have enough now that a partition has changed."""
    for wait in broker.waiting.for_partition(key):
        if _counted(broker, wait, wait.targets[key]):
            _end_wait(broker, wait.request.reply_to, now)


def fetch_waited(cluster: Cluster, reply_to: int, now: float) -> None:
    """Answer a parked Fetch whose time is over."""
    request = cluster.serving.pending.get(reply_to)
    if request is not None:
        _end_wait(cluster.brokers[request.node_id], reply_to, now)


def _end_wait(broker: Broker, reply_to: int, now: float) -> None:
    wait = broker.waiting.take(reply_to)
    if wait is None:
        return
    broker.cluster.deadlines.cancel(FetchWaited(reply_to))
    body = wait.request.body
    assert isinstance(body, FetchRequest)
    broker.cluster.answer(reply_to, read(broker, wait.request, body, wait.context), now)


def waiting_for(
    broker: Broker, request: Request, body: FetchRequest, context: Context
) -> Wait | None:
    """Return what a Fetch waits for, None if it need not wait."""
    if body.min_bytes <= 0 or not context.targets:
        return None
    wait = Wait(request, context, body.min_bytes)
    return None if any(_counted(broker, wait, each) for each in context.targets) else wait


def _counted(broker: Broker, wait: Wait, target: Target) -> bool:
    """Count what a partition has for a Fetch; whether that is enough, or an error to send."""
    found = place(broker, target)
    partition = found.partition
    if partition is None or found.error or found.diverging is not None:
        return True
    wait.targets[partition.key] = target
    limit = max(1, target.asked.partition_max_bytes)
    available = min(partition.log.bytes_from(target.asked.fetch_offset), limit)
    return wait.count(partition.key, available)


def place(broker: Broker, target: Target) -> Place:
    """Find a target, and say why it cannot be read."""
    asked = target.asked
    name = target.topic
    if target.topic_id != bytes(16) or not name:
        topic = broker.cluster.topics.by_id(target.topic_id)
        if topic is None:
            return Place(None, E.UNKNOWN_TOPIC_ID)
        name = topic.name
    partition, error = broker.led(name, asked.partition, asked.current_leader_epoch)
    if partition is None or error:
        return Place(partition, error)
    log = partition.log
    if asked.last_fetched_epoch >= 0:
        end = log.end_of_epoch(asked.last_fetched_epoch, partition.leader_epoch)
        if end.end_offset < 0:
            return Place(partition, E.OFFSET_OUT_OF_RANGE)  # an epoch from nowhere
        if end.epoch < asked.last_fetched_epoch or end.end_offset < asked.fetch_offset:
            diverging = EpochEndOffset(epoch=end.epoch, end_offset=end.end_offset)
            return Place(partition, E.NONE, diverging)
    if not log.log_start_offset <= asked.fetch_offset <= log.log_end_offset:
        return Place(partition, E.OFFSET_OUT_OF_RANGE)
    return Place(partition, E.NONE)


def read(broker: Broker, request: Request, body: FetchRequest, context: Context) -> FetchResponse:
    """Read what a Fetch asks for, as far as its limits go."""
    version = request.version
    most = broker.cluster.settings.number("fetch.max.bytes")
    room = min(body.max_bytes, most) if version >= SOFT_LIMITS_FROM else most
    topics: dict[tuple[str, bytes], list[PartitionData]] = {}
    leaders: dict[int, NodeEndpoint] = {}
    empty = True
    for target in context.targets:
        data = _partition(broker, target, body, version, room, empty, leaders)
        size = len(data.records or b"")
        room, empty = max(0, room - size), empty and size == 0
        if not _is_told(context, target, data):
            continue
        topics.setdefault((target.topic, target.topic_id), []).append(data)
    by_id = version >= TOPIC_IDS_FROM
    return FetchResponse(
        session_id=NO_SESSION if context.session is None else context.session.id,
        responses=[
            FetchableTopicResponse(
                topic="" if by_id else name,
                topic_id=topic_id if by_id else bytes(16),
                partitions=partitions,
            )
            for (name, topic_id), partitions in topics.items()
        ],
        node_endpoints=list(leaders.values()),
    )


def _is_told(context: Context, target: Target, data: PartitionData) -> bool:
    if context.session is None:
        return True
    cached = context.session.partitions.get(target.key)
    news = cached is None or cached.is_news(data)
    if data.records:
        context.session.to_the_back(target.key)
    return news or context.full


def _partition(
    broker: Broker,
    target: Target,
    body: FetchRequest,
    version: int,
    room: int,
    first: bool,
    leaders: dict[int, NodeEndpoint],
) -> PartitionData:
    found = place(broker, target)
    partition, error = found.partition, found.error
    data = PartitionData(
        partition_index=target.asked.partition,
        error_code=error,
        high_watermark=NOTHING,
        aborted_transactions=[] if body.isolation_level == READ_COMMITTED else None,
        records=b"",
    )
    if partition is None:
        return data
    if error in MOVED and version >= LEADERS_TOLD_FROM:
        _tell_leader(broker, partition, data, leaders)
    if error and error is not E.OFFSET_OUT_OF_RANGE:
        return data
    log = partition.log
    if not error:
        data.high_watermark = data.last_stable_offset = log.high_watermark
        data.log_start_offset = log.log_start_offset
    if found.diverging is not None:
        data.diverging_epoch = found.diverging
    elif not error:
        _read(data, target, partition, version, room, first)
    return data


def _read(
    data: PartitionData, target: Target, partition: Partition, version: int, room: int, first: bool
) -> None:
    limit = min(room, target.asked.partition_max_bytes)
    hard = version < SOFT_LIMITS_FROM
    try:
        records = partition.log.read(target.asked.fetch_offset, limit, first or hard)
    except OffsetOutOfRange:
        data.error_code = E.OFFSET_OUT_OF_RANGE
        return
    made = readable(records, version, target.asked.fetch_offset)
    if made is None:
        data.error_code = E.UNSUPPORTED_COMPRESSION_TYPE
    else:
        data.records = made[:limit] if hard else made


def _tell_leader(
    broker: Broker, partition: Partition, data: PartitionData, leaders: dict[int, NodeEndpoint]
) -> None:
    data.current_leader = LeaderIdAndEpoch(
        leader_id=partition.leader_id, leader_epoch=partition.leader_epoch
    )
    leader = broker.cluster.brokers.get(partition.leader_id)
    if leader is not None:
        node_id, host, port, rack = leader.endpoint
        leaders[node_id] = NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)

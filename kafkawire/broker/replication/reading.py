"""Reads records for a Fetch, at once or when enough are available.

Law: a Fetch completes at once if it has min_bytes, an error, or nothing to wait for; otherwise it
is delayed, and its records are read when it completes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ...messages.fetch_request import FetchPartition, FetchRequest
from ...messages.fetch_response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from ...protocol import ErrorCode
from ..events import FetchExpired
from ..fetched import Fetched
from ..log.conversion import AS_STORED_FROM, readable
from ..log.partition_log import OffsetOutOfRange
from ..request import DELAYED, Outcome, Request
from ..topics import Partition
from .purgatory import DelayedFetch
from .replica_manager import ReplicaManager
from .sessions import NO_SESSION, TOPIC_IDS_FROM, FetchContext, Target

E = ErrorCode
SOFT_LIMITS_FROM: Final = 3
CURRENT_LEADER_FROM: Final = 16
READ_COMMITTED: Final = 1
NOTHING: Final = -1
JOINED_BYTES: Final = 1 << 14
"""Records of a partition up to this size are joined: a copy costs less than a write of its own."""
MOVED: Final = frozenset({E.NOT_LEADER_OR_FOLLOWER, E.FENCED_LEADER_EPOCH})


class TargetLookup(NamedTuple):
    """A target on this replicas. diverging: where the client's log diverges from ours (KIP-595)."""

    partition: Partition | None
    error: ErrorCode
    diverging: EpochEndOffset | None = None


def fetch(
    replicas: ReplicaManager, request: Request, body: FetchRequest, now: float
) -> FetchResponse | Fetched | Outcome:
    """Respond to a Fetch, or delay it."""
    context = replicas.sessions.resolve(body, request.version, now)
    if isinstance(context, ErrorCode):
        return FetchResponse(error_code=context)
    wait_seconds = body.max_wait_ms / 1000
    delayed = _delayed_fetch(replicas, request, body, context) if wait_seconds > 0 else None
    if delayed is None:
        return read(replicas, request, body, context)
    replicas.fetch_purgatory.watch(delayed)
    replicas.context.deadlines.set(FetchExpired(request.reply_to), now + wait_seconds)
    return DELAYED


def check_and_complete(replicas: ReplicaManager, key: tuple[str, int], now: float) -> None:
    """Complete the delayed fetches of a changed partition that have enough data now."""
    for delayed in replicas.fetch_purgatory.for_partition(key):
        if _is_complete(replicas, delayed, delayed.targets[key]):
            complete(replicas, delayed.request.reply_to, now)


def complete(replicas: ReplicaManager, reply_to: int, now: float) -> None:
    """Respond to a delayed Fetch, if it is still delayed."""
    delayed = replicas.fetch_purgatory.take(reply_to)
    if delayed is None:
        return
    replicas.context.deadlines.cancel(FetchExpired(reply_to))
    body = delayed.request.body
    assert isinstance(body, FetchRequest)
    replicas.channel.respond(reply_to, read(replicas, delayed.request, body, delayed.context), now)


def _delayed_fetch(
    replicas: ReplicaManager, request: Request, body: FetchRequest, context: FetchContext
) -> DelayedFetch | None:
    """Return the delayed operation of a Fetch, None if it can complete at once."""
    if body.min_bytes <= 0 or not context.targets:
        return None
    delayed = DelayedFetch(request, context, body.min_bytes)
    return (
        None if any(_is_complete(replicas, delayed, each) for each in context.targets) else delayed
    )


def _is_complete(replicas: ReplicaManager, delayed: DelayedFetch, target: Target) -> bool:
    """Count the available bytes of a partition; return whether the Fetch can complete."""
    found = locate(replicas, target)
    partition = found.partition
    if partition is None or found.error or found.diverging is not None:
        return True
    delayed.targets[partition.key] = target
    limit = max(1, target.requested.partition_max_bytes)
    available = min(partition.log.bytes_from(target.requested.fetch_offset), limit)
    return delayed.count(partition.key, available)


def locate(replicas: ReplicaManager, target: Target) -> TargetLookup:
    """Look up the partition of a target, and the error of reading it."""
    requested = target.requested
    name = target.topic
    if target.topic_id != bytes(16) or not name:
        topic = replicas.topics.by_id(target.topic_id)
        if topic is None:
            return TargetLookup(None, E.UNKNOWN_TOPIC_ID)
        name = topic.name
    partition, error = replicas.led(name, requested.partition, requested.current_leader_epoch)
    if partition is None or error:
        return TargetLookup(partition, error)
    log = partition.log
    if requested.last_fetched_epoch >= 0:
        end = log.end_of_epoch(requested.last_fetched_epoch, partition.leader_epoch)
        if end.end_offset < 0:
            return TargetLookup(partition, E.OFFSET_OUT_OF_RANGE)  # an unknown epoch
        if end.epoch < requested.last_fetched_epoch or end.end_offset < requested.fetch_offset:
            diverging = EpochEndOffset(epoch=end.epoch, end_offset=end.end_offset)
            return TargetLookup(partition, E.NONE, diverging)
    if not log.log_start_offset <= requested.fetch_offset <= log.log_end_offset:
        return TargetLookup(partition, E.OFFSET_OUT_OF_RANGE)
    return TargetLookup(partition, E.NONE)


def read(
    replicas: ReplicaManager, request: Request, body: FetchRequest, context: FetchContext
) -> FetchResponse | Fetched:
    """Read the records of a Fetch, within its limits."""
    version = request.version
    most = replicas.context.settings.number("fetch.max.bytes")
    room = min(body.max_bytes, most) if version >= SOFT_LIMITS_FROM else most
    topics: dict[tuple[str, bytes], list[PartitionData]] = {}
    leaders: dict[int, NodeEndpoint] = {}
    batches: dict[int, list[bytes]] = {}
    empty = True
    for target in context.targets:
        data, records = _partition(replicas, target, body, version, room, empty, leaders)
        size = sum(map(len, records))
        room, empty = max(0, room - size), empty and size == 0
        if not is_included(context, target, data, size > 0):
            continue
        if size <= JOINED_BYTES:
            data.records = b"".join(records)
        else:
            batches[id(data)] = records
        topics.setdefault((target.topic, target.topic_id), []).append(data)
    by_id = version >= TOPIC_IDS_FROM
    response = FetchResponse(
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
    return Fetched(response, batches) if batches else response


def is_included(
    context: FetchContext, target: Target, data: PartitionData, has_records: bool
) -> bool:
    """Whether the response of a session has a partition: whether it changed, or all are in it."""
    if context.session is None:
        return True
    cached = context.session.partitions.get(target.key)
    changed = cached is None or cached.maybe_update(data, has_records)
    if has_records:
        context.session.move_to_end(target.key)
    return changed or context.full


def _partition(
    replicas: ReplicaManager,
    target: Target,
    body: FetchRequest,
    version: int,
    room: int,
    first: bool,
    leaders: dict[int, NodeEndpoint],
) -> tuple[PartitionData, list[bytes]]:
    """Return the response of a partition without its records, and its records."""
    found = locate(replicas, target)
    partition, error = found.partition, found.error
    data = PartitionData(
        partition_index=target.requested.partition,
        error_code=error,
        high_watermark=NOTHING,
        aborted_transactions=[] if body.isolation_level == READ_COMMITTED else None,
        records=b"",
    )
    if partition is None:
        return data, []
    if error in MOVED and version >= CURRENT_LEADER_FROM:
        _add_current_leader(replicas, partition, data, leaders)
    if error and error is not E.OFFSET_OUT_OF_RANGE:
        return data, []
    log = partition.log
    if not error:
        data.high_watermark = data.last_stable_offset = log.high_watermark
        data.log_start_offset = log.log_start_offset
    if found.diverging is not None:
        data.diverging_epoch = found.diverging
    elif not error:
        return data, _read(data, target, partition, version, room, first)
    return data, []


def _read(
    data: PartitionData, target: Target, partition: Partition, version: int, room: int, first: bool
) -> list[bytes]:
    limit = min(room, target.requested.partition_max_bytes)
    hard = version < SOFT_LIMITS_FROM
    try:
        records = partition.log.read(target.requested.fetch_offset, limit, first or hard)
    except OffsetOutOfRange:
        data.error_code = E.OFFSET_OUT_OF_RANGE
        return []
    if version >= AS_STORED_FROM:
        return records
    made = readable(b"".join(records), version, target.requested.fetch_offset)
    if made is None:
        data.error_code = E.UNSUPPORTED_COMPRESSION_TYPE
        return []
    return [made[:limit] if hard else made]


def convert(data: PartitionData, requested: FetchPartition, version: int) -> None:
    """Convert the records of a partition for clients of a version, or set an error."""
    if not data.records or version >= AS_STORED_FROM:
        return
    records = readable(data.records, version, requested.fetch_offset)
    if records is None:
        data.error_code, records = E.UNSUPPORTED_COMPRESSION_TYPE, b""
    if version < SOFT_LIMITS_FROM:
        records = records[: requested.partition_max_bytes]
    data.records = records


def _add_current_leader(
    replicas: ReplicaManager,
    partition: Partition,
    data: PartitionData,
    leaders: dict[int, NodeEndpoint],
) -> None:
    data.current_leader = LeaderIdAndEpoch(
        leader_id=partition.leader_id, leader_epoch=partition.leader_epoch
    )
    leader = replicas.leader_endpoint(partition)
    if leader is not None:
        node_id, host, port, rack = leader
        leaders[node_id] = NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)

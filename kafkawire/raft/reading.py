"""Reads what a Fetch is for: records, or where logs diverge, or a snapshot to load.

Law: a replica whose log is not a beginning of this one gets no records.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..primitives import Message
from ..protocol.error_code import ErrorCode
from .effects import Reply
from .log import OffsetAndEpoch, ReplicatedLog, SnapshotId
from .quorum import Quorum
from .states import State
from .wire import fetch_answer, only_partition


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
        response = fetch_answer(
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
    response = fetch_answer(quorum, version, records=records, high_watermark=watermark)
    return Fetched(response, not records and not news)


def complete_held(quorum: Quorum, now: float) -> None:
    """Respond to Fetches that waited: there are records, or their time is over."""
    for reply_to, held in list(quorum.held.items()):
        if quorum.leadership is None:
            break
        fetched = read(quorum, held.request, held.version)
        if not fetched.may_wait or held.deadline <= now:
            del quorum.held[reply_to]
            quorum.effects.append(Reply(reply_to, fetched.response))

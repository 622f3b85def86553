"""Leads an epoch: appends records, serves Fetch and FetchSnapshot, advances the high watermark.

The high watermark is an offset that a majority of the voters has flushed, and only records of
the leader's own epoch advance it. A leader from which a majority does not fetch resigns.
"""

from __future__ import annotations

from typing import Any, Final

from ..primitives import Message
from ..protocol.error_code import ErrorCode
from . import reading
from .config import NEVER
from .control_batches import control_batch, data_batch, leader_change, voter_records
from .effects import Appended, AppendFailed, BecameLeader
from .events import Append, RequestReceived
from .log import SnapshotId
from .quorum import HeldFetch, Quorum
from .states import Leadership, ReplicaProgress
from .voters import NOT_IN_LOG, ReplicaKey
from .wire import (
    new_fetch_response,
    new_snapshot_response,
)

# -- appends


MOST_REPLICAS: Final = 1000
"""How many replicas a leader knows of at most."""


def begin_epoch(quorum: Quorum, granting: list[ReplicaKey], now: float) -> None:
    """Append the records that begin an epoch; voters of the bootstrap snapshot go into the log."""
    version = quorum.kraft_versions.last
    messages: list[Message] = [leader_change(quorum.node_id, quorum.voters.keys, granting)]
    if version >= 1 and quorum.voter_sets.last_offset == NOT_IN_LOG:
        messages += voter_records(version, quorum.voters)
    append_control(quorum, messages, now)


def append_control(quorum: Quorum, messages: list[Message], now: float) -> int:
    """Append a control batch; return its last offset."""
    end = quorum.log.end.offset
    batch = control_batch(messages, end, quorum.epoch, quorum.timestamp(now))
    return _append(quorum, batch, now)


def append(quorum: Quorum, event: Append, now: float) -> None:
    """Append the owner's records."""
    if quorum.leadership is None or event.epoch != quorum.epoch:
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        quorum.effects.append(AppendFailed(event.append_id, error))
        return
    if not event.values:
        quorum.effects.append(AppendFailed(event.append_id, ErrorCode.INVALID_REQUEST))
        return
    end = quorum.log.end.offset
    batch = data_batch(event.values, end, quorum.epoch, quorum.timestamp(now))
    quorum.effects.append(Appended(event.append_id, _append(quorum, batch, now)))


def _append(quorum: Quorum, batch: bytes, now: float) -> int:
    leadership = quorum.leadership
    assert leadership is not None
    quorum.append(batch)
    if leadership.flush_at is None:
        leadership.flush_at = now + quorum.timeouts.append_linger
    last = quorum.log.end.offset - 1
    reading.complete_held(quorum, now)
    return last


def flush(quorum: Quorum, now: float) -> None:
    """Flush the log: only what is flushed counts for the high watermark."""
    leadership = quorum.leadership
    assert leadership is not None
    quorum.log.flush()
    leadership.flush_at = None
    progress = leadership.progress.setdefault(quorum.config.replica, ReplicaProgress())
    progress.end_offset = quorum.log.end.offset
    advance_high_watermark(quorum, now)


# -- the high watermark


def majority_offset(quorum: Quorum, leadership: Leadership) -> int:
    """Return the offset up to which a majority of the voters has the log."""
    offsets = sorted(
        (end_offset(leadership, key) for key in quorum.voters.keys),
        reverse=True,
    )
    return offsets[quorum.voters.majority - 1]


def end_offset(leadership: Leadership, key: ReplicaKey) -> int:
    """Return where a voter's log ends, as far as the leader knows."""
    progress = leadership.find(key)
    return -1 if progress is None else progress.end_offset


def advance_high_watermark(quorum: Quorum, now: float) -> None:
    """Raise the high watermark, if a majority has more, up to a record of this epoch."""
    leadership = quorum.leadership
    if leadership is None or not quorum.voters.voters:
        return
    offset = majority_offset(quorum, leadership)
    before = leadership.high_watermark
    if not may_commit(leadership, offset) or (before is not None and offset <= before):
        return
    leadership.high_watermark = offset
    quorum.commit(offset)
    if before is None:
        quorum.effects.append(BecameLeader(quorum.epoch, leadership.epoch_start_offset))
    reading.complete_held(quorum, now)


def may_commit(leadership: Leadership, offset: int) -> bool:
    """Whether the records before `offset` include one of this epoch."""
    return offset > leadership.epoch_start_offset


def is_removed(quorum: Quorum) -> bool:
    """Whether this leader is, by a committed record, no voter any more."""
    watermark = None if quorum.leadership is None else quorum.leadership.high_watermark
    committed = watermark is not None and quorum.voter_sets.last_offset < watermark
    return committed and not quorum.is_voter


def check_quorum_deadline(quorum: Quorum) -> float:
    """Return when the leader resigns unless a majority of voters fetches before."""
    leadership = quorum.leadership
    assert leadership is not None
    needed = quorum.voters.majority - (1 if quorum.is_voter else 0)
    if needed <= 0:
        return NEVER
    fetched = []
    for voter in quorum.voters:
        if voter.key.id != quorum.node_id:
            progress = leadership.find(voter.key)
            last = -1.0 if progress is None else progress.last_fetch
            fetched.append(max(last, leadership.since))
    fetched.sort(reverse=True)
    return fetched[needed - 1] + quorum.timeouts.check_quorum_timeout


# -- Fetch


def handle_fetch(
    quorum: Quorum, received: RequestReceived, partition: Any, now: float
) -> Message | None:
    """Serve a Fetch; None: it waits for records."""
    request: Any = received.request
    version = received.version
    epoch, last = partition.current_leader_epoch, partition.last_fetched_epoch
    if request.max_wait_ms < 0 or partition.fetch_offset < 0 or not 0 <= last <= epoch:
        return new_fetch_response(quorum, version, error=ErrorCode.INVALID_REQUEST)
    error = reading.check_leader(quorum, epoch)
    if error:
        return new_fetch_response(quorum, version, error=error)
    note_fetch(quorum, request, version, partition, now)
    fetched = reading.read(quorum, request, version)
    if not fetched.may_wait or request.max_wait_ms == 0:
        return fetched.response
    wait = min(request.max_wait_ms / 1000, quorum.timeouts.request_timeout)
    quorum.held[received.reply_to] = HeldFetch(request, version, now + wait)
    return None


def replica_of(request: Any, version: int, directory_id: bytes) -> ReplicaKey:
    """Return which replica fetches."""
    id = request.replica_state.replica_id if version >= 15 else request.replica_id
    return ReplicaKey(id, directory_id)


def note_fetch(quorum: Quorum, request: Any, version: int, partition: Any, now: float) -> None:
    """Note what a Fetch says of its replica: it has the log up to its offset, if that is valid."""
    key = replica_of(request, version, partition.replica_directory_id)
    if key.id < 0 or key.id == quorum.node_id:
        return
    offset = partition.fetch_offset
    progress = note_contact(quorum, key, now)
    end = quorum.log.end.offset
    if reading.validate(quorum.log, offset, partition.last_fetched_epoch) is not None:
        return
    if offset >= end:
        progress.last_caught_up = now
    elif offset >= progress.last_fetch_leader_end >= 0:
        progress.last_caught_up = max(progress.last_caught_up, progress.last_fetch)
    progress.last_fetch_leader_end = end
    if offset > progress.end_offset:
        progress.end_offset = offset
        advance_high_watermark(quorum, now)


def forget_stalest(quorum: Quorum, leadership: Leadership) -> None:
    """Forget the observer that has not fetched for longest."""
    observers = [key for key in leadership.progress if not quorum.voters.has(key)]
    stalest = min(observers, key=lambda key: leadership.progress[key].last_fetch)
    del leadership.progress[stalest]
    leadership.begin_at.pop(stalest.id, None)


def note_contact(quorum: Quorum, key: ReplicaKey, now: float) -> ReplicaProgress:
    """Note that a replica knows this leader."""
    leadership = quorum.leadership
    assert leadership is not None
    if key not in leadership.progress and len(leadership.progress) >= MOST_REPLICAS:
        forget_stalest(quorum, leadership)
    progress = leadership.progress.setdefault(key, ReplicaProgress())
    progress.last_fetch = now
    leadership.begin_at[key.id] = now + quorum.timeouts.begin_quorum_epoch_interval
    return progress


# -- FetchSnapshot


def handle_fetch_snapshot(
    quorum: Quorum, received: RequestReceived, partition: Any, now: float
) -> Message:
    """Serve a part of a snapshot."""
    request: Any = received.request
    version = received.version
    id = SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
    error = reading.check_leader(quorum, partition.current_leader_epoch)
    if error:
        return new_snapshot_response(quorum, version, id, error=error)
    data = quorum.log.snapshot(id)
    if data is None:
        return new_snapshot_response(quorum, version, id, error=ErrorCode.SNAPSHOT_NOT_FOUND)
    position = partition.position
    if not 0 <= position < len(data):
        return new_snapshot_response(quorum, version, id, error=ErrorCode.POSITION_OUT_OF_RANGE)
    if request.replica_id >= 0:
        note_contact(quorum, ReplicaKey(request.replica_id, partition.replica_directory_id), now)
    most = max(min(request.max_bytes, quorum.config.max_bytes), 1)
    part = data[position : position + most]
    return new_snapshot_response(quorum, version, id, size=len(data), position=position, data=part)

"""Follows a leader: fetches its log, truncates what diverges, fetches its snapshots.

Records are flushed before the next Fetch, which reports them to the leader. What is
committed is never truncated.
"""

from __future__ import annotations

from typing import Any

from ..primitives import Message
from ..protocol.error_code import ErrorCode
from .control_batches import fetched_batches
from .effects import Fault, LoadSnapshot, Node
from .epochs import learn_from
from .log import OffsetAndEpoch, ReplicatedLog, SnapshotId
from .outgoing import fetch, fetch_snapshot
from .quorum import Quorum
from .requests import InFlight
from .states import State
from .wire import QuorumResponse

FIRST_BOOTSTRAP_ID = -2
"""The id of the first bootstrap server; those after it have lower ones."""


def poll_follower(quorum: Quorum, now: float) -> None:
    """Fetch from the leader: its snapshot if one is under way, else its log."""
    following, leader = quorum.following, quorum.leader_node
    assert leader is not None
    request: Message
    if following.snapshot_id is not None:
        request = fetch_snapshot(quorum, following.snapshot_id, following.snapshot_position)
    else:
        request = fetch(quorum)
    quorum.send(leader, request, now)


def poll_unattached(quorum: Quorum, now: float) -> None:
    """Look for the leader: the response of any voter to a Fetch names it."""
    nodes = quorum.other_voters or [
        Node(FIRST_BOOTSTRAP_ID - index, each.host, each.port)
        for index, each in enumerate(quorum.config.bootstrap)
    ]
    ready = [node for node in nodes if quorum.requests.is_ready(node.id, now)]
    if len(ready) == len(nodes) and nodes:  # one at a time
        quorum.send(ready[int(quorum.rng() * len(ready))], fetch(quorum), now)


def handle_fetch_response(
    quorum: Quorum, response: QuorumResponse, sent: InFlight, now: float
) -> None:
    """Append what was fetched, or truncate, or begin to fetch a snapshot."""
    if learn_from(quorum, response, sent, now):
        return
    if response.error:  # of the leader, or of a voter that knows none
        quorum.requests.back_off(sent.node.id, now)
        return
    if not _is_from_leader(quorum, sent):
        return
    partition = response.partition
    diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
    if diverging.epoch >= 0 or diverging.end_offset >= 0:
        _truncate(quorum, OffsetAndEpoch(diverging.end_offset, diverging.epoch))
    elif snapshot.epoch >= 0 or snapshot.end_offset >= 0:
        _begin_snapshot(quorum, SnapshotId(snapshot.end_offset, snapshot.epoch))
    else:
        append_fetched(quorum, partition.records or b"", sent.node.id, now)
        quorum.commit(min(partition.high_watermark, quorum.log.end.offset))
    quorum.following.has_fetched = True
    quorum.deadline = now + quorum.timeouts.fetch_timeout


def _is_from_leader(quorum: Quorum, sent: InFlight) -> bool:
    follows = quorum.state is State.FOLLOWER and sent.node.id == quorum.leader_id
    return follows and sent.epoch == quorum.epoch


def append_fetched(quorum: Quorum, records: bytes, leader_id: int, now: float) -> None:
    """Append the valid batches of a response, and flush them."""
    batches, why = fetched_batches(records, quorum.log.end, quorum.epoch)
    if why:
        quorum.effects.append(Fault(f"invalid records from leader {leader_id}: {why}"))
        quorum.requests.back_off(leader_id, now)
    if batches:
        quorum.append(batches)
        quorum.log.flush()


def _truncate(quorum: Quorum, diverging: OffsetAndEpoch) -> None:
    offset = truncation_offset(quorum.log, diverging)
    if offset < quorum.log.end.offset:
        quorum.truncate(offset)


def truncation_offset(log: ReplicatedLog, diverging: OffsetAndEpoch) -> int:
    """Return where this log stops to agree with the leader's, as far as is known."""
    end = log.end_offset_for_epoch(diverging.epoch)
    if end.epoch == diverging.epoch:
        return min(end.offset, diverging.offset)
    return end.offset


def _begin_snapshot(quorum: Quorum, id: SnapshotId) -> None:
    if id.offset < 0 or id.epoch < 0 or id.offset <= quorum.high_watermark:
        quorum.effects.append(
            Fault(f"snapshot {id.offset}-{id.epoch} at high watermark {quorum.high_watermark}")
        )
        return
    following = quorum.following
    following.snapshot_id = id
    following.snapshot_parts, following.snapshot_position = [], 0


def handle_snapshot_response(
    quorum: Quorum, response: QuorumResponse, sent: InFlight, now: float
) -> None:
    """Take a part of a snapshot; the last one replaces the log."""
    if learn_from(quorum, response, sent, now) or not _is_from_leader(quorum, sent):
        return
    following, partition = quorum.following, response.partition
    id = following.snapshot_id
    if response.error or id is None or not _continues(quorum, partition, id):
        following.snapshot_id, following.snapshot_parts = None, []
        quorum.requests.back_off(sent.node.id, now)
        if response.error not in (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.NONE):
            return
    else:
        following.snapshot_parts.append(partition.unaligned_records)
        following.snapshot_position += len(partition.unaligned_records)
        if following.snapshot_position >= partition.size:
            data = b"".join(following.snapshot_parts)
            following.snapshot_id, following.snapshot_parts = None, []
            if quorum.install_snapshot(id, data):
                quorum.effects.append(LoadSnapshot(id))
                quorum.commit(id.offset)
    quorum.deadline = now + quorum.timeouts.fetch_timeout


def _continues(quorum: Quorum, partition: Any, id: SnapshotId) -> bool:
    theirs = SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
    at_position = partition.position == quorum.following.snapshot_position
    return theirs == id and at_position and len(partition.unaligned_records) > 0

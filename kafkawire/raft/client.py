"""A replica of a KRaft quorum, voter or observer, as one sans-IO state machine.

Nothing here reads a clock, opens a socket or uses a global random generator: `now` is
monotonic seconds; random numbers come from a function that is passed in. The log is the one that is
passed in; the file `quorum-state` is an effect.

    RequestReceived ─▶ handler ─▶ PersistQuorumState, Reply
    ResponseReceived ─▶ handler ─▶ log, Committed, ...
    every event, and `advance` ─▶ due timeouts ─▶ poll of the state ─▶ Send
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ..messages.add_raft_voter_request import AddRaftVoterRequest
from ..messages.api_versions_response import ApiVersionsResponse
from ..messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from ..messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from ..messages.describe_quorum_request import DescribeQuorumRequest
from ..messages.describe_quorum_response import DescribeQuorumResponse
from ..messages.end_quorum_epoch_request import EndQuorumEpochRequest
from ..messages.end_quorum_epoch_response import EndQuorumEpochResponse
from ..messages.fetch_request import FetchRequest
from ..messages.fetch_response import FetchResponse
from ..messages.fetch_snapshot_request import FetchSnapshotRequest
from ..messages.fetch_snapshot_response import FetchSnapshotResponse
from ..messages.remove_raft_voter_request import RemoveRaftVoterRequest
from ..messages.update_raft_voter_request import UpdateRaftVoterRequest
from ..messages.vote_request import VoteRequest
from ..messages.vote_response import VoteResponse
from ..primitives import Message
from ..protocol.error_code import ErrorCode
from . import epochs, following, leading, membership, reading, voting
from .config import NEVER, RaftConfig
from .control_batches import snapshot_bytes
from .effects import Effect, Reply
from .events import (
    Append,
    Event,
    RequestFailed,
    RequestReceived,
    Resign,
    ResponseReceived,
    SnapshotTaken,
)
from .log import OffsetAndEpoch, ReplicatedLog
from .quorum import Quorum
from .requests import InFlight
from .states import State
from .voters import VoterSet
from .wire import QuorumResponse, checked, new_fetch_response, read_response


class KafkaRaftClient:
    """A replica, driven by `handle`, `next_deadline` and `advance`; `start` comes first.

    log: its records up to what was flushed, and its snapshots. rng: returns a random number in
    [0, 1).
    """

    def __init__(self, config: RaftConfig, log: ReplicatedLog, rng: Callable[[], float]) -> None:
        self._quorum = Quorum(config, log, rng)

    # -- what it knows

    @property
    def state(self) -> State:
        """What this replica is."""
        return self._quorum.state

    @property
    def is_observer(self) -> bool:
        """Whether it is not a voter."""
        return not self._quorum.is_voter

    @property
    def epoch(self) -> int:
        """The newest epoch that it knows."""
        return self._quorum.epoch

    @property
    def leader_id(self) -> int | None:
        """The leader of that epoch; None while unknown."""
        return self._quorum.leader_id

    @property
    def high_watermark(self) -> int:
        """All records before it are committed."""
        return self._quorum.high_watermark

    @property
    def voters(self) -> VoterSet:
        """The newest voters in the log, committed or not."""
        return self._quorum.voters

    @property
    def kraft_version(self) -> int:
        """The newest kraft.version in the log, committed or not; 0 if the voters are static."""
        return self._quorum.kraft_versions.last

    @property
    def log(self) -> ReplicatedLog:
        """The log that was passed in: read only what is committed."""
        return self._quorum.log

    def snapshot(self, end: OffsetAndEpoch, batches: list[list[bytes]], now: float) -> bytes:
        """Write a snapshot of committed records, for `SnapshotTaken`: the state as values."""
        return snapshot_bytes(
            end,
            batches,
            kraft_version=self._quorum.kraft_versions.at(end.offset),
            voters=self._quorum.voter_sets.at(end.offset),
            timestamp=self._quorum.timestamp(now),
        )

    # -- the contract of every state machine

    def start(self, quorum_state: str | None, now: float) -> list[Effect]:
        """Begin where the replica stopped. quorum_state: its file's text, None at first."""
        self._quorum.start(quorum_state, now)
        return self._finish(now)

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Handle an event; return the effects to carry out."""
        EVENTS[type(event)](self._quorum, event, now)
        return self._finish(now)

    def next_deadline(self) -> float | None:
        """Return when to call `advance`."""
        quorum = self._quorum
        times = [each.deadline for each in quorum.held.values()]
        requests = quorum.requests.next_deadline()
        if requests is not None:
            times.append(requests)
        if (leadership := quorum.leadership) is None:
            times.append(quorum.deadline)
        else:
            times.append(leading.check_quorum_deadline(quorum))
            times += [leadership.begin_at.get(node.id, 0.0) for node in quorum.other_voters]
            if leadership.flush_at is not None:
                times.append(leadership.flush_at)
            if quorum.change is not None:
                times.append(quorum.change.deadline)
        earliest = min(times)
        return None if earliest == NEVER else earliest

    def advance(self, now: float) -> list[Effect]:
        """Handle expired deadlines."""
        return self._finish(now)

    def _finish(self, now: float) -> list[Effect]:
        quorum = self._quorum
        quorum.requests.expire(now)
        if quorum.leadership is None and quorum.deadline <= now:
            voting.on_timeout(quorum, now)
        _poll(quorum, now)
        _answer_orphans(quorum)
        effects, quorum.effects = quorum.effects, []
        return effects


# -- what is due


def _poll(quorum: Quorum, now: float) -> None:
    POLLS[quorum.state](quorum, now)


def _poll_leader(quorum: Quorum, now: float) -> None:
    leadership = quorum.leadership
    assert leadership is not None
    if leadership.flush_at is not None and leadership.flush_at <= now:
        leading.flush(quorum, now)
    reading.complete_held(quorum, now)
    membership.check_change(quorum, now)
    if leading.is_removed(quorum) or leading.check_quorum_deadline(quorum) <= now:
        quorum.resign(now)
        _poll(quorum, now)
        return
    epochs.poll_leader(quorum, now)


def _poll_follower(quorum: Quorum, now: float) -> None:
    membership.poll_update(quorum, now)
    following.poll_follower(quorum, now)


POLLS: Final[Mapping[State, Callable[[Quorum, float], None]]] = {
    State.UNATTACHED: following.poll_unattached,
    State.PROSPECTIVE: voting.poll_election,
    State.CANDIDATE: voting.poll_election,
    State.LEADER: _poll_leader,
    State.FOLLOWER: _poll_follower,
    State.RESIGNED: epochs.poll_resigned,
}
"""What each state sends."""


def _answer_orphans(quorum: Quorum) -> None:
    """Respond to requests that waited for a leader that is none any more."""
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    for reply_to, request, version in quorum.orphans:
        if isinstance(request, FetchRequest):
            response = new_fetch_response(quorum, version, error=error)
        else:
            response = membership.change_response(request, error)
        quorum.effects.append(Reply(reply_to, response))
    quorum.orphans.clear()


# -- events


def _request(quorum: Quorum, event: RequestReceived, now: float) -> None:
    response: Message | None
    if type(event.request) in PARTITION_REQUESTS:
        refusal, handle = PARTITION_REQUESTS[type(event.request)]
        partition, error = checked(quorum, event.request)
        response = refusal(error_code=error) if error else handle(quorum, event, partition, now)
    elif type(event.request) in VOTER_REQUESTS:
        response = VOTER_REQUESTS[type(event.request)](quorum, event, now)
    else:
        raise TypeError(f"not a request to a quorum: {type(event.request).__name__}")
    if response is not None:
        quorum.effects.append(Reply(event.reply_to, response))


PartitionHandler = Callable[[Quorum, RequestReceived, Any, float], Message | None]
PARTITION_REQUESTS: Final[dict[type[Message], tuple[Callable[..., Message], PartitionHandler]]] = {
    VoteRequest: (VoteResponse, voting.handle_vote),
    BeginQuorumEpochRequest: (BeginQuorumEpochResponse, epochs.handle_begin),
    EndQuorumEpochRequest: (EndQuorumEpochResponse, epochs.handle_end),
    FetchRequest: (FetchResponse, leading.handle_fetch),
    FetchSnapshotRequest: (FetchSnapshotResponse, leading.handle_fetch_snapshot),
    DescribeQuorumRequest: (DescribeQuorumResponse, reading.handle_describe),
}
"""Requests about the metadata partition -> the response to those that are not, the handler."""
VoterHandler = Callable[[Quorum, RequestReceived, float], Message | None]
VOTER_REQUESTS: Final[dict[type[Message], VoterHandler]] = {
    AddRaftVoterRequest: membership.handle_add,
    RemoveRaftVoterRequest: membership.handle_remove,
    UpdateRaftVoterRequest: membership.handle_update,
}
REQUESTS: Final = PARTITION_REQUESTS.keys() | VOTER_REQUESTS.keys()
"""The requests that a replica of the quorum responds to."""
RESPONSES: Final[dict[type[Message], Callable[[Quorum, QuorumResponse, InFlight, float], None]]] = {
    VoteResponse: voting.handle_vote_response,
    BeginQuorumEpochResponse: epochs.handle_begin_response,
    EndQuorumEpochResponse: epochs.handle_end_response,
    FetchResponse: following.handle_fetch_response,
    FetchSnapshotResponse: following.handle_snapshot_response,
}


def _response(quorum: Quorum, event: ResponseReceived, now: float) -> None:
    sent = quorum.requests.complete(event.correlation_id)
    if sent is None:
        return
    response = event.response
    if isinstance(response, ApiVersionsResponse):
        membership.handle_api_versions(quorum, response, sent, now)
        return
    handler = RESPONSES.get(type(response))
    if handler is not None:
        handler(quorum, read_response(quorum, response), sent, now)


def _failed(quorum: Quorum, event: RequestFailed, now: float) -> None:
    sent = quorum.requests.complete(event.correlation_id)
    if sent is None:
        return
    quorum.requests.back_off(sent.node.id, now)
    if event.unsupported and isinstance(sent.request, VoteRequest):
        voting.handle_unsupported(quorum, sent, now)


def _snapshot_taken(quorum: Quorum, event: SnapshotTaken, _now: float) -> None:
    id = event.snapshot_id
    if id.offset > quorum.high_watermark:
        raise ValueError(f"a snapshot to {id.offset}, committed is {quorum.high_watermark}")
    quorum.log.store_snapshot(id, event.data)
    quorum.voter_sets.trim_to(id.offset)
    quorum.kraft_versions.trim_to(id.offset)


def _resign(quorum: Quorum, event: Resign, now: float) -> None:
    if quorum.leadership is not None and event.epoch == quorum.epoch:
        quorum.resign(now)


EVENTS: Final[dict[type, Callable[[Quorum, Any, float], None]]] = {
    RequestReceived: _request,
    ResponseReceived: _response,
    RequestFailed: _failed,
    Append: leading.append,
    SnapshotTaken: _snapshot_taken,
    Resign: _resign,
}

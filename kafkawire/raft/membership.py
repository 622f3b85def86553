"""Changes the voters, one at a time: AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter (KIP-853).

A change needs a record of this epoch committed, and the change before it committed: so two
voter sets that follow each other always share a majority. The newest voters in the log decide,
committed or not.
"""

from __future__ import annotations

from typing import Any

from ..messages.add_raft_voter_request import AddRaftVoterRequest
from ..messages.add_raft_voter_response import AddRaftVoterResponse
from ..messages.api_versions_response import ApiVersionsResponse
from ..messages.remove_raft_voter_response import RemoveRaftVoterResponse
from ..messages.update_raft_voter_request import (
    KRaftVersionFeature,
    Listener,
    UpdateRaftVoterRequest,
)
from ..messages.update_raft_voter_response import CurrentLeader, UpdateRaftVoterResponse
from ..primitives import Message
from ..protocol.error_code import ErrorCode
from .effects import LogEndMoved, Node, Reply
from .events import RequestReceived
from .leading import append_control
from .outgoing import api_versions
from .quorum import Quorum, VoterChange
from .reading import check_leader
from .requests import InFlight
from .states import State
from .voters import Endpoint, KRaftVersionRange, ReplicaKey, Voter, VoterSet
from .wire import is_for_this_quorum, leader_id

FEATURE = "kraft.version"
CAUGHT_UP_SECONDS = 3600.0
"""How recently a new voter must have had all of the leader's log."""
REASONS = {
    ErrorCode.INCONSISTENT_CLUSTER_ID: "the cluster id is another cluster's",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "this replica is not the leader of the quorum",
    ErrorCode.UNSUPPORTED_VERSION: "the voters are static: kraft.version is 0",
    ErrorCode.REQUEST_TIMED_OUT: "the epoch or an earlier change of voters is not committed yet, "
    "or the new voter does not respond or has not caught up",
    ErrorCode.DUPLICATE_VOTER: "the node is a voter already",
    ErrorCode.VOTER_NOT_FOUND: "no such voter",
    ErrorCode.INVALID_REQUEST: "no listener, an unsupported kraft.version, or the last voter",
}


def change_error(quorum: Quorum, request: Any) -> ErrorCode:
    """Return why the voters may not be changed now."""
    if not is_for_this_quorum(quorum, request):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if quorum.leadership is None:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if not is_settled(quorum):
        return ErrorCode.REQUEST_TIMED_OUT
    if quorum.kraft_versions.last < 1:
        return ErrorCode.UNSUPPORTED_VERSION
    return ErrorCode.NONE


def is_settled(quorum: Quorum) -> bool:
    """Whether a record of this epoch and the last change of voters are committed."""
    assert quorum.leadership is not None
    watermark = quorum.leadership.high_watermark
    committed = watermark is not None and quorum.voter_sets.last_offset < watermark
    return committed and quorum.change is None


def change_response(request: Message, error: ErrorCode) -> Message:
    """Make the response to AddRaftVoter or RemoveRaftVoter."""
    adds = isinstance(request, AddRaftVoterRequest)
    make = AddRaftVoterResponse if adds else RemoveRaftVoterResponse
    return make(error_code=error, error_message=REASONS.get(error) if error else None)


def handle_add(quorum: Quorum, received: RequestReceived, now: float) -> Message | None:
    """Check a new voter and request its versions; None: the response comes later."""
    request: Any = received.request
    error = change_error(quorum, request)
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    endpoints = tuple(Endpoint(one.name, one.host, one.port) for one in request.listeners)
    if not error and quorum.voters.find(key.id) is not None:
        error = ErrorCode.DUPLICATE_VOTER
    if not error and (not endpoints or key.id < 0):
        error = ErrorCode.INVALID_REQUEST
    if error:
        return change_response(request, error)
    node = Node(key.id, endpoints[0].host, endpoints[0].port)
    if not quorum.send(node, api_versions(), now):
        return change_response(request, ErrorCode.REQUEST_TIMED_OUT)
    wait = min(max(request.timeout_ms, 0) / 1000, quorum.timeouts.request_timeout)
    quorum.change = VoterChange(received.reply_to, request, Voter(key, endpoints), None, now + wait)
    return None


def handle_api_versions(
    quorum: Quorum, response: ApiVersionsResponse, sent: InFlight, now: float
) -> None:
    """Append the voters with the new one, if it supports the quorum's version and caught up."""
    change = quorum.change
    if change is None or change.offset is not None or change.voter.key.id != sent.node.id:
        return
    supported = [
        KRaftVersionRange(each.min_version, each.max_version)
        for each in response.supported_features
        if each.name == FEATURE
    ]
    current = quorum.kraft_versions.last
    error = ErrorCode.NONE
    if response.error_code:
        error = ErrorCode.REQUEST_TIMED_OUT
    elif not supported or not supported[0].min <= current <= supported[0].max:
        error = ErrorCode.INVALID_REQUEST
    elif not has_caught_up(quorum, change.voter.key, now):
        error = ErrorCode.REQUEST_TIMED_OUT
    if error:
        _finish(quorum, error)
        return
    voter = change.voter._replace(kraft_versions=supported[0])
    offset = _append(quorum, quorum.voters.with_voter(voter), now)
    quorum.change = change._replace(offset=offset)
    request = change.request
    if isinstance(request, AddRaftVoterRequest) and not request.ack_when_committed:
        _finish(quorum, ErrorCode.NONE)


def has_caught_up(quorum: Quorum, key: ReplicaKey, now: float) -> bool:
    """Whether a replica had the leader's whole log lately."""
    assert quorum.leadership is not None
    progress = quorum.leadership.find(key)
    return progress is not None and 0 <= now - progress.last_caught_up < CAUGHT_UP_SECONDS


def handle_remove(quorum: Quorum, received: RequestReceived, now: float) -> Message | None:
    """Append the voters without one; None: the response comes when that is committed."""
    request: Any = received.request
    error = change_error(quorum, request)
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    voter = quorum.voters.find(key.id)
    if not error and (voter is None or not voter.key.matches(key)):
        error = ErrorCode.VOTER_NOT_FOUND
    if not error and len(quorum.voters.voters) == 1:
        error = ErrorCode.INVALID_REQUEST
    if error or voter is None:
        return change_response(request, error)
    offset = _append(quorum, quorum.voters.without(voter.key), now)
    deadline = now + quorum.timeouts.request_timeout
    quorum.change = VoterChange(received.reply_to, request, voter, offset, deadline)
    return None


def handle_update(quorum: Quorum, received: RequestReceived, now: float) -> Message:
    """Append the voters with a voter's new listeners and versions; respond at once."""
    request: Any = received.request
    error = check_leader(quorum, request.current_leader_epoch)
    if not error:
        error = change_error(quorum, request)
    feature = request.k_raft_version_feature
    versions = KRaftVersionRange(feature.min_supported_version, feature.max_supported_version)
    endpoints = tuple(Endpoint(one.name, one.host, one.port) for one in request.listeners)
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    voter = quorum.voters.find(key.id)
    current = quorum.kraft_versions.last
    if not error and (not endpoints or not versions.min <= current <= versions.max):
        error = ErrorCode.INVALID_REQUEST
    if not error and (voter is None or voter.key != key):
        error = ErrorCode.VOTER_NOT_FOUND
    if not error:
        _append(quorum, quorum.voters.with_voter(Voter(key, endpoints, versions)), now)
    leader = quorum.leader_node or Node(-1, "", 0)
    return UpdateRaftVoterResponse(
        error_code=error,
        current_leader=CurrentLeader(
            leader_id=leader_id(quorum),
            leader_epoch=quorum.epoch,
            host=leader.host,
            port=leader.port,
        ),
    )


def _append(quorum: Quorum, voters: VoterSet, now: float) -> int:
    last = append_control(quorum, [voters.to_record()], now)
    quorum.effects.append(LogEndMoved(quorum.epoch, last + 1))
    return last


def _finish(quorum: Quorum, error: ErrorCode) -> None:
    change = quorum.change
    assert change is not None
    quorum.change = None
    quorum.effects.append(Reply(change.reply_to, change_response(change.request, error)))


def check_change(quorum: Quorum, now: float) -> None:
    """Respond to a change that is committed, or whose time is over."""
    change, leadership = quorum.change, quorum.leadership
    if change is None or leadership is None:
        return
    watermark = leadership.high_watermark
    if change.offset is not None and watermark is not None and change.offset < watermark:
        _finish(quorum, ErrorCode.NONE)
    elif change.deadline <= now:
        _finish(quorum, ErrorCode.REQUEST_TIMED_OUT)


# -- the voter that changes


def update_request(quorum: Quorum) -> Message | None:
    """Make an UpdateRaftVoter request, if the voter set does not have this voter's listeners."""
    config = quorum.config
    voter = quorum.voters.find(config.node_id)
    if voter is None or quorum.kraft_versions.last < 1 or not config.endpoints:
        return None
    current = Voter(config.replica, config.endpoints, config.kraft_versions)
    if voter.key != config.replica or voter == current:
        return None
    return UpdateRaftVoterRequest(
        cluster_id=config.cluster_id,
        current_leader_epoch=quorum.epoch,
        voter_id=config.node_id,
        voter_directory_id=config.directory_id,
        listeners=[
            Listener(name=each.name, host=each.host, port=each.port) for each in config.endpoints
        ],
        k_raft_version_feature=KRaftVersionFeature(
            min_supported_version=config.kraft_versions.min,
            max_supported_version=config.kraft_versions.max,
        ),
    )


def poll_update(quorum: Quorum, now: float) -> None:
    """Send UpdateRaftVoter to the leader, now and then, while it is due."""
    if quorum.state is not State.FOLLOWER or now < quorum.following.update_at:
        return
    quorum.following.update_at = now + quorum.timeouts.update_voter_period
    request = update_request(quorum)
    if request is not None and quorum.leader_node is not None:
        quorum.send(quorum.leader_node, request, now)

"""Elects a leader: Vote requests and responses, with pre-vote (KIP-595, KIP-996).

A vote goes to one candidate an epoch, and only to one whose log has at least what this one
has. A pre-vote changes nothing; a follower denies it while its leader responds.
"""

from __future__ import annotations

from typing import Any

from ..primitives import Message
from ..protocol.error_code import ErrorCode
from .epochs import is_this_voter, learn_from
from .events import RequestReceived
from .leading import begin_epoch
from .log import OffsetAndEpoch
from .outgoing import vote
from .quorum import Quorum
from .requests import InFlight
from .states import Cause, State
from .voters import ReplicaKey
from .wire import QuorumResponse, new_vote_response


def handle_vote(quorum: Quorum, received: RequestReceived, partition: Any, now: float) -> Message:
    """Grant a vote or a pre-vote, or not."""
    request: Any = received.request
    version = received.version
    epoch, pre_vote = partition.replica_epoch, partition.pre_vote
    end = OffsetAndEpoch(partition.last_offset, partition.last_offset_epoch)
    error = check_candidate(quorum, partition.replica_id, epoch, end, pre_vote)
    if error:
        return new_vote_response(quorum, version, error, False)
    if epoch > quorum.epoch:
        quorum.become_unattached(Cause.HIGHER_EPOCH, epoch, now)
    if not is_this_voter(quorum, request.voter_id, partition.voter_directory_id):
        return new_vote_response(quorum, version, ErrorCode.INVALID_VOTER_KEY, False)
    candidate = ReplicaKey(partition.replica_id, partition.replica_directory_id)
    up_to_date = is_up_to_date(quorum, end)
    if pre_vote:
        granted = can_grant_pre_vote(quorum, up_to_date)
    else:
        granted = can_grant_vote(quorum, candidate, up_to_date)
        if granted and quorum.voted is None:
            quorum.grant_vote(candidate, now)
    return new_vote_response(quorum, version, ErrorCode.NONE, granted)


def check_candidate(
    quorum: Quorum, replica_id: int, epoch: int, end: OffsetAndEpoch, pre_vote: bool
) -> ErrorCode:
    """Check what a Vote request says of its sender."""
    newest = epoch if pre_vote else epoch - 1
    if end.offset < 0 or not 0 <= end.epoch <= newest or replica_id < 0:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.FENCED_LEADER_EPOCH if epoch < quorum.epoch else ErrorCode.NONE


def is_up_to_date(quorum: Quorum, end: OffsetAndEpoch) -> bool:
    """Whether a log that ends there has all that this log may have committed."""
    return not end.is_behind(quorum.log.end)


def can_grant_vote(quorum: Quorum, candidate: ReplicaKey, up_to_date: bool) -> bool:
    """Whether a vote may be given in this epoch."""
    if quorum.voted is not None:
        return quorum.voted.id == candidate.id and quorum.voted.matches(candidate)
    if quorum.leader_id is not None:
        return False
    return quorum.state in (State.UNATTACHED, State.PROSPECTIVE) and up_to_date


def can_grant_pre_vote(quorum: Quorum, up_to_date: bool) -> bool:
    """Whether an election would be welcome."""
    if quorum.state is State.LEADER:
        assert quorum.leadership is not None
        return up_to_date and quorum.leadership.high_watermark is None
    if quorum.state is State.FOLLOWER:
        return up_to_date and not quorum.following.has_fetched
    return up_to_date


def handle_vote_response(
    quorum: Quorum, response: QuorumResponse, sent: InFlight, now: float
) -> None:
    """Count a vote."""
    if learn_from(quorum, response, sent, now):
        return
    if quorum.state not in (State.PROSPECTIVE, State.CANDIDATE) or sent.epoch != quorum.epoch:
        return
    if response.error:
        quorum.requests.back_off(sent.node.id, now)
        return
    count(quorum, sent.node.id, response.partition.vote_granted, now)


def handle_unsupported(quorum: Quorum, sent: InFlight, now: float) -> None:
    """Count a voter that does not know pre-votes as granting them."""
    if quorum.state is State.PROSPECTIVE:
        count(quorum, sent.node.id, True, now)


def count(quorum: Quorum, voter_id: int, granted: bool, now: float) -> None:
    """Count a vote, and go on if the election is decided."""
    election = quorum.election
    (election.granted if granted else election.rejected).add(voter_id)
    ids = [key.id for key in quorum.voters.keys]
    if election.is_lost(ids, quorum.voters.majority):
        election_lost(quorum, now)
    else:
        check_won(quorum, now)


def check_won(quorum: Quorum, now: float) -> None:
    """Go on if a majority granted its vote; the only voter is one."""
    ids = [key.id for key in quorum.voters.keys]
    majority = quorum.voters.majority
    if quorum.state is State.PROSPECTIVE and quorum.election.is_won(ids, majority):
        quorum.become_candidate(now)
    if quorum.state is State.CANDIDATE and quorum.election.is_won(ids, majority):
        granting = [key for key in quorum.voters.keys if key.id in quorum.election.granted]
        quorum.become_leader(now)
        begin_epoch(quorum, granting, now)


def election_lost(quorum: Quorum, now: float) -> None:
    """Follow the known leader or wait for one; a candidate backs off before it tries again."""
    if quorum.state is State.CANDIDATE:
        backoff = quorum.rng() * quorum.timeouts.election_backoff_max
        if quorum.backoff_until is None:
            quorum.backoff_until = min(quorum.deadline, now + backoff)
            quorum.deadline = quorum.backoff_until
        return
    give_up_pre_votes(quorum, now)


def give_up_pre_votes(quorum: Quorum, now: float) -> None:
    """Leave PROSPECTIVE without an election."""
    if quorum.leader_node is not None and quorum.leader_id != quorum.node_id:
        quorum.keep_following(now)
    else:
        quorum.become_unattached(Cause.PRE_VOTES_LOST, quorum.epoch, now)


def on_timeout(quorum: Quorum, now: float) -> None:
    """Handle the end of the election or fetch timeout of the present state."""
    if quorum.state is State.PROSPECTIVE:
        give_up_pre_votes(quorum, now)
    elif quorum.state is State.CANDIDATE:
        quorum.become_prospective(Cause.VOTES_LOST, now)
    elif quorum.state is State.RESIGNED:
        quorum.become_unattached(Cause.ELECTION_TIMEOUT, quorum.epoch + 1, now)
        if quorum.is_voter and not quorum.other_voters:
            quorum.deadline = now
    elif quorum.state is State.FOLLOWER and not quorum.may_stand:
        quorum.become_unattached(Cause.LEADER_LOST, quorum.epoch, now)
    elif quorum.may_stand:
        following = quorum.state is State.FOLLOWER
        cause = Cause.FETCH_TIMEOUT if following else Cause.ELECTION_TIMEOUT
        quorum.become_prospective(cause, now)
        check_won(quorum, now)
    else:
        quorum.arm_election(now)


def poll_election(quorum: Quorum, now: float) -> None:
    """Send Vote to the voters that have not responded."""
    election = quorum.election
    pre_vote = quorum.state is State.PROSPECTIVE
    for node in quorum.other_voters:
        if node.id in election.granted or node.id in election.rejected:
            continue
        voter = quorum.voters.find(node.id)
        assert voter is not None
        quorum.send(node, vote(quorum, voter, pre_vote=pre_vote), now)

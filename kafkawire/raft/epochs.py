"""Learns of epochs and leaders from requests and responses; BeginQuorumEpoch, EndQuorumEpoch.

An epoch has one leader: to learn of a second one is a Fault.
"""

from __future__ import annotations

from typing import Any

from ..primitives import ZERO_UUID, Message
from ..protocol.error_code import ErrorCode
from .effects import Fault, Node
from .events import RequestReceived
from .outgoing import begin_quorum_epoch, end_quorum_epoch
from .quorum import Quorum
from .requests import InFlight
from .states import Cause, State
from .voters import ReplicaKey
from .wire import (
    QuorumResponse,
    leader_node,
    new_epoch_response,
)


def learn(quorum: Quorum, leader: Node | None, epoch: int, now: float) -> bool:
    """Go on in a newer epoch, or follow the leader of this one; return whether either happened."""
    if leader is not None and leader.id == quorum.node_id:
        leader = None
    if epoch > quorum.epoch:
        if leader is None:
            quorum.become_unattached(Cause.HIGHER_EPOCH, epoch, now)
        else:
            quorum.become_follower(epoch, leader, now)
        return True
    if epoch < quorum.epoch or leader is None:
        return False
    if quorum.leader_id not in (None, leader.id):
        quorum.effects.append(
            Fault(f"epoch {epoch} has leaders {quorum.leader_id} and {leader.id}")
        )
        return False
    searching = quorum.state in (State.UNATTACHED, State.CANDIDATE)
    if searching or (quorum.state is State.PROSPECTIVE and quorum.leader_id is None):
        quorum.become_follower(epoch, leader, now)
        return True
    return False


def learn_from(quorum: Quorum, response: QuorumResponse, sent: InFlight, now: float) -> bool:
    """Take over what a response says of its epoch; return whether nothing else is to be done."""
    if response.partition is None:
        quorum.requests.back_off(sent.node.id, now)
        return True
    if response.epoch < quorum.epoch:
        quorum.requests.back_off(sent.node.id, now)
        return True
    return learn(quorum, response.leader, response.epoch, now)


def is_this_voter(quorum: Quorum, voter_id: int, directory_id: bytes) -> bool:
    """Whether a request that names its voter (-1: it does not) means this replica."""
    return voter_id < 0 or quorum.config.replica.matches(ReplicaKey(voter_id, directory_id))


def handle_begin(quorum: Quorum, received: RequestReceived, partition: Any, now: float) -> Message:
    """Follow the leader that says it is elected."""
    request: Any = received.request
    error = _learn_from_leader(quorum, request, partition, now)
    directory_id = getattr(partition, "voter_directory_id", ZERO_UUID)
    if not error and not is_this_voter(quorum, request.voter_id, directory_id):
        error = ErrorCode.INVALID_VOTER_KEY
    return new_epoch_response(quorum, request, received.version, error)


def handle_end(quorum: Quorum, received: RequestReceived, partition: Any, now: float) -> Message:
    """Hasten the next election: the leader resigns, the longest logs are to go first."""
    request: Any = received.request
    error = _learn_from_leader(quorum, request, partition, now)
    if not error and quorum.state is State.FOLLOWER and quorum.leader_id == partition.leader_id:
        if received.version >= 1:
            ids = [each.candidate_id for each in partition.preferred_candidates]
        else:
            ids = list(partition.preferred_successors)
        quorum.deadline = now + successor_backoff(quorum, ids)
    return new_epoch_response(quorum, request, received.version, error)


def successor_backoff(quorum: Quorum, successors: list[int]) -> float:
    """Return how long to wait before an election: the first of the successors does not."""
    most = quorum.timeouts.election_backoff_max
    if quorum.node_id not in successors:
        return most
    position = successors.index(quorum.node_id)
    if position == 0:
        return 0.0
    steps = min(len(successors) - position, 20)
    return most / (1 << steps)


def _learn_from_leader(quorum: Quorum, request: Any, partition: Any, now: float) -> ErrorCode:
    if partition.leader_epoch < quorum.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if partition.leader_id < 0:
        return ErrorCode.INVALID_REQUEST
    node = leader_node(quorum, partition.leader_id, request.leader_endpoints)
    learn(quorum, node, partition.leader_epoch, now)
    return ErrorCode.NONE


def handle_begin_response(
    quorum: Quorum, response: QuorumResponse, sent: InFlight, now: float
) -> None:
    """Note that a voter knows its leader: it fetches now."""
    if learn_from(quorum, response, sent, now) or quorum.leadership is None:
        return
    if response.error:
        quorum.requests.back_off(sent.node.id, now)


def handle_end_response(
    quorum: Quorum, response: QuorumResponse, sent: InFlight, now: float
) -> None:
    """Note that a voter knows of the resignation."""
    if learn_from(quorum, response, sent, now):
        return
    if not response.error:
        quorum.resign_to.discard(sent.node.id)


def poll_leader(quorum: Quorum, now: float) -> None:
    """Announce the epoch to voters that do not fetch."""
    leadership = quorum.leadership
    assert leadership is not None
    timeouts = quorum.timeouts
    for node in quorum.other_voters:
        if leadership.begin_at.get(node.id, now) > now:
            continue
        voter = quorum.voters.find(node.id)
        assert voter is not None
        if quorum.send(node, begin_quorum_epoch(quorum, voter), now):
            leadership.begin_at[node.id] = now + timeouts.begin_quorum_epoch_interval
        else:
            leadership.begin_at[node.id] = now + timeouts.begin_quorum_epoch_interval / 4


def poll_resigned(quorum: Quorum, now: float) -> None:
    """Send EndQuorumEpoch to the voters that have not responded to it."""
    for node in quorum.other_voters:
        if node.id in quorum.resign_to:
            quorum.send(node, end_quorum_epoch(quorum), now)

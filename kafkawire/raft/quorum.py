"""The state of a replica and its changes: epoch, leader, vote, voters, log (KIP-595, 853, 996).

After `start`, `_enter` alone changes the state, and it checks the table. The epoch never
decreases; a vote is given once an epoch; both are persisted before anything that follows is sent.
"""

# over 300 lines: one state; every transition checks and persists the same fields

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..errors import WireError
from ..primitives import Message
from ..records import RecordBatches
from .config import RaftConfig
from .control_batches import control_values, snapshot_values
from .effects import (
    Committed,
    Effect,
    Fault,
    LeaderChanged,
    Node,
    PersistQuorumState,
    Resigned,
    Send,
)
from .log import ReplicatedLog, SnapshotId
from .quorum_state import ElectionState, read_quorum_state, write_quorum_state
from .requests import RequestManager
from .states import (
    VOTER_STATES,
    Cause,
    Election,
    Following,
    Leadership,
    State,
    next_state,
)
from .voters import NOT_IN_LOG, LogHistory, ReplicaKey, Voter, VoterSet


class HeldFetch(NamedTuple):
    """A Fetch that waits for records."""

    request: Message
    version: int
    deadline: float


class VoterChange(NamedTuple):
    """A change of the voters that waits: for ApiVersions of the new one, then for its commit.

    offset: of its VotersRecord; None before it is appended.
    """

    reply_to: int
    request: Message
    voter: Voter
    offset: int | None
    deadline: float


class Quorum:
    """What a replica knows; the handlers of requests and responses work on it."""

    def __init__(self, config: RaftConfig, log: ReplicatedLog, rng: Callable[[], float]) -> None:
        self.config = config
        self.timeouts = config.timeouts
        self.log = log
        self.rng = rng
        self.requests = RequestManager(
            config.timeouts.request_timeout, config.timeouts.retry_backoff
        )
        self.effects: list[Effect] = []
        self.state = State.UNATTACHED
        self.epoch = 0
        self.leader_id: int | None = None
        self.leader_node: Node | None = None
        self.voted: ReplicaKey | None = None
        self.deadline = 0.0
        self.election = Election()
        self.backoff_until: float | None = None
        self.leadership: Leadership | None = None
        self.following = Following()
        self.resign_to: set[int] = set()
        self.successors: tuple[ReplicaKey, ...] = ()
        self.kraft_versions = LogHistory(0)
        self.voter_sets = LogHistory(config.voters)
        self.high_watermark = 0
        self.held: dict[int, HeldFetch] = {}
        self.change: VoterChange | None = None
        self.orphans: list[tuple[int, Message, int]] = []
        self._persisted: ElectionState | None = None
        self._reported: tuple[int | None, int] = (None, -1)

    # -- this replica and the voters

    @property
    def node_id(self) -> int:
        """The id of this replica."""
        return self.config.node_id

    @property
    def voters(self) -> VoterSet:
        """The newest voters in the log, committed or not."""
        return self.voter_sets.last

    @property
    def is_voter(self) -> bool:
        """Whether this replica is one of them."""
        return self.node_id >= 0 and self.voters.has(self.config.replica)

    @property
    def may_stand(self) -> bool:
        """Whether this replica may be elected.

        It is a voter, or was one before a change that may not be committed: its log may be the
        longest, so that no other can be elected.
        """
        committed = self.voter_sets.at(self.high_watermark)
        return self.is_voter or (self.node_id >= 0 and committed.has(self.config.replica))

    @property
    def other_voters(self) -> list[Node]:
        """The nodes of the other voters."""
        nodes = [node_of(voter) for voter in self.voters if voter.key.id != self.node_id]
        return [node for node in nodes if node is not None]

    def timestamp(self, now: float) -> int:
        """Return the wall-clock time in milliseconds."""
        return self.config.epoch_ms + int(now * 1000)

    # -- start

    def start(self, quorum_state: str | None, now: float) -> None:
        """Begin where the replica stopped; quorum_state: the text of its file, None at first."""
        snapshot = self.log.latest_snapshot
        if snapshot is not None:
            data = self.log.snapshot(snapshot)
            assert data is not None
            self.read_snapshot(snapshot, data)
            self.high_watermark = snapshot.offset
        offset, end = self.log.start_offset, self.log.end
        while offset < end.offset:
            batches = self.log.read(offset, self.config.max_bytes)
            offset = self.note_batches(batches) if batches else end.offset
        stored = ElectionState(0) if quorum_state is None else read_quorum_state(quorum_state)
        if stored.epoch < end.epoch:
            stored = ElectionState(end.epoch)
        self.epoch, self.leader_id, self.voted = stored
        self._persisted = None if quorum_state is None else stored
        self.arm_election(now)
        leader = None if self.leader_id is None else self.voters.find(self.leader_id)
        if self.leader_id == self.node_id and self.node_id >= 0:
            self._begin_resigned(now)
        elif leader is not None and node_of(leader) is not None:
            self.leader_node = node_of(leader)
            self.state = State.FOLLOWER
            self._begin_following(now)
        elif self.is_voter and not self.other_voters:
            self.deadline = now
        if self.state is State.RESIGNED and not self.other_voters:
            self.deadline = now
        self.note_election()

    # -- what the log says

    def note_batches(self, batches: bytes) -> int:
        """Take over versions and voters from batches of the log; return where they end."""
        values = control_values(batches)
        for offset, version in values.kraft_versions:
            self.kraft_versions.add(offset, version)
        for offset, voters in values.voters:
            self.voter_sets.add(offset, voters)
        return max(batch.last_offset for batch in RecordBatches(batches)) + 1

    def read_snapshot(self, id: SnapshotId, data: bytes) -> None:
        """Take over versions and voters from a snapshot; WireError if it is not complete."""
        values = snapshot_values(data)
        before = id.offset - 1  # of a bootstrap snapshot: NOT_IN_LOG
        self.kraft_versions.start_from(
            before, values.kraft_versions[-1][1] if values.kraft_versions else 0
        )
        voters = values.voters[-1][1] if values.voters else self.config.voters
        self.voter_sets.start_from(before if values.voters else NOT_IN_LOG, voters)

    def append(self, batches: bytes) -> None:
        """Append batches that continue the log."""
        self.log.append(batches)
        self.note_batches(batches)

    def truncate(self, end_offset: int) -> bool:
        """Remove uncommitted records; a Fault, and False, if committed ones would be lost."""
        if end_offset < self.high_watermark:
            self.effects.append(
                Fault(f"truncation to {end_offset}, below high watermark {self.high_watermark}")
            )
            return False
        self.log.truncate(end_offset)
        self.voter_sets.truncate_to(end_offset)
        self.kraft_versions.truncate_to(end_offset)
        return True

    def install_snapshot(self, id: SnapshotId, data: bytes) -> bool:
        """Take a complete snapshot in place of the log; False if it is invalid."""
        try:
            self.read_snapshot(id, data)
        except WireError as error:
            self.effects.append(Fault(f"snapshot {id.offset}-{id.epoch}: {error}"))
            return False
        self.log.truncate(self.log.start_offset)
        self.log.store_snapshot(id, data)
        return True

    def commit(self, offset: int) -> bool:
        """Raise the high watermark; return whether it was lower."""
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        self.effects.append(Committed(offset))
        return True

    # -- transitions

    def become_unattached(self, cause: Cause, epoch: int, now: float) -> None:
        """Go on in an epoch whose leader is not known."""
        running = self.state in VOTER_STATES or self.state is State.UNATTACHED
        self._enter(cause)
        if epoch > self.epoch:
            self.epoch, self.leader_id, self.leader_node, self.voted = epoch, None, None, None
        if not running or self.deadline <= now or cause is not Cause.HIGHER_EPOCH:
            self.arm_election(now)
        self.note_election()

    def grant_vote(self, candidate: ReplicaKey, now: float) -> None:
        """Give this epoch's vote."""
        self._enter(Cause.VOTE_GRANTED, reset=False)
        self.voted = candidate
        self.arm_election(now)
        self.note_election()

    def become_prospective(self, cause: Cause, now: float) -> None:
        """Request pre-votes."""
        self._enter(cause)
        self.election = Election(granted={self.node_id})
        self.backoff_until = None
        self.arm_election(now)
        self.note_election()

    def become_candidate(self, now: float) -> None:
        """Request votes, in the next epoch."""
        self._enter(Cause.PRE_VOTES_WON)
        self.epoch += 1
        self.leader_id, self.leader_node = None, None
        self.voted = self.config.replica
        self.election = Election(granted={self.node_id})
        self.backoff_until = None
        self.arm_election(now)
        self.note_election()

    def become_leader(self, now: float) -> Leadership:
        """Lead the epoch; its first records are appended by the caller."""
        self._enter(Cause.VOTES_WON)
        self.leader_id = self.node_id
        voter = self.voters.find(self.node_id)
        self.leader_node = None if voter is None else node_of(voter)
        if self.leader_node is None and self.config.endpoints:
            own = self.config.endpoints[0]
            self.leader_node = Node(self.node_id, own.host, own.port)
        self.leadership = Leadership(epoch_start_offset=self.log.end.offset, since=now)
        self.note_election()
        return self.leadership

    def become_follower(self, epoch: int, leader: Node, now: float) -> None:
        """Follow a leader."""
        self._enter(Cause.LEADER_FOUND)
        if epoch > self.epoch:
            self.epoch, self.voted = epoch, None
        self.leader_id, self.leader_node = leader.id, leader
        self._begin_following(now)
        self.note_election()

    def keep_following(self, now: float) -> None:
        """Follow the known leader again: no majority wants another."""
        self._enter(Cause.LEADER_KEPT)
        self._begin_following(now)

    def resign(self, now: float) -> None:
        """Stop leading this epoch, and notify the others."""
        leadership = self.leadership
        assert leadership is not None
        progress = leadership.progress
        others = [voter.key for voter in self.voters if voter.key.id != self.node_id]
        best = sorted(others, key=lambda key: -progress[key].end_offset if key in progress else 1)
        self._enter(Cause.RESIGNS)
        self.successors = tuple(best)
        self._begin_resigned(now)

    def _begin_resigned(self, now: float) -> None:
        self.state = State.RESIGNED
        self.resign_to = {node.id for node in self.other_voters}
        self.arm_election(now)

    def _begin_following(self, now: float) -> None:
        self.following = Following(update_at=now + self.timeouts.update_voter_period)
        self.deadline = now + self.timeouts.fetch_timeout

    def _enter(self, cause: Cause, *, reset: bool = True) -> None:
        """Change the state, as the table says, and leave the old one in order."""
        target = next_state(self.state, cause)
        if self.leadership is not None:
            self.effects.append(Resigned(self.epoch))
            self.leadership = None
        for reply_to, held in self.held.items():
            self.orphans.append((reply_to, held.request, held.version))
        self.held.clear()
        if self.change is not None:
            self.orphans.append((self.change.reply_to, self.change.request, 0))
            self.change = None
        self.state = target
        if reset:
            self.requests.reset()

    def arm_election(self, now: float) -> None:
        """Set a random election timeout."""
        self.deadline = now + self.timeouts.election_timeout * (1 + self.rng())

    def note_election(self) -> None:
        """Persist epoch, vote and leader where they changed, and report the leader."""
        election = ElectionState(self.epoch, self.leader_id, self.voted)
        if election != self._persisted:
            self._persisted = election
            version = 1 if self.kraft_versions.last else 0
            voters = tuple(key.id for key in self.voters.keys)
            self.effects.append(PersistQuorumState(write_quorum_state(election, version, voters)))
        if (self.leader_id, self.epoch) != self._reported:
            self._reported = (self.leader_id, self.epoch)
            self.effects.append(LeaderChanged(self.leader_id, self.epoch))

    # -- sending

    def send(self, node: Node, request: Message, now: float) -> bool:
        """Send a request unless one to that node is in flight or it is backed off."""
        if not self.requests.is_ready(node.id, now):
            return False
        correlation_id = self.requests.add(node, request, self.epoch, now)
        self.effects.append(Send(correlation_id, node, request))
        return True


def node_of(voter: Voter) -> Node | None:
    """Return where a voter listens; None if it has no endpoint."""
    if not voter.endpoints:
        return None
    endpoint = voter.endpoints[0]
    return Node(voter.key.id, endpoint.host, endpoint.port)

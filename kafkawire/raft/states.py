"""The states of a replica of the quorum, and the table of their transitions (KIP-595, KIP-996).

What is not in `TRANSITIONS` does not happen. An observer is never PROSPECTIVE, CANDIDATE or
LEADER, except that a voter which is removed acts as one until it knows that this is committed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from ..errors import LocalProtocolError
from ..primitives import ZERO_UUID
from .log import SnapshotId
from .voters import ReplicaKey


class State(Enum):
    """What a replica is in its epoch."""

    UNATTACHED = "Unattached"
    PROSPECTIVE = "Prospective"
    CANDIDATE = "Candidate"
    LEADER = "Leader"
    FOLLOWER = "Follower"
    RESIGNED = "Resigned"


class Cause(Enum):
    """Why a replica changes its state."""

    HIGHER_EPOCH = "a higher epoch, its leader unknown"
    LEADER_FOUND = "the leader of this epoch or a higher one is known"
    VOTE_GRANTED = "its vote is granted"
    ELECTION_TIMEOUT = "election timeout"
    FETCH_TIMEOUT = "fetch timeout, voter"
    LEADER_LOST = "fetch timeout, observer"
    PRE_VOTES_WON = "pre-votes of a majority"
    PRE_VOTES_LOST = "pre-votes lost or election timeout, leader unknown"
    LEADER_KEPT = "pre-votes lost or election timeout, leader known"
    VOTES_WON = "votes of a majority"
    VOTES_LOST = "votes lost and backed off, or election timeout"
    RESIGNS = "no majority fetches, removed from the voters, or shutdown"


TRANSITIONS: Final[dict[State, dict[Cause, State]]] = {
    State.UNATTACHED: {
        Cause.HIGHER_EPOCH: State.UNATTACHED,
        Cause.LEADER_FOUND: State.FOLLOWER,
        Cause.VOTE_GRANTED: State.UNATTACHED,
        Cause.ELECTION_TIMEOUT: State.PROSPECTIVE,
    },
    State.PROSPECTIVE: {
        Cause.HIGHER_EPOCH: State.UNATTACHED,
        Cause.LEADER_FOUND: State.FOLLOWER,
        Cause.VOTE_GRANTED: State.PROSPECTIVE,
        Cause.PRE_VOTES_WON: State.CANDIDATE,
        Cause.PRE_VOTES_LOST: State.UNATTACHED,
        Cause.LEADER_KEPT: State.FOLLOWER,
    },
    State.CANDIDATE: {
        Cause.HIGHER_EPOCH: State.UNATTACHED,
        Cause.LEADER_FOUND: State.FOLLOWER,
        Cause.VOTES_WON: State.LEADER,
        Cause.VOTES_LOST: State.PROSPECTIVE,
    },
    State.LEADER: {
        Cause.HIGHER_EPOCH: State.UNATTACHED,
        Cause.LEADER_FOUND: State.FOLLOWER,
        Cause.RESIGNS: State.RESIGNED,
    },
    State.FOLLOWER: {
        Cause.HIGHER_EPOCH: State.UNATTACHED,
        Cause.LEADER_FOUND: State.FOLLOWER,
        Cause.FETCH_TIMEOUT: State.PROSPECTIVE,
        Cause.LEADER_LOST: State.UNATTACHED,
    },
    State.RESIGNED: {
        Cause.HIGHER_EPOCH: State.UNATTACHED,
        Cause.LEADER_FOUND: State.FOLLOWER,
        Cause.ELECTION_TIMEOUT: State.UNATTACHED,
    },
}
"""The next state, by state and cause. RESIGNED leaves its epoch: it goes on in the next one."""
VOTER_STATES: Final = frozenset({State.PROSPECTIVE, State.CANDIDATE})
"""The states that no observer has."""


def next_state(state: State, cause: Cause) -> State:
    """Return the next state; LocalProtocolError if there is no such transition."""
    try:
        return TRANSITIONS[state][cause]
    except KeyError:
        raise LocalProtocolError(f"no transition from {state.value}: {cause.value}") from None


def diagram() -> str:
    """Draw the table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> Unattached", "    [*] --> Follower"]
    lines.append("    [*] --> Resigned: it led when it stopped")
    for state, causes in TRANSITIONS.items():
        for cause, target in causes.items():
            lines.append(f"    {state.value} --> {target.value}: {cause.value}")
    return "\n".join(lines) + "\n"


@dataclass(slots=True)
class Election:
    """The votes of a Prospective or a Candidate."""

    granted: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)

    def is_won(self, voters: Iterable[int], majority: int) -> bool:
        """Whether a majority of the voters granted its vote."""
        return len(self.granted.intersection(voters)) >= majority

    def is_lost(self, voters: Iterable[int], majority: int) -> bool:
        """Whether a majority can no longer be reached."""
        ids = set(voters)
        return len(ids) - len(self.rejected & ids) < majority


@dataclass(slots=True)
class ReplicaProgress:
    """What a leader knows of another replica, or of itself; times are those of `now`.

    end_offset: where its log ended at its last fetch; -1 before.
    """

    end_offset: int = -1
    last_fetch: float = -1.0
    last_fetch_leader_end: int = -1
    last_caught_up: float = -1.0


@dataclass(slots=True)
class Leadership:
    """What a leader has besides its log.

    high_watermark: None until a record of its own epoch is committed. begin_at: when to send
    BeginQuorumEpoch to a voter (at once, if it is not there). flush_at: when to flush the log.
    """

    epoch_start_offset: int
    since: float
    high_watermark: int | None = None
    progress: dict[ReplicaKey, ReplicaProgress] = field(default_factory=dict)
    begin_at: dict[int, float] = field(default_factory=dict)
    flush_at: float | None = None

    def find(self, key: ReplicaKey) -> ReplicaProgress | None:
        """Find what is known of a replica, whose directory may be unknown."""
        if key.directory_id == ZERO_UUID:
            return next((each for at, each in self.progress.items() if at.matches(key)), None)
        return self.progress.get(key)


@dataclass(slots=True)
class Following:
    """What a follower has besides its log.

    has_fetched: whether a Fetch to this leader succeeded. snapshot_*: one that is fetched in parts.
    update_at: when to send UpdateRaftVoter, if the voter set has other listeners for it.
    """

    has_fetched: bool = False
    snapshot_id: SnapshotId | None = None
    snapshot_parts: list[bytes] = field(default_factory=list)
    snapshot_position: int = 0
    update_at: float = 0.0

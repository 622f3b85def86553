"""The configuration of one replica of the quorum: who it is, and its timeouts."""

from __future__ import annotations

from typing import Final, NamedTuple

from .voters import Endpoint, KRaftVersionRange, ReplicaKey, VoterSet

TOPIC: Final = "__cluster_metadata"
TOPIC_ID: Final = b"\0" * 15 + b"\1"
PARTITION: Final = 0
NO_VOTERS: Final = VoterSet(())
NEVER: Final = float("inf")


class Timeouts(NamedTuple):
    """Durations in seconds; the names are those of `controller.quorum.*.ms`.

    append_linger: the leader flushes appended records at most this long after.
    fetch_max_wait: how long a leader may hold a Fetch that has nothing to return.
    """

    election_timeout: float = 1.0
    fetch_timeout: float = 2.0
    election_backoff_max: float = 1.0
    request_timeout: float = 2.0
    retry_backoff: float = 0.02
    append_linger: float = 0.025
    fetch_max_wait: float = 0.5
    update_voter_period: float = 1.0

    @property
    def check_quorum_timeout(self) -> float:
        """How long a leader stays one without hearing from a majority."""
        return self.fetch_timeout * 1.5

    @property
    def begin_quorum_epoch_interval(self) -> float:
        """How long a voter may not fetch before the leader announces itself again."""
        return self.fetch_timeout / 2


DEFAULT_TIMEOUTS: Final = Timeouts()


class RaftConfig(NamedTuple):
    """The settings of a replica at its start.

    node_id: -1 for an observer without an id.
    voters: `controller.quorum.voters`; unused once the log or a snapshot has a VotersRecord.
    bootstrap: `controller.quorum.bootstrap.servers`, contacted while no voter is known.
    endpoints: the replica's own listeners, the controller listener first.
    epoch_ms: milliseconds since 1970 at `now` 0.
    max_bytes: most bytes of records or of a snapshot in one response.
    """

    node_id: int
    directory_id: bytes
    cluster_id: str | None = None
    voters: VoterSet = NO_VOTERS
    bootstrap: tuple[Endpoint, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    kraft_versions: KRaftVersionRange = KRaftVersionRange(0, 1)
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    epoch_ms: int = 0
    max_bytes: int = 8 << 20

    @property
    def replica(self) -> ReplicaKey:
        """The id and directory of this replica."""
        return ReplicaKey(self.node_id, self.directory_id)

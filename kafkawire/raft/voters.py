"""Voters of a quorum, and the voter set at each offset of the log (KIP-853).

Values. A voter is a node with a directory: the node with a new disk is another voter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic, NamedTuple, TypeVar

from ..messages.voters_record import Endpoint as EndpointField
from ..messages.voters_record import KRaftVersionFeature, VotersRecord
from ..messages.voters_record import Voter as VoterField
from ..primitives import ZERO_UUID


class Endpoint(NamedTuple):
    """A listener of a replica."""

    name: str
    host: str
    port: int


class ReplicaKey(NamedTuple):
    """A replica: the id of its node and of its metadata directory (all zero: unknown)."""

    id: int
    directory_id: bytes = ZERO_UUID

    def matches(self, other: ReplicaKey) -> bool:
        """Whether both may be the same replica: an unknown directory is any."""
        both_have = ZERO_UUID not in (self.directory_id, other.directory_id)
        return self.id == other.id and (not both_have or self.directory_id == other.directory_id)


class KRaftVersionRange(NamedTuple):
    """The versions of the feature kraft.version that a replica supports."""

    min: int
    max: int


class Voter(NamedTuple):
    """A voter with its listeners; the first is that of controllers."""

    key: ReplicaKey
    endpoints: tuple[Endpoint, ...]
    kraft_versions: KRaftVersionRange = KRaftVersionRange(0, 1)


class VoterSet(NamedTuple):
    """The voters, by ascending id."""

    voters: tuple[Voter, ...]

    def __iter__(self) -> Iterator[Voter]:  # type: ignore[override]
        return iter(self.voters)

    def find(self, node_id: int) -> Voter | None:
        """Find the voter of a node."""
        return next((voter for voter in self.voters if voter.key.id == node_id), None)

    def has(self, key: ReplicaKey) -> bool:
        """Whether a replica is a voter."""
        return any(voter.key.matches(key) for voter in self.voters)

    @property
    def keys(self) -> tuple[ReplicaKey, ...]:
        """The voters' ids and directories."""
        return tuple(voter.key for voter in self.voters)

    @property
    def majority(self) -> int:
        """How many voters decide."""
        return len(self.voters) // 2 + 1

    def without(self, key: ReplicaKey) -> VoterSet:
        """Remove a voter."""
        return VoterSet(tuple(voter for voter in self.voters if not voter.key.matches(key)))

    def with_voter(self, added: Voter) -> VoterSet:
        """Add a voter, or replace that of the same node."""
        others = [voter for voter in self.voters if voter.key.id != added.key.id]
        return VoterSet(tuple(sorted([*others, added])))

    def to_record(self) -> VotersRecord:
        """Make the control record's message."""
        return VotersRecord(
            voters=[
                VoterField(
                    voter_id=voter.key.id,
                    voter_directory_id=voter.key.directory_id,
                    endpoints=[
                        EndpointField(name=each.name, host=each.host, port=each.port)
                        for each in voter.endpoints
                    ],
                    k_raft_version_feature=KRaftVersionFeature(
                        min_supported_version=voter.kraft_versions.min,
                        max_supported_version=voter.kraft_versions.max,
                    ),
                )
                for voter in self.voters
            ]
        )


def voter_set_of(record: VotersRecord) -> VoterSet:
    """Read the control record's message."""
    return VoterSet(
        tuple(
            sorted(
                Voter(
                    ReplicaKey(each.voter_id, each.voter_directory_id),
                    tuple(Endpoint(one.name, one.host, one.port) for one in each.endpoints),
                    KRaftVersionRange(
                        each.k_raft_version_feature.min_supported_version,
                        each.k_raft_version_feature.max_supported_version,
                    ),
                )
                for each in record.voters
            )
        )
    )


T = TypeVar("T")
NOT_IN_LOG: Final = -1
"""The offset of what is known before the log: the configuration, or the bootstrap snapshot."""


class LogHistory(Generic[T]):
    """The values of something that records of the log change, by offset."""

    def __init__(self, default: T) -> None:
        self._entries: list[tuple[int, T]] = [(NOT_IN_LOG, default)]

    @property
    def last(self) -> T:
        """The newest value, committed or not."""
        return self._entries[-1][1]

    @property
    def last_offset(self) -> int:
        """Where the newest value is in the log; NOT_IN_LOG if it is not."""
        return self._entries[-1][0]

    def at(self, offset: int) -> T:
        """Return the value that holds after the records before `offset`."""
        return next((each for at, each in reversed(self._entries) if at < offset), self.first)

    @property
    def first(self) -> T:
        """The oldest value that is known."""
        return self._entries[0][1]

    def add(self, offset: int, value: T) -> None:
        """Add the value of a record."""
        self._entries.append((offset, value))

    def truncate_to(self, end_offset: int) -> None:
        """Forget records from `end_offset` on."""
        kept = [entry for entry in self._entries[1:] if entry[0] < end_offset]
        self._entries[1:] = kept

    def start_from(self, offset: int, value: T) -> None:
        """Forget all but the value in a snapshot that ends at `offset`."""
        self._entries = [(offset, value)]

    def trim_to(self, start_offset: int) -> None:
        """Forget values that were replaced before `start_offset`."""
        older = [entry for entry in self._entries if entry[0] < start_offset]
        if len(older) > 1:
            self._entries = self._entries[len(older) - 1 :]

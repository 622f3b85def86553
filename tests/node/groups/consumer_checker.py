"""The invariants of consumer groups (KIP-848), checked while a simulation runs.

a partition has one member: when another one gets it, the member has given it up, or is removed
heartbeats and commits of a member that is removed are refused, until it joins again
committed offsets do not go back; what was committed is fetched
each record is consumed at least once
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import NamedTuple

from kafkawire.metadata import TopicIdPartition
from kafkawire.node.invariants import Violation

Partitions = frozenset[TopicIdPartition]


class Commit(NamedTuple):
    """An offset that is committed. when: its broker has said so."""

    when: float
    offset: int


class ConsumerChecker:
    """What the members of one consumer group saw and did so far."""

    def __init__(self) -> None:
        self._assigned: dict[str, Partitions] = {}
        """Member -> what it was assigned last."""
        self._removed: dict[str, float] = {}
        """Member whose partitions were assigned to another one -> when."""
        self._commits: dict[TopicIdPartition, list[Commit]] = {}
        self._fetched: dict[TopicIdPartition, int] = {}
        self._consumed: set[tuple[TopicIdPartition, int]] = set()

    # -- membership

    def assigned(self, member_id: str, assignment: Partitions, now: float) -> None:
        """Take note that the coordinator responds with an assignment."""
        self._assigned[member_id] = assignment
        for other, partitions in self._assigned.items():
            if other != member_id and partitions & assignment:
                self._removed.setdefault(other, now)

    def shrunk(self, member_id: str, assignment: Partitions) -> None:
        """Take note of an assignment by a former coordinator: it may be out of date."""
        self._assigned[member_id] = self._assigned.get(member_id, Partitions()) & assignment

    def joined(self, member_id: str) -> None:
        """Take note that a member joins, for the first time or again."""
        self._removed.pop(member_id, None)
        self._assigned.pop(member_id, None)

    def accepts(self, member_id: str, since: float, what: str) -> None:
        """Check that a request of a member may succeed. since: when it was sent."""
        if self._removed.get(member_id, inf) < since:
            raise Violation(f"a {what} of {member_id} succeeds, whose partitions another one has")

    # -- offsets

    def last_commit(self, key: TopicIdPartition) -> int:
        """Return the offset that is committed; -1 for none."""
        commits = self._commits.get(key)
        return commits[-1].offset if commits else -1

    def reached(self, key: TopicIdPartition) -> int:
        """Return how far commits are; of one without a response, a later fetch shows it."""
        return max(self.last_commit(key), self._fetched.get(key, -1))

    def committed(self, key: TopicIdPartition, offset: int, now: float) -> None:
        """Take note that the coordinator responds to a commit, without an error."""
        before = self.last_commit(key)
        if offset < before:
            raise Violation(f"{offset} of {key.partition} is committed after {before}")
        self._commits.setdefault(key, []).append(Commit(now, offset))

    def fetched(self, key: TopicIdPartition, offset: int, since: float) -> None:
        """Take note that the coordinator responds with an offset. since: the request was sent."""
        self._fetched[key] = offset
        for commit in reversed(self._commits.get(key, [])):
            if commit.when < since:
                if offset < commit.offset:
                    raise Violation(f"{commit.offset} of {key.partition} was committed: {offset}")
                return

    # -- records

    def consumed(self, key: TopicIdPartition, offset: int) -> None:
        """Take note that a member consumes a record."""
        self._consumed.add((key, offset))

    def complete(self, key: TopicIdPartition, offsets: Iterable[int]) -> None:
        """Check that all records of a partition were consumed."""
        left = [offset for offset in offsets if (key, offset) not in self._consumed]
        if left:
            raise Violation(f"nobody consumed {left} of {key.partition}")

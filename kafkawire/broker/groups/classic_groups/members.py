"""The members of a group by id, static members also by group instance id, and the leader.

A group instance id belongs to one member at a time; the leader is a member, or "". What
requests need to know of all members (common protocols, whether all have joined, bytes) is counted
as members change, so that no request iterates over them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ....protocol import ErrorCode
from ..requests import Join
from .member import DelayedRequest, Member

E = ErrorCode


class Members:
    """The members of one group.

    joined: how many have joined the rebalance in progress. size: bytes of all members.
    """

    def __init__(self) -> None:
        self.joined = 0
        self.size = 0
        self._supported: Counter[str] = Counter()
        self._members: dict[str, Member] = {}
        self._static: dict[str, str] = {}
        self.leader = ""

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, member_id: object) -> bool:
        return member_id in self._members

    def __getitem__(self, member_id: str) -> Member:
        return self._members[member_id]

    def get(self, member_id: str) -> Member | None:
        """Find a member."""
        return self._members.get(member_id)

    def instance(self, group_instance_id: str | None) -> Member | None:
        """Find the current member of a group instance id."""
        if group_instance_id is None:
            return None
        member_id = self._static.get(group_instance_id)
        return None if member_id is None else self._members[member_id]

    def identity_error(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Return the error of an unknown or fenced member."""
        if group_instance_id is not None:
            current = self._static.get(group_instance_id)
            if current is None:
                return E.UNKNOWN_MEMBER_ID
            return E.NONE if current == member_id else E.FENCED_INSTANCE_ID
        return E.NONE if member_id in self._members else E.UNKNOWN_MEMBER_ID

    def add(self, member: Member) -> None:
        """Add a member; the first becomes the leader."""
        self._members[member.member_id] = member
        self._count(member, 1)
        if member.group_instance_id is not None:
            self._static[member.group_instance_id] = member.member_id
        if not self.leader:
            self.leader = member.member_id

    def remove(self, member_id: str) -> Member:
        """Remove a member; another becomes the leader if it was."""
        member = self._members.pop(member_id)
        self._count(member, -1)
        if member.group_instance_id is not None:
            del self._static[member.group_instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self._members), "")
        return member

    def update(self, member: Member, request: Join) -> None:
        """Update a member from a JoinGroup."""
        self._count(member, -1)
        member.update(request)
        self._count(member, 1)

    def assign(self, member: Member, assignment: bytes) -> None:
        """Set a member's assignment."""
        self.size += len(assignment) - len(member.assignment)
        member.assignment = assignment

    def delay(self, member: Member, delayed: DelayedRequest | None) -> DelayedRequest | None:
        """Set the delayed request of a member, or None; return the previous one."""
        before, member.delayed = member.delayed, delayed
        self.joined += (delayed is not None and delayed.is_join) - (
            before is not None and before.is_join
        )
        return before

    def _count(self, member: Member, sign: int) -> None:
        self.size += sign * member.size
        for name in {name for name, _ in member.protocols}:
            self._supported[name] += sign
            if not self._supported[name]:
                del self._supported[name]

    def rename(self, member: Member, member_id: str) -> None:
        """Give a static member a new member id; the old one is fenced."""
        assert member.group_instance_id is not None
        was = member.member_id
        self.size += len(member_id) - len(was)
        member.member_id = member_id
        # keeps its position: members are in the order of their joining
        self._members = {each.member_id: each for each in self._members.values()}
        self._static[member.group_instance_id] = member_id
        if self.leader == was:
            self.leader = member_id

    def elect(self) -> None:
        """Elect a leader that has joined."""
        leader = self._members.get(self.leader)
        if leader is None or not leader.has_joined:
            self.leader = next((each.member_id for each in self if each.has_joined), "")

    def candidates(self) -> frozenset[str]:
        """Return the protocols that all members support."""
        return frozenset(name for name, many in self._supported.items() if many == len(self))

    def elected_protocol(self) -> str:
        """Return the protocol with the most votes among those that all members support."""
        candidates = self.candidates()
        return Counter(member.vote(candidates) for member in self).most_common(1)[0][0]

    def supports(self, request: Join) -> bool:
        """Whether a joining client has a protocol in common with all members."""
        if not self._members:
            return bool(request.protocols)
        return any(self._supported[name] == len(self) for name, _ in request.protocols)

    def rebalance_timeout(self) -> float:
        """Return the largest rebalance timeout of the members."""
        return max((member.rebalance_timeout for member in self), default=0.0)

"""Who is in a group: members by id, static ones by instance too, and one of them the leader.

Law: a group instance id belongs to one member at a time; the leader is a member, or nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...protocol import ErrorCode
from .member import Member
from .requests import Join

E = ErrorCode


class Roster:
    """The members of one group."""

    def __init__(self) -> None:
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
        """Find the member that a group instance is at the moment."""
        if group_instance_id is None:
            return None
        member_id = self._static.get(group_instance_id)
        return None if member_id is None else self._members[member_id]

    def identity_error(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Say why somebody is not the member it says it is."""
        if group_instance_id is not None:
            current = self._static.get(group_instance_id)
            if current is None:
                return E.UNKNOWN_MEMBER_ID
            return E.NONE if current == member_id else E.FENCED_INSTANCE_ID
        return E.NONE if member_id in self._members else E.UNKNOWN_MEMBER_ID

    def add(self, member: Member) -> None:
        """Take a member in; the first leads."""
        self._members[member.member_id] = member
        if member.group_instance_id is not None:
            self._static[member.group_instance_id] = member.member_id
        if not self.leader:
            self.leader = member.member_id

    def remove(self, member_id: str) -> Member:
        """Let a member go; another leads if it did."""
        member = self._members.pop(member_id)
        if member.group_instance_id is not None:
            del self._static[member.group_instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self._members), "")
        return member

    def rename(self, member: Member, member_id: str) -> None:
        """Give the member that a group instance is a new id: the old one is fenced."""
        assert member.group_instance_id is not None
        was = member.member_id
        member.member_id = member_id
        # in its old place: the order of members is that of their joining
        self._members = {each.member_id: each for each in self._members.values()}
        self._static[member.group_instance_id] = member_id
        if self.leader == was:
            self.leader = member_id

    def elect(self) -> None:
        """See to it that who leads has joined."""
        leader = self._members.get(self.leader)
        if leader is None or not leader.has_joined:
            self.leader = next((each.member_id for each in self if each.has_joined), "")

    def candidates(self) -> frozenset[str]:
        """Say which protocols all members have."""
        each = [frozenset(name for name, _ in member.protocols) for member in self]
        return frozenset.intersection(*each) if each else frozenset()

    def elected_protocol(self) -> str:
        """Say which protocol most members like best, of those that all have."""
        candidates = self.candidates()
        return Counter(member.vote(candidates) for member in self).most_common(1)[0][0]

    def supports(self, request: Join) -> bool:
        """Whether the members would have a protocol in common with who asks."""
        offered = {name for name, _ in request.protocols}
        return bool(offered & self.candidates()) if self._members else bool(offered)

    def rebalance_timeout(self) -> float:
        """Say how long members may take to join."""
        return max((member.rebalance_timeout for member in self), default=0.0)

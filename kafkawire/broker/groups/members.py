"""Who is in a group: members by id, static ones by instance too, and one of them the leader.

Law: a group instance id belongs to one member at a time; the leader is a member, or nobody. What
every request needs to know of all members (which protocols they share, whether all have joined,
their bytes) is counted as they change, so no request looks at each of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...protocol import ErrorCode
from .member import DelayedRequest, Member
from .requests import Join

E = ErrorCode


class Members:
    """The members of one group. joined: how many wait for the rebalance to complete. size: bytes of
    all members.
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
        self._count(member, 1)
        if member.group_instance_id is not None:
            self._static[member.group_instance_id] = member.member_id
        if not self.leader:
            self.leader = member.member_id

    def remove(self, member_id: str) -> Member:
        """Let a member go; another leads if it did."""
        member = self._members.pop(member_id)
        self._count(member, -1)
        if member.group_instance_id is not None:
            del self._static[member.group_instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self._members), "")
        return member

    def update(self, member: Member, request: Join) -> None:
        """Take in what a member says now."""
        self._count(member, -1)
        member.update(request)
        self._count(member, 1)

    def assign(self, member: Member, assignment: bytes) -> None:
        """Give a member its assignment."""
        self.size += len(assignment) - len(member.assignment)
        member.assignment = assignment

    def delay(self, member: Member, delayed: DelayedRequest | None) -> DelayedRequest | None:
        """Let a request of a member wait, or none; the one that waited before."""
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
        """Give the member that a group instance is a new id: the old one is fenced."""
        assert member.group_instance_id is not None
        was = member.member_id
        self.size += len(member_id) - len(was)
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
        return frozenset(name for name, many in self._supported.items() if many == len(self))

    def elected_protocol(self) -> str:
        """Say which protocol most members like best, of those that all have."""
        candidates = self.candidates()
        return Counter(member.vote(candidates) for member in self).most_common(1)[0][0]

    def supports(self, request: Join) -> bool:
        """Whether the members would have a protocol in common with who asks."""
        if not self._members:
            return bool(request.protocols)
        return any(self._supported[name] == len(self) for name, _ in request.protocols)

    def rebalance_timeout(self) -> float:
        """Say how long members may take to join."""
        return max((member.rebalance_timeout for member in self), default=0.0)

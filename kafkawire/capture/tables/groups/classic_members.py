"""Tracks the members of classic groups, and determines why a member sends JoinGroup.

A member is alive as long as the broker accepts its requests; its session expires if it sends
none for longer than the session timeout of its JoinGroup.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from zlib import crc32

from ....protocol.error_code import ErrorCode
from ...rows import Located, Row
from ..extraction.group_event import GroupEvent, error_event, or_none
from .causes import Cause, Causes, cause_of

MEMBER_ID_REQUIRED: Final = 4
"""JoinGroup version from which a dynamic member needs a member id (KIP-394)."""

COORDINATOR_MOVED: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""Error codes that make members look up the coordinator again."""


class Member:
    """What is known of a member.

    subscription: a checksum of its subscription. seen_ns: when it was last known to be alive;
    session_timeout_ns: 0 if its JoinGroup is not in the capture.
    """

    def __init__(self) -> None:
        self.client_id: str | None = None
        self.instance: str | None = None
        self.subscription: int | None = None
        self.seen_ns = 0
        self.session_timeout_ns = 0


class Group:
    """What is known of a group.

    generation_ns: when its generation began. instances: member ids of static members, by group
    instance id. started: when the rebalance in progress was caused or noticed. moved: whether the
    coordinator moved since the last generation.
    """

    def __init__(self) -> None:
        self.generation = -1
        self.protocol_type: str | None = None
        self.leader: str | None = None
        self.generation_ns = 0
        self.members: dict[str, Member] = {}
        self.instances: dict[str, str] = {}
        self.joined: set[str] = set()
        self.synced: set[str] = set()
        self.started: int | None = None
        self.causes = Causes()
        self.moved = False

    def seen(self, event: GroupEvent) -> Member:
        """Note that a member is alive; return it."""
        return self._seen(event.member_id or "", event.client_id, event.row.time_ns)

    def accepted(self, heartbeat: Row, member_id: str, time_ns: int) -> None:
        """Handle a heartbeat that was accepted at that time."""
        if member_id:
            self._seen(member_id, heartbeat.client_id, time_ns)
        if self.started is None:
            self.causes.stable(heartbeat.time_ns)

    def _seen(self, member_id: str, client_id: str | None, time_ns: int) -> Member:
        member = self.add(member_id)
        member.client_id = member.client_id or client_id
        member.seen_ns = max(member.seen_ns, time_ns)
        return member

    def add(self, member_id: str, instance: str | None = None) -> Member:
        """Return a member; add it if unknown."""
        member = self.members.get(member_id)
        if member is None:
            member = self.members[member_id] = Member()
        if instance is not None:
            member.instance = instance
            self.instances[instance] = member_id
        return member

    def remove(self, member_id: str) -> Member | None:
        """Remove a member that left or was removed by the broker."""
        member = self.members.pop(member_id, None)
        if member is not None and self.instances.get(member.instance or "") == member_id:
            del self.instances[member.instance or ""]
        self.joined.discard(member_id)
        return member

    def rejected(self, event: GroupEvent, code: int) -> GroupEvent:
        """Make the event of an error response; a member that the broker no longer has is removed.

        A client that has already given up its member id is the only member with its client id.
        """
        member_id = event.member_id
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            if member_id is None:
                same = [id for id, one in self.members.items() if one.client_id == event.client_id]
                member_id = same[0] if len(same) == 1 else None
            self.remove(member_id or "")
        return error_event(event._replace(member_id=member_id), code)

    def member_of(self, member_id: str, instance: str | None) -> str | None:
        """Return a member id; if it is empty, that of the static member with an instance id."""
        return member_id or self.instances.get(instance or "")

    def expired(self, now_ns: int, but: str | None) -> tuple[str, int] | None:
        """Find the member whose session expired first, and when.

        Returns None if no session is known to have expired.
        """
        ends = [
            (member.seen_ns + member.session_timeout_ns, member_id)
            for member_id, member in self.members.items()
            if member.session_timeout_ns and member_id != but
        ]
        end_ns, member_id = min(ends, default=(now_ns + 1, ""))
        return (member_id, end_ns) if end_ns <= now_ns else None


def kind_of_join(group: Group, request: Any, version: int) -> tuple[str, bool]:
    """Return why a member sends JoinGroup, and whether that certainly starts a rebalance.

    In a stable group, a member that rejoins without a change gets the current generation.
    """
    instance, member = or_none(request.group_instance_id), group.members.get(request.member_id)
    if not request.member_id and instance:
        if instance in group.instances:
            return f"static member {instance} is replaced", False
        return "a member joins", True
    if not request.member_id:
        return "a member joins", version < MEMBER_ID_REQUIRED
    if member is None:
        return "a member joins", True
    if member.subscription not in (None, subscription_of(request)):
        return "a member rejoins with a new subscription", True
    if request.member_id == group.leader:
        return "the leader rejoins", True
    return "a member rejoins", False


class Leaving(NamedTuple):
    """A member that a LeaveGroup removes. error_code: of its own result, 0 without one."""

    member_id: str | None
    group_instance_id: str | None
    reason: str | None
    error_code: int


def leaving_members(group: Group, request: Any, response: Any) -> list[Leaving]:
    """List the members of a LeaveGroup; those with an instance id alone get their member ids."""
    leaving = request.members or [request]
    results = [] if response is None else response.members
    codes = [each.error_code for each in results]
    if len(codes) != len(leaving):
        codes = [0] * len(leaving)
    left = []
    for member, code in zip(leaving, codes, strict=True):
        instance = or_none(getattr(member, "group_instance_id", None))
        reason = or_none(getattr(member, "reason", None))
        member_id = group.member_of(member.member_id, instance)
        left.append(Leaving(member_id, instance, reason, code))
    return left


def cause_of_leave(group: Group, item: Located, request: Any) -> Cause:
    """Make the cause of a LeaveGroup; of several members, none is named."""
    leaving = leaving_members(group, request, None)
    first = leaving[0]
    if len(leaving) > 1:
        first = first._replace(member_id=None, group_instance_id=None)
    what = "a member leaves" if len(leaving) == 1 else f"{len(leaving)} members leave"
    reason = f"{what}: {first.reason}" if first.reason else what
    return cause_of(item, reason, first.member_id, first.group_instance_id, True)


def subscription_of(request: Any) -> int:
    """Compute a checksum of the protocols of a JoinGroup and their metadata."""
    checksum = 0
    for one in request.protocols:
        checksum = crc32(one.metadata, crc32(one.name.encode("utf-8", "surrogateescape"), checksum))
    return checksum

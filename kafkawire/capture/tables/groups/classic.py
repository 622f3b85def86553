"""Tracks classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

A rebalance starts with the request that caused it (see `causes`), and is noticed by the first
message that shows it (a JoinGroup response with a new generation, a REBALANCE_IN_PROGRESS error).
It ends when every member that was seen joining has its assignment.

    stable --error 27 or a join--> preparing --JoinGroup responses--> syncing --all synced--> stable
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Final

from ....messages.api_key import ApiKey
from ....protocol.embedded import embedded_payloads
from ....protocol.error_code import ErrorCode
from ....protocol.kinds import read_payload
from ....protocol.payload_fields import ASSIGNMENT
from ...exchanges.exchanges import Exchange
from ...exchanges.topic_ids import Topic
from ...rows import Located, Row
from ..context import Context
from ..extraction.group_event import FAILED, EventType, GroupEvent, Protocol, error_event, or_none
from .causes import NOT_CAPTURED, cause_of, started, started_unseen
from .classic_members import (
    COORDINATOR_MOVED,
    Group,
    Member,
    cause_of_leave,
    kind_of_join,
    leaving_members,
    subscription_of,
)

HEARTBEAT: Final = ApiKey.HEARTBEAT


class ClassicGroups:
    """Tracks the classic groups of a capture. Memory grows with the number of members."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._groups: defaultdict[str, Group] = defaultdict(Group)

    def requested(self, item: Located) -> None:
        """Note a request that may cause a rebalance, when it is sent."""
        message: Any = item.row.message
        if message is None:
            return
        if item.row.api_key == ApiKey.JOIN_GROUP:
            self._join_sent(self._groups[message.group_id], item, message)
        elif item.row.api_key == ApiKey.LEAVE_GROUP:
            group = self._groups[message.group_id]
            group.causes.sent(cause_of_leave(group, item, message))

    def _join_sent(self, group: Group, item: Located, message: Any) -> None:
        what, certain = kind_of_join(group, message, item.row.body_version or 0)
        if group.moved:
            what += " after the coordinator moved"
        why = or_none(message.reason)
        group.causes.sent(
            cause_of(
                item,
                f"{what}: {why}" if why else what,
                or_none(message.member_id),
                or_none(message.group_instance_id),
                certain,
            )
        )

    def handle(self, exchange: Exchange) -> Iterator[GroupEvent]:
        """Handle an exchange; yield its events."""
        request, response = exchange.request, exchange.response
        message: Any = None if request is None else request.message
        if request is None or message is None:
            return
        handler = HANDLERS.get(request.api_key or 0)
        if handler is None:
            return
        group = self._groups[message.group_id]
        if response is None:
            group.causes.settle(exchange)
            return
        reply: Any = response.message
        if request.api_key == HEARTBEAT and reply is not None and not reply.error_code:
            group.accepted(request, message.member_id, response.time_ns)
            return
        event = GroupEvent(
            exchange,
            response,
            Protocol.CLASSIC,
            message.group_id,
            FAILED,
            member_id=or_none(message.member_id),
            group_instance_id=or_none(getattr(message, "group_instance_id", None)),
            generation=getattr(message, "generation_id", None),
            client_id=request.client_id,
        )
        if getattr(reply, "error_code", 0) in COORDINATOR_MOVED:
            group.moved = True
        yield from handler(self, group, event, message, reply)

    def alive(self, event: GroupEvent) -> None:
        """Note that the coordinator accepted a request of a member: its session continues."""
        group = self._groups.get(event.group_id)
        if group is not None and event.member_id in group.members:
            group.seen(event)

    def in_progress(self, event: GroupEvent) -> Iterator[GroupEvent]:
        """Handle REBALANCE_IN_PROGRESS in the response to any request of a member.

        The member notices a rebalance with another cause.
        """
        group = self._groups[event.group_id]
        if event.member_id is not None:
            group.seen(event)
        if group.started is not None:
            return
        now_ns = event.row.time_ns
        cause = group.causes.first()
        expired = group.expired(now_ns, event.member_id)
        if expired is not None and (
            cause is None or not cause.certain or expired[1] < cause.sent[0]
        ):
            yield self._expired(group, event, expired[0])
        elif cause is not None:
            group.started = cause.sent[0]
            yield started(cause, event)
        else:
            group.started = now_ns
            response = f"a {event.exchange.main_row.api_name} response"
            yield started_unseen(event, f"{NOT_CAPTURED}; noticed in {response}")

    def _expired(self, group: Group, event: GroupEvent, member_id: str) -> GroupEvent:
        """Make the event of a rebalance that starts with a session timeout."""
        member = group.members[member_id]
        group.started = event.row.time_ns
        silent = (event.row.time_ns - member.seen_ns) / 1e9
        reason = f"session timeout: last request of the member {silent:.1f} s earlier"
        return started_unseen(event, reason)._replace(
            member_id=member_id, client_id=member.client_id, group_instance_id=member.instance
        )

    # -- API by API

    def _join(
        self, group: Group, event: GroupEvent, request: Any, response: Any
    ) -> Iterator[GroupEvent]:
        if response is None or response.error_code:
            group.causes.rejected(event.exchange)
            if response is not None and response.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                event = event._replace(member_id=event.member_id or or_none(response.member_id))
                yield from self._refuse(group, event, response.error_code)
            return
        group.protocol_type = request.protocol_type
        event = event._replace(
            member_id=response.member_id,
            generation=response.generation_id,
            assignor=or_none(response.protocol_name),
            members=len(response.members) or None,
            reason=or_none(request.reason),
        )
        if response.generation_id != group.generation:
            yield from self._new_generation(group, event, response)
        group.causes.rejected(event.exchange)
        group.leader = or_none(response.leader)
        group.joined.add(response.member_id)
        member = group.seen(event)
        group.add(response.member_id, or_none(request.group_instance_id))
        member.subscription = subscription_of(request)
        member.session_timeout_ns = max(request.session_timeout_ms, 0) * 1_000_000
        yield event._replace(type=EventType.JOINED)
        yield from self._missing(group, event, response)

    def _new_generation(
        self, group: Group, event: GroupEvent, response: Any
    ) -> Iterator[GroupEvent]:
        group.generation = event.generation or 0
        group.generation_ns = event.row.time_ns
        group.joined, group.synced = set(), set()
        group.moved = False
        if group.started is not None:
            return
        # a member that left an empty group caused no rebalance
        others = any(member_id != event.member_id for member_id in group.members)
        cause = group.causes.first(settled=others)
        group.started = event.row.time_ns if cause is None else cause.sent[0]
        if cause is None:
            start = started_unseen(event)
        elif cause.exchange.main_row.packet == event.exchange.main_row.packet:
            start = started(cause._replace(member_id=event.member_id), event)
        else:
            instance = cause.group_instance_id
            if cause.member_id is None and instance is not None:  # the leader knows static members
                ids = (m.member_id for m in response.members if m.group_instance_id == instance)
                cause = cause._replace(member_id=next(ids, None))
            start = started(cause, event)
        yield start._replace(noticed_ns=event.exchange.main_row.time_ns)

    def _missing(self, group: Group, event: GroupEvent, response: Any) -> Iterator[GroupEvent]:
        """Yield removed members: the leader's response lists those of the generation."""
        if not response.members:
            return
        here = {member.member_id: member.group_instance_id for member in response.members}
        reason = f"not in generation {response.generation_id}"
        for leaving in sorted(group.members.keys() - here.keys()):
            member = group.remove(leaving) or Member()
            yield event._replace(
                type=EventType.REMOVED,
                member_id=leaving,
                client_id=member.client_id,
                group_instance_id=member.instance,
                reason=reason,
            )
        for member_id, instance in here.items():
            group.add(member_id, or_none(instance))

    def _sync(
        self, group: Group, event: GroupEvent, request: Any, response: Any
    ) -> Iterator[GroupEvent]:
        if response is None or response.error_code:
            if response is not None:
                yield from self._refuse(group, event, response.error_code)
            return
        partitions = self._assignment(group, event.row)
        event = event._replace(assignor=or_none(request.protocol_name))
        yield event._replace(type=EventType.ASSIGNED, partitions=partitions)
        group.seen(event)
        group.synced.add(request.member_id)
        if group.started is not None and group.joined and group.synced >= group.joined:
            duration = event.row.time_ns - group.started
            group.started = None
            group.causes.ended(group.generation_ns)
            yield event.rebalance_ended(len(group.members), duration)

    def _heartbeat(
        self, group: Group, event: GroupEvent, _request: Any, response: Any
    ) -> Iterator[GroupEvent]:
        """Handle a heartbeat that was not accepted."""
        if response is not None:
            yield from self._refuse(group, event, response.error_code)

    def _leave(
        self, group: Group, event: GroupEvent, request: Any, response: Any
    ) -> Iterator[GroupEvent]:
        if response is not None and response.error_code:
            group.causes.rejected(event.exchange)
            yield from self._refuse(group, event, response.error_code)
            return
        leaving = leaving_members(group, request, response)
        if all(each.error_code for each in leaving):
            group.causes.rejected(event.exchange)
        else:
            group.causes.settle(event.exchange)
        generation = group.generation if group.generation >= 0 else None
        for member_id, instance, reason, code in leaving:
            of_member = event._replace(
                member_id=member_id, group_instance_id=instance, generation=generation
            )
            if code:
                yield error_event(of_member, code)
                continue
            removed = group.remove(member_id or "")
            client_id = event.client_id if removed is None else removed.client_id
            yield of_member._replace(type=EventType.LEFT, client_id=client_id, reason=reason)

    def _refuse(self, group: Group, event: GroupEvent, code: int) -> Iterator[GroupEvent]:
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            yield from self.in_progress(event)
        else:
            yield group.rejected(event, code)

    def _assignment(self, group: Group, row: Row) -> list[tuple[Topic, list[int]]] | None:
        """Decode a member's assignment; None if its format has no topics."""
        message: Any = row.message
        limits = self._context.limits
        kind = ASSIGNMENT.get(group.protocol_type or "")
        if kind is None or not message.assignment:
            payloads = embedded_payloads(message, row.body_version or 0, limits=limits)
        else:
            payloads = [read_payload("assignment", kind, message.assignment, limits)]
        topics = getattr(payloads[0].value, "assigned_partitions", None) if payloads else None
        if topics is None:
            return [] if not message.assignment else None
        names = self._context.names
        return [(names.topic(one.topic), list(one.partitions)) for one in topics]


_Handler = Callable[[ClassicGroups, Group, GroupEvent, Any, Any], Iterator[GroupEvent]]

HANDLERS: Final[dict[int, _Handler]] = {
    ApiKey.JOIN_GROUP: ClassicGroups._join,
    ApiKey.SYNC_GROUP: ClassicGroups._sync,
    ApiKey.HEARTBEAT: ClassicGroups._heartbeat,
    ApiKey.LEAVE_GROUP: ClassicGroups._leave,
}
"""API key -> handler of its exchanges."""

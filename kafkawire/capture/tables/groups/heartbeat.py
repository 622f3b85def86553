"""Tracks groups with heartbeat-based protocols.

These are consumer (KIP-848), share (KIP-932) and streams (KIP-1071) groups.

The member epoch shows the state: 0 joins, a negative epoch leaves, and the broker raises the epoch
when the group changes. A rebalance is noticed by the first raised epoch and ends when every
known member has that epoch; members continue to consume the partitions they keep. It starts with
the request that made the broker raise the epoch: of a member that joins, leaves or changes its
subscription (see `causes`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ....display import plural
from ....messages.api_key import ApiKey
from ...exchanges.exchanges import Exchange
from ...rows import Located
from ..context import Context
from ..extraction.group_event import (
    REMOVED,
    EventType,
    GroupEvent,
    Protocol,
    Tasks,
    error_event,
    or_none,
)
from .causes import Causes, cause_of, started, started_unseen
from .ownership import UNITS, Handover, Kind, Ownership, Unit, grouped, owned_in

PROTOCOLS: Final[dict[int, Protocol]] = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Protocol.CONSUMER,
    ApiKey.SHARE_GROUP_HEARTBEAT: Protocol.SHARE,
    ApiKey.STREAMS_GROUP_HEARTBEAT: Protocol.STREAMS,
}

SUBSCRIPTION: Final = ("subscribed_topic_names", "subscribed_topic_regex", "topology")
"""Fields of heartbeats with the subscription; null if unchanged."""

STATIC_LEAVE: Final = -2
"""Member epoch with which a static member leaves temporarily."""


class _Group:
    """What is known of a group: its highest epoch, and that of each member."""

    def __init__(self) -> None:
        self.epoch = 0
        self.members: dict[str, int] = {}
        self.started: int | None = None
        self.causes = Causes()
        self.ownership = Ownership()
        self._at: Counter[int] = Counter()  # members by epoch

    def at(self, member_id: str, epoch: int | None) -> None:
        """Set the epoch of a member; None if it left."""
        before = self.members.pop(member_id, None)
        if before is not None:
            self._at[before] -= 1
            if not self._at[before]:
                del self._at[before]
        if epoch is not None:
            self.members[member_id] = epoch
            self._at[epoch] += 1

    @property
    def is_settled(self) -> bool:
        """Whether all members have the group's epoch."""
        return self._at[self.epoch] == len(self.members)


class HeartbeatGroups:
    """Tracks the groups of a capture. Memory grows with the number of members."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._groups: dict[tuple[Protocol, str], _Group] = {}

    def requested(self, item: Located) -> None:
        """Note a request that may cause a rebalance, when it is sent."""
        message: Any = item.row.message
        protocol = PROTOCOLS.get(item.row.api_key or 0)
        what = None if protocol is None or message is None else _cause_of_heartbeat(message)
        if protocol is None or what is None:
            return
        cause = cause_of(item, what, or_none(message.member_id), _instance(message), True)
        self._group(protocol, message.group_id).causes.sent(cause)

    def handle(self, exchange: Exchange) -> Iterator[GroupEvent]:
        """Handle an exchange; yield its events."""
        protocol = PROTOCOLS.get(exchange.main_row.api_key or 0)
        request, response = exchange.request, exchange.response
        if protocol is None or request is None or request.message is None:
            return
        message: Any = request.message
        group = self._group(protocol, message.group_id)
        if response is None or response.message is None:
            group.causes.settle(exchange)
            return
        reply: Any = response.message
        event = GroupEvent(
            exchange,
            response,
            protocol,
            message.group_id,
            EventType.FAILED,
            member_id=or_none(reply.member_id) or or_none(message.member_id),
            group_instance_id=_instance(message),
            generation=reply.member_epoch,
            assignor=or_none(getattr(message, "server_assignor", None)),
            client_id=exchange.main_row.client_id,
        )
        if reply.error_code:
            group.causes.rejected(exchange)
            if reply.error_code in REMOVED:
                group.ownership.leave(event.member_id or "")
            yield error_event(event._replace(generation=message.member_epoch), reply.error_code)
        elif message.member_epoch < 0:
            yield from self._leave(group, event, message.member_epoch)
        else:
            yield from self._released(group, event, message)
            yield from self._heartbeat(group, event, message, reply)

    def _group(self, protocol: Protocol, group_id: str) -> _Group:
        return self._groups.setdefault((protocol, group_id), _Group())

    def protocol_of(self, group_id: str) -> Protocol:
        """Return the protocol of a group: classic, unless heartbeats of another were seen."""
        seen = (p for p in PROTOCOLS.values() if (p, group_id) in self._groups)
        return next(seen, Protocol.CLASSIC)

    def _leave(self, group: _Group, event: GroupEvent, epoch: int) -> Iterator[GroupEvent]:
        group.at(event.member_id or "", None)
        group.causes.settle(event.exchange)
        group.ownership.leave(event.member_id or "")
        reason = "static member, may rejoin" if epoch == STATIC_LEAVE else None
        yield event._replace(type=EventType.LEFT, reason=reason)

    def _heartbeat(
        self, group: _Group, event: GroupEvent, request: Any, response: Any
    ) -> Iterator[GroupEvent]:
        member, epoch = event.member_id or "", response.member_epoch
        if not group.epoch and request.member_epoch == epoch:
            group.epoch = epoch  # the capture began later: nothing changed now
        if epoch > group.epoch:
            group.epoch = epoch
            if group.started is None:
                cause = group.causes.first()
                if cause is None:
                    group.started = event.exchange.main_row.time_ns
                    start = event._replace(row=event.exchange.main_row)
                    yield started_unseen(start)._replace(noticed_ns=event.row.time_ns)
                else:
                    group.started = cause.sent[0]
                    if cause.exchange.main_row.packet == event.exchange.main_row.packet:
                        cause = cause._replace(member_id=event.member_id)
                    yield started(cause, event)
            group.causes.ended(event.exchange.main_row.time_ns)
        else:
            group.causes.stable(event.exchange.main_row.time_ns)
        group.at(member, epoch)
        group.causes.settle(event.exchange)
        if request.member_epoch == 0:
            yield event._replace(type=EventType.JOINED, members=len(group.members))
        yield from self._assigned(group, event, response)
        if group.started is not None and group.is_settled:
            duration = event.row.time_ns - group.started
            group.started = None
            yield event.rebalance_ended(len(group.members), duration)

    def _assigned(self, group: _Group, event: GroupEvent, response: Any) -> Iterator[GroupEvent]:
        """Yield what a member is to release, and what it is assigned."""
        assigned = owned_in(event.protocol, response)
        if assigned is None:
            return
        member, now_ns = event.member_id or "", event.row.time_ns
        if event.protocol in UNITS:
            revoked = group.ownership.assign(member, assigned.units, now_ns)
            if revoked:
                yield self._described(
                    event._replace(type=EventType.REVOKED), grouped(revoked, UNITS[event.protocol])
                )
            waited = self._waited(group.ownership.handed_over(assigned.units), event)
            event = event._replace(reason=waited)
        yield self._described(event._replace(type=EventType.ASSIGNED), assigned.all)

    def _released(self, group: _Group, event: GroupEvent, request: Any) -> Iterator[GroupEvent]:
        """Yield what a request says that its member has released."""
        owned = owned_in(event.protocol, request)
        if owned is None or event.protocol not in UNITS:
            return
        member, sent = event.member_id or "", event.exchange.main_row
        name = sent.client_id or member
        released = group.ownership.confirm(member, owned.units, name, sent.time_ns)
        if released:
            one = event._replace(
                row=sent, type=EventType.RELEASED, generation=request.member_epoch,
                duration_ns=sent.time_ns - min(released.values()),
            )  # fmt: skip
            yield self._described(one, grouped(released, UNITS[event.protocol]))

    def _waited(self, handovers: Mapping[Unit, Handover], event: GroupEvent) -> str | None:
        """Say which members had to release first what a member is assigned, and how long ago."""
        texts = []
        unit = "task" if event.protocol is Protocol.STREAMS else "partition"
        for name in sorted({each.member for each in handovers.values()}):
            of_member = [one for one in handovers.values() if one.member == name]
            revoked = min(each.revoked_ns for each in of_member)
            released = max(each.released_ns for each in of_member)
            texts.append(
                f"{name} had to release {plural(len(of_member), unit)} of these, as of "
                f"{_seconds(event.row.time_ns - revoked)} earlier, and did after "
                f"{_seconds(released - revoked)}"
            )
        return "; ".join(texts) or None

    def _described(self, event: GroupEvent, owned: Mapping[Kind, list[int]]) -> GroupEvent:
        """Return an event with its partitions or tasks."""
        if event.protocol is Protocol.STREAMS:
            tasks = [Tasks(kind, str(of), partitions) for (kind, of), partitions in owned.items()]
            return event._replace(tasks=tasks)
        names = self._context.names
        partitions = [
            (names.topic(None, of if isinstance(of, bytes) else None), partitions)
            for (_, of), partitions in owned.items()
        ]
        return event._replace(partitions=partitions)


def _seconds(time_ns: int) -> str:
    return f"{time_ns / 1e9:.3f} s"


def _cause_of_heartbeat(request: Any) -> str | None:
    """Return why a heartbeat may make the broker raise the group epoch; None if it does not."""
    if request.member_epoch == 0:
        return "a member joins"
    if request.member_epoch < 0:
        return None if request.member_epoch == STATIC_LEAVE else "a member leaves"
    if any(getattr(request, name, None) is not None for name in SUBSCRIPTION):
        return "a member changes its subscription"
    return None


def _instance(request: Any) -> str | None:
    return or_none(
        getattr(request, "instance_id", None) or getattr(request, "group_instance_id", None)
    )

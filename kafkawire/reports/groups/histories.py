"""Collects the histories of the groups of a capture.

A client that sends heartbeats is a member, even if its join is not in the capture; a member is
identified by its own requests, not by those of others about it.

    group events --.
    heartbeats ----+--> histories          watermarks --> lag at commit
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Final

from kafkawire.capture.exchanges.exchanges import Ended, Exchange
from kafkawire.capture.rows import Located
from kafkawire.capture.tables.extraction.entities import ERROR_CODES, Entities
from kafkawire.capture.tables.extraction.group_event import (
    ASSIGNED,
    COMMITTED,
    FAILED,
    JOINED,
    REBALANCE_ENDED,
    REBALANCE_STARTED,
    GroupEvent,
    Protocol,
)
from kafkawire.capture.tables.group_events import APIS as GROUP_APIS
from kafkawire.capture.tables.group_events import CAUSES
from kafkawire.capture.tables.group_events import Groups as GroupEvents
from kafkawire.messages.api_key import ApiKey
from kafkawire.protocol.error_code import ErrorCode

from ..client import Software, software_of
from ..clients import host
from ..reading import Collector, Reading
from ..watermarks import Watermarks
from .absences import LEAVING, Absence, AbsenceKind
from .commits import Commits, Partition
from .deliveries import APIS as DELIVERIES
from .group import GroupHistory, Rebalance
from .member import Member
from .silences import ClientKey, Silence, Silences
from .timeline_events import NOT_OF_MEMBERS, timeline_event

HEARTBEATS: Final[dict[int, str]] = {
    ApiKey.HEARTBEAT: "generation_id",
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "member_epoch",
    ApiKey.SHARE_GROUP_HEARTBEAT: "member_epoch",
    ApiKey.STREAMS_GROUP_HEARTBEAT: "member_epoch",
}
"""Requests that members send periodically -> field of their generation or epoch."""

API_VERSIONS: Final = ApiKey.API_VERSIONS
REBALANCING: Final = [ErrorCode.REBALANCE_IN_PROGRESS]
"""The error codes of a response that only members get."""


ORDERS: Final[dict[str, Callable[[GroupHistory], tuple[int, ...]]]] = {
    "harm": lambda group: (-group.unavailable_ns, -len(group.rebalances), -(group.lag or 0)),
    "lag": lambda group: (-(group.lag or 0),),
    "rebalances": lambda group: (-len(group.rebalances),),
    "commits": lambda group: (-group.commits,),
    "group": lambda _: (),
}
"""Orders of groups; those that are equal are sorted by id."""


class Groups(Collector):
    """Collects the histories of the groups of a capture.

    watermarks, silences: collectors that handle everything before this one.
    """

    apis = frozenset({*GROUP_APIS, *HEARTBEATS, *DELIVERIES})
    row_apis = frozenset({*CAUSES, API_VERSIONS})
    entities = frozenset({ERROR_CODES})

    def __init__(self, reading: Reading, watermarks: Watermarks, silences: Silences) -> None:
        self._names = reading.context.names
        self._events = GroupEvents(reading.context)
        self._watermarks = watermarks
        self._software: dict[int, Software] = {}  # of open connections
        self._histories: dict[str, GroupHistory] = {}
        self._silences = silences
        silences.listeners.append(self._add_silence)
        self._members: defaultdict[ClientKey, list[tuple[GroupHistory, Member]]] = defaultdict(list)

    def in_order(self, order: str) -> list[GroupHistory]:
        """Return the groups in one of ORDERS."""
        return sorted(self.all, key=ORDERS[order])

    @property
    def all(self) -> list[GroupHistory]:
        """Return the groups by id."""
        return sorted(self._histories.values(), key=lambda history: history.group_id)

    def missing(self, group_ids: Iterable[str]) -> list[str]:
        """List the group ids that are not in the capture."""
        return [group_id for group_id in group_ids if group_id not in self._histories]

    def chosen(self, group_ids: Iterable[str]) -> list[GroupHistory]:
        """List the groups with these ids, by id."""
        return [self._histories[one] for one in sorted({*group_ids} & self._histories.keys())]

    def row(self, located: Located) -> None:
        """Handle the next row."""
        row = located.row
        if row.direction != "request":
            return
        if row.api_key in CAUSES:
            self._events.requested(located)
        elif row.message is not None:
            software = software_of(row.message)
            if software is not None and located.connection is not None:
                self._software[located.connection] = software

    def exchange(self, exchange: Exchange, entities: Entities) -> None:
        """Handle the next exchange."""
        api_key = exchange.main_row.api_key
        if api_key in DELIVERIES:
            self._deliver(exchange)
            return
        codes = entities.error_codes
        if api_key in HEARTBEATS and (not codes or list(codes) == REBALANCING):
            self._heartbeat(exchange, HEARTBEATS[api_key])
        for one in self._events.handle(exchange):
            self._add_event(one)

    def ended(self, connection: Ended) -> None:
        """Forget a connection when it ends."""
        self._software.pop(connection.connection, None)

    def _add_silence(self, silence: Silence) -> None:
        """Add the silence of a client to the groups that it is a member of."""
        client, from_ns, until_ns, limit_ns = silence
        for history, member in self._members.get(client, ()):
            if member.left_ns is None:
                who = member.member_id, member.client_id
                history.add_absence(Absence(AbsenceKind.SILENT, from_ns, until_ns, *who))
                others = (
                    self._silences.last_ns(one.client)
                    for one in history.members.values()
                    if one.left_ns is None and one.client != client
                )
                history.add_silent(max([from_ns, *others]), until_ns, limit_ns)

    def _heartbeat(self, exchange: Exchange, generation: str) -> None:
        """Note the member of an accepted heartbeat. generation: the field of its generation."""
        request, response = exchange.request, exchange.response
        if request is None or response is None:
            return
        message: Any = request.message
        if message is None or not message.member_id or getattr(message, generation) <= 0:
            return
        history = self._history(message.group_id)
        member = self._member(history, message.member_id, exchange)
        member.in_generation(
            getattr(message, generation), getattr(response.message, generation, None)
        )
        history.presence.seen(message.member_id)

    def _deliver(self, exchange: Exchange) -> None:
        """Count what a member of a share group acquired and acknowledged."""
        message: Any = exchange.request and exchange.request.message
        if message is not None and message.group_id and message.member_id:
            history = self._history(message.group_id)
            history.protocol = history.protocol or Protocol.SHARE
            member = self._member(history, message.member_id, exchange)
            member.deliveries.add(exchange, self._names)

    # -- events

    def _add_event(self, one: GroupEvent) -> None:
        history = self._history(one.group_id)
        if one.type is COMMITTED:
            self._add_commit(history, one)
            return
        if one.type is FAILED and one.error_code is not None:
            history.failures[one.error_code] += 1
        if one.type is not FAILED or one.offsets is None:
            history.protocol = one.protocol
        if one.assignor is not None:
            history.assignors.pop(one.assignor, None)
            history.assignors[one.assignor] = None  # the last one is in use
        self._update_member(history, one)
        if one.type is REBALANCE_STARTED:
            history.rebalances.append(Rebalance(one))
        elif one.type is REBALANCE_ENDED and history.open_rebalance is not None:
            history.end_rebalance(one)
        elif one.type is JOINED and history.rebalances:
            history.rebalances[-1].joined(one)
        history.max_members = max(history.max_members, one.members or 0)
        absence = history.presence.handle(one)
        if absence is not None:
            history.add_absence(absence)
        entry = timeline_event(one, history)
        if one.type is REBALANCE_STARTED:
            history.rebalances[-1].entry = entry
        history.add(entry)

    def _update_member(self, history: GroupHistory, one: GroupEvent) -> None:
        """Update the member of an event."""
        if one.member_id is None:
            return
        if one.type in LEAVING:  # an administrator or another member may have sent the request
            member = history.members.get(one.member_id)
            if member is not None:
                member.left_by, member.left_ns, member.reason = (
                    one.type,
                    one.row.time_ns,
                    one.reason,
                )
            return
        if one.type in NOT_OF_MEMBERS:
            return
        member = self._member(history, one.member_id, one.exchange)
        member.group_instance_id = one.group_instance_id or member.group_instance_id
        member.in_generation(one.generation)
        if one.type is JOINED:
            member.left_by = member.left_ns = member.reason = None
            if member.joined_ns is None:
                member.joined_ns = one.row.time_ns
        elif one.type is ASSIGNED:
            member.partitions, member.tasks = one.partitions, one.tasks

    def _add_commit(self, history: GroupHistory, one: GroupEvent) -> None:
        client_id = one.exchange.main_row.client_id
        if one.member_id is not None:
            member = self._member(history, one.member_id, one.exchange)
            member.commits += 1
            member.in_generation(one.generation)
        history.commits += 1
        partitions = [
            Partition(topic, partition, offset, self._watermarks.lag(topic, partition, offset))
            for topic, partition, offset, code in one.offsets or ()
            if not code
        ]
        for at in partitions:
            history.committed.add(at)
        if history.lag is not None:
            history.lags.add(one.row.time_ns, history.lag)
        who = one.member_id, client_id
        commits = history.committing.get(who)
        if commits is None:
            commits = history.committing[who] = Commits(*who, one.row.time_ns)
            history.add(commits)
        commits.add(one.row.time_ns, partitions)

    # -- members

    def _history(self, group_id: str) -> GroupHistory:
        history = self._histories.get(group_id)
        if history is None:
            history = self._histories[group_id] = GroupHistory(group_id)
        return history

    def _member(self, history: GroupHistory, member_id: str, exchange: Exchange) -> Member:
        member = history.members.get(member_id)
        if member is None:
            member = Member(member_id, exchange.main_row.client_id, host(exchange.client))
            history.members[member_id] = member
            self._members[member.client].append((history, member))
        if member.software is None:
            member.software = self._software.get(exchange.connection)
        return member

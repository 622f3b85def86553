"""The history of one group: rebalances, commits, absences, and a timeline of its events.

Commits of a member between two other events are one entry; of a long timeline the first and
the last entries are kept, and the omitted ones are counted.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.topic_ids import Topic
from kafkawire.capture.tables.extraction.group_event import EventType, GroupEvent, Protocol, Tasks
from kafkawire.protocol.error_code import ErrorCode

from ...display import time_text
from .absences import Absence, AbsenceKind, Presence, total_ns
from .commits import Commits, LagSeries, Offsets, offsets_json
from .deliveries import Deliveries
from .member import Member, assigned_json

MAX_ENTRIES: Final = 1000
"""Entries kept of the beginning of a timeline, and as many of its end."""

COOPERATIVE: Final = frozenset({"cooperative-sticky", "compatible", "sessioned", "stream"})
"""Assignors of classic groups that rebalance incrementally: members keep consuming (KIP-429,
KIP-415)."""


@dataclass(slots=True)
class TimelineEvent:
    """An event other than a commit.

    stops_consumption, stopped_ns: for the end of a rebalance, as in `Rebalance`.
    """

    time_ns: int
    event: EventType
    member_id: str | None
    group_instance_id: str | None
    client_id: str | None
    generation: int | None
    members: int | None
    assignor: str | None
    reason: str | None
    error_code: int | None
    duration_ns: int | None
    stops_consumption: bool | None
    stopped_ns: int | None
    partitions: list[tuple[Topic, list[int]]] | None
    tasks: list[Tasks] | None

    def json(self) -> dict[str, Any]:
        """Return the JSON form."""
        code = self.error_code
        return {
            "time": time_text(self.time_ns),
            "event": self.event.value,
            "member_id": self.member_id,
            "group_instance_id": self.group_instance_id,
            "client_id": self.client_id,
            "generation": self.generation,
            "members": self.members,
            "assignor": self.assignor,
            "reason": self.reason,
            "error": None if code is None else ErrorCode.name_of(code),
            "duration_ns": self.duration_ns,
            "stops_consumption": self.stops_consumption,
            "stopped_ns": self.stopped_ns,
            "partitions": None if self.partitions is None else assigned_json(self.partitions),
            "tasks": None if self.tasks is None else [each._asdict() for each in self.tasks],
        }


Entry: TypeAlias = TimelineEvent | Commits | Absence
"""An entry of a timeline."""


def request_of(exchange: Exchange) -> tuple[int, int, int | None]:
    """Return connection, packet and correlation id of the request of an exchange."""
    header = exchange.main_row
    return exchange.connection, header.packet, header.correlation_id


class Rebalance:
    """A rebalance.

    started_ns: when the request that caused it was sent; noticed_ns: when a member first learned of
    it. cause: the request that caused it. entry: in the timeline. member_id, client_id: who caused
    it, None if unknown; a member that joins gets its id with the response. stops_consumption:
    whether members revoke all partitions and stop consuming (eager rebalancing); None until it
    ends. stopped_ns: for how long, from when a member learned of it.
    """

    def __init__(self, started: GroupEvent) -> None:
        self.started_ns = started.row.time_ns
        self.noticed_ns = self.started_ns if started.noticed_ns is None else started.noticed_ns
        self.reason = started.reason
        self.cause = request_of(started.exchange)
        self.entry: TimelineEvent | None = None
        self.member_id = started.member_id
        self.client_id = started.client_id
        self.stopped_ns: int | None = None
        self.ended_ns: int | None = None
        self.duration_ns: int | None = None
        self.generation: int | None = None
        self.members: int | None = None
        self.stops_consumption: bool | None = None

    def end(self, ended: GroupEvent, assignor: str | None) -> None:
        """Handle the event that ends the rebalance; assignor: that of the group."""
        self.ended_ns = ended.row.time_ns
        self.duration_ns = ended.duration_ns
        self.generation = ended.generation
        self.members = ended.members
        self.stops_consumption = ended.protocol is Protocol.CLASSIC and assignor not in COOPERATIVE
        if self.stops_consumption:
            self.stopped_ns = max(0, ended.row.time_ns - self.noticed_ns)

    def joined(self, event: GroupEvent) -> None:
        """Name the member that caused the rebalance, if this is the response to its JoinGroup."""
        if self.member_id is None and request_of(event.exchange) == self.cause:
            self.member_id = event.member_id
            if self.entry is not None:
                self.entry.member_id = event.member_id

    def json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "started": time_text(self.started_ns),
            "reason": self.reason,
            "member_id": self.member_id,
            "client_id": self.client_id,
            "ended": None if self.ended_ns is None else time_text(self.ended_ns),
            "duration_ns": self.duration_ns,
            "stops_consumption": self.stops_consumption,
            "stopped_ns": self.stopped_ns,
            "generation": self.generation,
            "members": self.members,
        }


class GroupHistory:
    """The history of a group.

    protocol: None if only commits were seen. stopped_ns: how long consumption was stopped in all
    rebalances together. absences: finished ones. all_silent: from and until when all members
    present were silent.
    """

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.protocol: Protocol | None = None
        self.assignors: dict[str, None] = {}
        self.members: dict[str, Member] = {}
        self.max_members = self.events = self.commits = self.stopped_ns = 0
        self.rebalances: list[Rebalance] = []
        self.failures: Counter[int] = Counter()
        self.committed = Offsets()
        self.lags = LagSeries()
        self.committing: dict[tuple[str | None, str | None], Commits] = {}
        self.presence = Presence()
        self.absences: list[Absence] = []
        self.all_silent: list[tuple[int, int]] = []
        self._first: list[Entry] = []
        self._last: deque[Entry] = deque(maxlen=MAX_ENTRIES)

    # -- timeline

    def add(self, entry: Entry) -> None:
        """Add an entry to the timeline."""
        self.events += 1
        if len(self._first) < MAX_ENTRIES:
            self._first.append(entry)
        else:
            self._last.append(entry)
        if not isinstance(entry, Commits):
            self.committing.clear()

    def add_absence(self, absence: Absence) -> None:
        """Add a finished absence."""
        self.absences.append(absence)
        self.add(absence)

    def add_silent(self, from_ns: int, until_ns: int, limit_ns: int) -> None:
        """Note a time in which all members were silent, if it was longer than the limit."""
        if until_ns - from_ns > limit_ns:
            self.all_silent.append((from_ns, until_ns))

    @property
    def timeline(self) -> list[Entry]:
        """The kept entries, by time: the cause of a rebalance is found after later events."""
        return sorted([*self._first, *self._last], key=lambda entry: entry.time_ns)

    @property
    def omitted(self) -> int:
        """Number of entries dropped between the first and the last ones."""
        return self.events - len(self._first) - len(self._last)

    # -- summary

    @property
    def unavailable_ns(self) -> int:
        """How long nobody consumed: in rebalances, without members, with all members silent."""
        stops = [
            (one.noticed_ns, one.ended_ns)
            for one in self.rebalances
            if one.stops_consumption and one.ended_ns is not None
        ]
        return total_ns([*stops, *self._without_members, *self.all_silent])

    @property
    def _without_members(self) -> list[tuple[int, int]]:
        return [
            (one.time_ns, one.until_ns)
            for one in self.absences
            if one.kind is AbsenceKind.NO_MEMBERS
        ]

    @property
    def unavailable_parts(self) -> dict[str, int]:
        """What made the group unavailable, and for how long; parts may overlap."""
        parts = {
            "rebalancing": self.stopped_ns,
            "no members": total_ns(self._without_members),
            "all members silent": total_ns(self.all_silent),
        }
        return {what: time_ns for what, time_ns in parts.items() if time_ns}

    @property
    def open_rebalance(self) -> Rebalance | None:
        """The rebalance in progress, if any."""
        last = self.rebalances[-1] if self.rebalances else None
        return last if last is not None and last.ended_ns is None else None

    def end_rebalance(self, ended: GroupEvent) -> None:
        """Handle the event that ends the rebalance in progress."""
        last = self.rebalances[-1]
        last.end(ended, next(reversed(self.assignors), None))
        self.stopped_ns += last.stopped_ns or 0

    @property
    def generations(self) -> tuple[int, int] | None:
        """The first and the last generation (or epoch) seen."""
        seen = [
            generation
            for member in self.members.values()
            for generation in (member.first_generation, member.last_generation)
            if generation is not None
        ]
        return (min(seen), max(seen)) if seen else None

    @property
    def lag(self) -> int | None:
        """Total lag of all partitions, each at its last commit."""
        return self.committed.lag

    @property
    def deliveries(self) -> Deliveries | None:
        """What the members of a share group acquired and acknowledged; None for none."""
        members = [each.deliveries.total for each in self.members.values() if each.deliveries]
        if not members:
            return None
        total = Deliveries()
        for each in members:
            total += each
        return total

    def json(self) -> dict[str, Any]:
        """Return the JSON form of the summary."""
        return {
            "group_id": self.group_id,
            "protocol": None if self.protocol is None else self.protocol.value,
            "assignors": list(self.assignors),
            "members": [member.json() for member in self.members.values()],
            "max_members": self.max_members,
            "first_generation": None if self.generations is None else self.generations[0],
            "last_generation": None if self.generations is None else self.generations[1],
            "rebalances": [one.json() for one in self.rebalances],
            "stopped_ns": self.stopped_ns,
            "unavailable_ns": self.unavailable_ns,
            "absences": [one.json() for one in self.absences],
            "commits": self.commits,
            "lag": self.lag,
            "offsets": offsets_json(self.committed),
            "deliveries": None if self.deliveries is None else self.deliveries.json(),
            "errors": {ErrorCode.name_of(code): n for code, n in self.failures.most_common()},
        }

    def json_with_timeline(self) -> dict[str, Any]:
        """Return the JSON form of the summary and the timeline."""
        return {
            **self.json(),
            "timeline": [entry.json() for entry in self.timeline],
            "left_out": self.omitted,
        }

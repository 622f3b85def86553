"""Finds out when a group has no members, and when members are silent or out of their group.

What the capture does not show is not invented: a group is without members only if all those
that the leader or a request named have left, and until the next one joins.

    silent          a member sends nothing (see `silences`) and is in the group
    out_of_group    a client left or was removed, and joins again; others are in the group
    no_members      the last member left or was removed, until another joins
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kafkawire.capture.tables.extraction.group_event import (
    JOINED,
    REBALANCE_STARTED,
    EventType,
    GroupEvent,
    Protocol,
)

from ...display import time_text
from ..clients import host
from .silences import ClientKey

LEAVING: Final = frozenset({EventType.LEFT, EventType.REMOVED})
ENTERING: Final = frozenset({JOINED, REBALANCE_STARTED})
"""Events after which a group has members."""


class AbsenceKind(StrEnum):
    """Kinds of absences."""

    SILENT = "silent"
    """The member sent nothing."""
    OUT_OF_GROUP = "out_of_group"
    """The client had left the group or was removed, and others were in it."""
    NO_MEMBERS = "no_members"
    """The group had no members."""


@dataclass(frozen=True, slots=True)
class Absence:
    """A time in which a member, or all members of a group, were absent.

    time_ns: when it began. member_id, client_id: None if it is about the group.
    """

    kind: AbsenceKind
    time_ns: int
    until_ns: int
    member_id: str | None = None
    client_id: str | None = None

    @property
    def duration_ns(self) -> int:
        """How long it lasted."""
        return self.until_ns - self.time_ns

    def json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "time": time_text(self.time_ns),
            "event": self.kind.value,
            "member_id": self.member_id,
            "client_id": self.client_id,
            "until": time_text(self.until_ns),
            "duration_ns": self.duration_ns,
        }


class Presence:
    """The members that a group has as far as the capture shows.

    absences: finished ones of the group, and of clients that came back.
    """

    def __init__(self) -> None:
        self._members: set[str] = set()
        self._active: set[str] = set()  # members that sent a request
        self._empty_ns: int | None = None
        self._left_ns: dict[ClientKey, int] = {}  # of clients that left, and did not join again

    def seen(self, member_id: str) -> None:
        """Note a member whose request the coordinator accepted: the group was not empty."""
        self._members.add(member_id)
        self._active.add(member_id)
        self._empty_ns = None

    def handle(self, event: GroupEvent) -> Absence | None:
        """Handle an event of the group; return the absence that it ends."""
        if event.type in LEAVING:
            self._leave(event)
            return None
        if event.type not in ENTERING:
            return None
        now_ns, empty_ns = event.row.time_ns, self._empty_ns
        self._empty_ns = None
        left_ns = self._join(event) if event.type is JOINED else None
        if empty_ns is not None:
            self._left_ns.clear()
            if empty_ns < now_ns:
                return Absence(AbsenceKind.NO_MEMBERS, empty_ns, now_ns)
        elif left_ns is not None and left_ns < now_ns:
            who = event.member_id, event.client_id
            return Absence(AbsenceKind.OUT_OF_GROUP, left_ns, now_ns, *who)
        return None

    def _leave(self, event: GroupEvent) -> None:
        """Handle a member that left, or was removed."""
        was_there = event.member_id in self._members
        self._members.discard(event.member_id or "")
        self._active.discard(event.member_id or "")
        if was_there and not self._members:
            self._empty_ns = event.row.time_ns
        if event.exchange.main_row.client_id == event.client_id:  # not removed by another client
            self._left_ns.setdefault(client_of(event), event.row.time_ns)

    def _join(self, event: GroupEvent) -> int | None:
        """Handle a member that joined; return when its client left, if it is a new member."""
        member_id = event.member_id or ""
        left_ns = None if member_id in self._active else self._left_ns.pop(client_of(event), None)
        self._active.add(member_id)
        self._members.add(member_id)
        response: Any = None if event.exchange.response is None else event.exchange.response.message
        if event.protocol is Protocol.CLASSIC and response is not None:
            self._members |= {one.member_id for one in response.members} or {response.leader}
        return left_ns


def client_of(event: GroupEvent) -> ClientKey:
    """Return the client of an event."""
    return ClientKey(event.client_id, host(event.exchange.client))


def total_ns(intervals: Iterable[tuple[int, int]]) -> int:
    """Return how long intervals last together, each moment counted once."""
    total, covered_ns = 0, None
    for from_ns, until_ns in sorted(intervals):
        start_ns = from_ns if covered_ns is None else max(from_ns, covered_ns)
        total += max(0, until_ns - start_ns)
        covered_ns = max(until_ns, start_ns)
    return total

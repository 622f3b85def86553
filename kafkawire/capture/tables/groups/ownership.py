"""Tracks which partitions, or tasks, the members of a group own, and hand over to each other.

A member of a consumer group (KIP-848) or a Streams group (KIP-1071) gets what it has in a
response; what is missing there, the member releases first, and confirms that in its next request.
Only then is another member assigned it: that one has waited.

    response of A without p --> revoked --> request of A without p --> released --> response of B
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from ..extraction.group_event import Protocol

Unit: TypeAlias = tuple[bytes | str, int]
"""What one member owns at a time: topic id and partition, or subtopology id and partition."""
Kind: TypeAlias = tuple[str, bytes | str]
"""A type of tasks, "" for partitions, and the topic id or the subtopology id."""
PARTITIONS: Final = ""
ACTIVE: Final = "active"
TASK_FIELDS: Final = {ACTIVE: "active_tasks", "standby": "standby_tasks", "warmup": "warmup_tasks"}
"""Type of tasks -> the field of a StreamsGroupHeartbeat."""
UNITS: Final[Mapping[Protocol, str]] = {Protocol.CONSUMER: PARTITIONS, Protocol.STREAMS: ACTIVE}
"""Protocols in which one member has something at a time -> its type."""


class Owned(NamedTuple):
    """What a message says that a member owns."""

    all: Mapping[Kind, list[int]]

    @property
    def units(self) -> list[Unit]:
        """Those that no other member has at the same time."""
        exclusive = UNITS.values()
        return [
            (of, partition)
            for (type, of), partitions in self.all.items()
            if type in exclusive
            for partition in partitions
        ]


def owned_in(protocol: Protocol, message: Any) -> Owned | None:
    """Return what a heartbeat says that its member owns; None if nothing has changed."""
    if protocol is Protocol.STREAMS:
        if message.active_tasks is None:
            return None
        return Owned(
            {
                (type, each.subtopology_id): list(each.partitions)
                for type, field in TASK_FIELDS.items()
                for each in getattr(message, field) or ()
            }
        )
    holder = getattr(message, "assignment", message)  # of a response, or a request itself
    partitions = None if holder is None else getattr(holder, "topic_partitions", None)
    if partitions is None:
        return None
    return Owned({(PARTITIONS, each.topic_id): list(each.partitions) for each in partitions})


def grouped(units: Iterable[Unit], type: str) -> dict[Kind, list[int]]:
    """Group units by topic id or subtopology id."""
    groups: dict[Kind, list[int]] = {}
    for of, partition in sorted(units, key=str):
        groups.setdefault((type, of), []).append(partition)
    return groups


class Handover(NamedTuple):
    """How a member gave up something. member: its client id, or its member id."""

    member: str
    revoked_ns: int
    released_ns: int


class Ownership:
    """The owners in one group. Memory grows with members and what they own."""

    def __init__(self) -> None:
        self._owned: dict[str, set[Unit]] = {}
        self._revoked: dict[str, dict[Unit, int]] = {}
        self._released: dict[Unit, Handover] = {}

    def assign(self, member_id: str, units: Iterable[Unit], now_ns: int) -> set[Unit]:
        """Note what a response tells a member to own; return what it is to release."""
        assigned = set(units)
        owned = self._owned.get(member_id, set())
        self._owned[member_id] = assigned
        revoked = owned - assigned
        for unit in revoked:
            self._revoked.setdefault(member_id, {})[unit] = now_ns
        return revoked

    def confirm(
        self, member_id: str, units: Iterable[Unit], name: str, now_ns: int
    ) -> dict[Unit, int]:
        """Note what a request says that a member owns; return what it has released -> since when.

        name: the member's client id, or its member id.
        """
        revoked = self._revoked.pop(member_id, {})
        still = revoked.keys() & set(units)
        released = {unit: since for unit, since in revoked.items() if unit not in still}
        if still:
            self._revoked[member_id] = {unit: revoked[unit] for unit in still}
        for unit, since in released.items():
            self._released[unit] = Handover(name, since, now_ns)
        return released

    def leave(self, member_id: str) -> None:
        """Forget a member."""
        self._owned.pop(member_id, None)
        self._revoked.pop(member_id, None)

    def handed_over(self, units: Iterable[Unit]) -> dict[Unit, Handover]:
        """Return, and forget, how others gave up what a member is assigned now."""
        return {unit: self._released.pop(unit) for unit in units if unit in self._released}

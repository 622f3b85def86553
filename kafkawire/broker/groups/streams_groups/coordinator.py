"""Coordinates the Streams groups of one partition of `__consumer_offsets`.

Invariant: the changes of a group are in the log before any response that rests on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ....primitives import Structure
from ....protocol import ErrorCode
from ..consumer_groups.checks import Refusal
from ..consumer_groups.members import JOIN
from ..modern_groups import ModernGroups
from ..offsets import LogRecord
from .changes import Change
from .group import StreamsGroup
from .members import NEW_MEMBER, HeartbeatResult, StreamsHeartbeat
from .metadata import StreamsGroupConfig
from .records import decode, encode

E = ErrorCode
STANDBY: Final = "num.standby.replicas"
TAGS: Final = "rack.aware.assignment.tags"
DELAY: Final = "initial.rebalance.delay.ms"


class StreamsGroups(ModernGroups[StreamsGroup]):
    """The Streams groups by id."""

    of_broker = "group.streams."

    def config(self, group_id: str) -> StreamsGroupConfig:
        """Return the settings of a group: its own, else those of the broker."""
        own = self._metadata.group_configs(group_id)
        return StreamsGroupConfig(
            self.seconds(own, "session.timeout.ms"),
            self.seconds(own, "heartbeat.interval.ms"),
            self.assignment_interval(own),
            self._delay(own),
            self._standby_replicas(own),
            self._rack_tags(own),
            self._context.settings.number(f"{self.of_broker}max.size"),
        )

    def _delay(self, own: Mapping[str, str]) -> float:
        key = f"{self.of_broker}{DELAY}"
        if key not in self._context.settings.keys:
            return 0.0  # before Kafka 4.2
        value = own.get(f"streams.{DELAY}")
        return self._context.settings.seconds(key) if value is None else int(value) / 1000

    def _standby_replicas(self, own: Mapping[str, str]) -> int:
        settings = self._context.settings
        value = own.get(f"streams.{STANDBY}")
        if value is None:
            return settings.number(f"{self.of_broker}{STANDBY}")
        return min(int(value), settings.number(f"{self.of_broker}max.standby.replicas"))

    def _rack_tags(self, own: Mapping[str, str]) -> tuple[str, ...]:
        key = f"{self.of_broker}{TAGS}"
        if key not in self._context.settings.keys:
            return ()  # before Kafka 4.4
        value = own.get(f"streams.{TAGS}")
        if value is None:
            return self._context.settings.items(key)
        return tuple(part.strip() for part in value.split(",") if part.strip())

    def new(self, group_id: str) -> StreamsGroup:
        """Return a group without members, which is not among the groups yet."""
        return StreamsGroup(group_id)

    def heartbeat(self, request: StreamsHeartbeat, now: float) -> HeartbeatResult | Refusal:
        """Handle a heartbeat whose fields are valid; a member that joins may create its group."""
        group = self._groups.get(request.group_id)
        is_new = group is None
        if group is None:
            if not request.joins:
                kind = "Group" if request.member_epoch < JOIN else "Streams group"
                return Refusal(E.GROUP_ID_NOT_FOUND, f"{kind} {request.group_id} not found.")
            if not self._usage.admits_group():
                return Refusal(E.POLICY_VIOLATION, "Too many groups.")
            group = self.new(request.group_id)
        group.config = self.config(group.group_id)
        if not self._admits(group, request):
            return Refusal(E.GROUP_MAX_SIZE_REACHED, "Too many members, or too large ones.")
        result = group.handle(request, self.topics, now, self._context.wall_ms(now))
        if isinstance(result, Refusal):
            return result
        if is_new:
            group.forget_unlogged()
            result = result._replace(endpoint_epoch=group.endpoint_epoch)
        self._groups[request.group_id] = group
        self.log(group, now)
        return result

    def _admits(self, group: StreamsGroup, request: StreamsHeartbeat) -> bool:
        member = group.members.get(request.member_id)
        size = request.member(member or NEW_MEMBER).size - (0 if member is None else member.size)
        if group.topology is None and request.topology is not None:
            size += request.topology.size
        return self._usage.admits_members(member is None, size)

    def due(self, group_id: str, now: float) -> None:
        """Handle the expired deadlines of a group, if it is one of these."""
        group = self._groups.get(group_id)
        if group is not None:
            group.advance(now, self._context.wall_ms(now))
            self.log(group, now)

    # -- the log

    def records(self, group: StreamsGroup) -> list[LogRecord]:
        """Return the changes of a group that are not yet logged, as records."""
        changes: list[Change]
        changes, group.changes = group.changes, []
        return [record for each in changes for record in encode(group.group_id, each)]

    def decode(self, key: Structure, value: Structure | None) -> tuple[str, Change] | None:
        """Decode a record: the id of the group and the change; None for one of another type."""
        return decode(key, value)

    def is_deleted(self, group: StreamsGroup) -> bool:
        """Whether the records of a group end with its deletion: it has no topology then."""
        return group.topology is None and not group.members

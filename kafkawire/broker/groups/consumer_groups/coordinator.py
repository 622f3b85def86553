"""Coordinates the consumer groups of one partition of `__consumer_offsets`.

Invariant: the changes of a group are in the log before any response that rests on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from ....primitives import Structure
from ....protocol import ErrorCode
from ...context import Context
from ...events import GroupDue
from ...metadata_cache import MetadataCache
from ..offsets import LogRecord
from ..usage import Usage
from .assignors import ASSIGNORS
from .checks import Refusal
from .group import NO_SUBSCRIPTION, ConsumerGroup, HeartbeatResult
from .members import JOIN, HeartbeatRequest
from .metadata import GroupConfig
from .records import decode, encode
from .topics import Topic

E = ErrorCode
OF_BROKER: Final = "group.consumer."
INTERVAL: Final = "assignment.interval.ms"


class ClusterTopics:
    """The topics of the metadata."""

    def __init__(self, metadata: MetadataCache) -> None:
        self._metadata = metadata

    @property
    def version(self) -> int:
        return self._metadata.offset

    def find(self, name: str) -> Topic | None:
        """Find a topic."""
        topic = self._metadata.topics.get(name)
        return None if topic is None else Topic(topic.topic_id, len(topic.partitions))

    def names(self) -> Iterable[str]:
        """Return the names of all topics."""
        return (topic.name for topic in self._metadata.topics)


class ConsumerGroups:
    """The consumer groups by id. write: appends records to the partition."""

    def __init__(
        self,
        context: Context,
        metadata: MetadataCache,
        usage: Usage,
        index: int,
        write: Callable[[Iterable[LogRecord], float], None],
    ) -> None:
        self._context = context
        self._topics = ClusterTopics(metadata)
        self._metadata = metadata
        self._usage = usage
        self._index = index
        self._write = write
        self._groups: dict[str, ConsumerGroup] = {}

    def __iter__(self) -> Iterator[ConsumerGroup]:
        return iter(self._groups.values())

    def __contains__(self, group_id: object) -> bool:
        return group_id in self._groups

    def get(self, group_id: str) -> ConsumerGroup | None:
        """Find a group."""
        return self._groups.get(group_id)

    def config(self, group_id: str) -> GroupConfig:
        """Return the settings of a group: its own, else those of the broker."""
        settings = self._context.settings
        configured = settings.items("group.consumer.assignors")
        own = self._metadata.group_configs(group_id)
        return GroupConfig(
            self._seconds(own, "session.timeout.ms"),
            self._seconds(own, "heartbeat.interval.ms"),
            # before Kafka 4.3, each change is assigned at once
            self._seconds(own, INTERVAL) if f"{OF_BROKER}{INTERVAL}" in settings.keys else 0.0,
            settings.number("group.consumer.max.size"),
            tuple(name for name in configured if name in ASSIGNORS) or tuple(ASSIGNORS),
        )

    def _seconds(self, own: Mapping[str, str], key: str) -> float:
        """Return a value of a group in seconds, within the limits of the broker."""
        settings = self._context.settings
        value = own.get(f"consumer.{key}")
        if value is None:
            return settings.seconds(f"{OF_BROKER}{key}")
        least, most = (settings.number(f"{OF_BROKER}{bound}.{key}") for bound in ("min", "max"))
        return max(least, min(most, int(value))) / 1000

    def heartbeat(self, request: HeartbeatRequest, now: float) -> HeartbeatResult | Refusal:
        """Handle a heartbeat whose fields are valid; a member that joins may create its group."""
        group = self._groups.get(request.group_id)
        if group is None:
            if request.member_epoch != JOIN:
                message = f"Consumer group {request.group_id} not found."
                return Refusal(E.GROUP_ID_NOT_FOUND, message)
            if not self._usage.admits_group():
                return Refusal(E.POLICY_VIOLATION, "Too many groups.")
            group = ConsumerGroup(request.group_id)
        group.config = self.config(group.group_id)
        if not self._admits(group, request):
            return Refusal(E.GROUP_MAX_SIZE_REACHED, "Too many members, or too large ones.")
        result = group.handle(request, self._topics, now, self._context.wall_ms(now))
        if not isinstance(result, Refusal):
            self._groups[request.group_id] = group
            self._log(group, now)
        return result

    def _admits(self, group: ConsumerGroup, request: HeartbeatRequest) -> bool:
        known = group.subscriptions.get(request.member_id)
        before = known or NO_SUBSCRIPTION
        size = before.updated(request).size - (0 if known is None else before.size)
        return self._usage.admits_members(known is None, size)

    def due(self, group_id: str, now: float) -> None:
        """Handle the expired deadlines of a group, if it is one of these."""
        group = self._groups.get(group_id)
        if group is not None:
            group.advance(self._topics, now)
            self._log(group, now)

    def forget(self, group: ConsumerGroup, now: float) -> None:
        """Delete a group without members."""
        group.delete()
        self._log(group, now)
        self._remove(group)

    def _remove(self, group: ConsumerGroup) -> None:
        del self._groups[group.group_id]
        self._usage.forget(group)
        self._context.deadlines.cancel(GroupDue(self._index, group.group_id))

    def _log(self, group: ConsumerGroup, now: float) -> None:
        changes, group.changes = group.changes, []
        if changes:
            records = [record for each in changes for record in encode(group.group_id, each)]
            self._write(records, now)
        self._note(group)

    def _note(self, group: ConsumerGroup) -> None:
        self._usage.note(group)
        due = GroupDue(self._index, group.group_id)
        self._context.deadlines.set(due, group.next_deadline())

    # -- loading

    def replay(self, key: Structure, value: Structure | None) -> None:
        """Apply a record of the log, if it is one of consumer groups."""
        decoded = decode(key, value)
        if decoded is None:
            return
        group_id, change = decoded
        group = self._groups.get(group_id)
        if group is None and value is not None:
            group = self._groups[group_id] = ConsumerGroup(group_id)
        if group is not None:
            group.apply(change)

    def loaded(self, now: float) -> None:
        """Forget the groups that were deleted; the sessions of members begin."""
        for group in list(self._groups.values()):
            if not group.assignment_epoch and not group.subscriptions:
                del self._groups[group.group_id]
                continue
            group.config = self.config(group.group_id)
            group.loaded(now)
            self._note(group)

    def unload(self) -> None:
        """Forget all groups: they have another coordinator."""
        for group in list(self._groups.values()):
            self._remove(group)

"""Coordinates the share groups of one partition of `__consumer_offsets`.

Invariant: the changes of a group are in the log before any response that rests on them. The state
of its partitions is set up before they are assigned, and deleted before the group is. A
deletion that is not confirmed, e.g. as the group had another coordinator, is sent again with the
next one, as by Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ....primitives import Structure
from ....protocol import ErrorCode
from ....protocol.error_code import error_of
from ...context import Context
from ...metadata_cache import MetadataCache
from ..consumer_groups.checks import Refusal
from ..consumer_groups.group import HeartbeatResult
from ..consumer_groups.members import JOIN, Partitions, TopicPartition
from ..modern_groups import ModernGroups
from ..offsets import LogRecord
from ..usage import Usage
from .group import ShareGroup
from .members import Change, ShareHeartbeat
from .metadata import NO_SUBSCRIPTION, ShareGroupConfig
from .persister import Done, Persister, for_each
from .records import decode, encode

E = ErrorCode
OPEN: Final = -1
"""The start offset that is found when the partition is first read."""


class ShareGroups(ModernGroups[ShareGroup]):
    """The share groups by id."""

    of_broker = "group.share."

    def __init__(
        self,
        context: Context,
        metadata: MetadataCache,
        usage: Usage,
        persister: Persister,
        index: int,
        write: Callable[[Iterable[LogRecord], float], None],
    ) -> None:
        super().__init__(context, metadata, usage, index, write)
        self.persister = persister

    def new(self, group_id: str) -> ShareGroup:
        """Return a group without members, which is not among the groups yet."""
        return ShareGroup(group_id)

    def config(self, group_id: str) -> ShareGroupConfig:
        """Return the settings of a group: its own, else those of the broker."""
        settings = self._context.settings
        own = self._metadata.group_configs(group_id)
        return ShareGroupConfig(
            self.seconds(own, "session.timeout.ms"),
            self.seconds(own, "heartbeat.interval.ms"),
            self.assignment_interval(own),
            settings.number("group.share.max.size"),
        )

    def heartbeat(self, request: ShareHeartbeat, now: float) -> HeartbeatResult | Refusal:
        """Handle a heartbeat whose fields are valid; a member that joins may create its group."""
        group = self._groups.get(request.group_id)
        if group is None:
            if request.member_epoch != JOIN:
                return Refusal(E.GROUP_ID_NOT_FOUND, f"Share group {request.group_id} not found.")
            if not self._usage.admits_group():
                return Refusal(E.POLICY_VIOLATION, "Too many groups.")
            group = ShareGroup(request.group_id)
        group.config = self.config(group.group_id)
        if not self._admits(group, request):
            return Refusal(E.GROUP_MAX_SIZE_REACHED, "Too many members, or too large ones.")
        result = group.handle(request, self.topics, now, self._context.wall_ms(now))
        if not isinstance(result, Refusal):
            self._groups[request.group_id] = group
            self.log(group, now)
            self._initialize(group, group.uninitialized(self.topics), now)
        return result

    def _admits(self, group: ShareGroup, request: ShareHeartbeat) -> bool:
        subscription = group.subscriptions.get(request.member_id)
        before = subscription or NO_SUBSCRIPTION
        size = request.subscription(before).size - (0 if subscription is None else before.size)
        return self._usage.admits_members(subscription is None, size)

    def due(self, group_id: str, now: float) -> None:
        """Handle the expired deadlines of a group, if it is one of these."""
        group = self._groups.get(group_id)
        if group is not None:
            group.advance(self.topics, now)
            self.log(group, now)

    def _is_here(self, group: ShareGroup) -> bool:
        """Whether a group is still coordinated here, when a share coordinator has responded."""
        return self._groups.get(group.group_id) is group

    # -- the state of its partitions

    def _initialize(self, group: ShareGroup, partitions: Partitions, now: float) -> None:
        """Let the share coordinators set up the state of partitions."""
        if not partitions:
            return
        offsets = dict.fromkeys(sorted(partitions), OPEN)
        self.set_offsets(group, offsets, lambda _results, _now: None, now)

    def create(self, group_id: str, now: float) -> ShareGroup | None:
        """Create a group without members; None if there are too many groups."""
        if not self._usage.admits_group():
            return None
        group = self._groups[group_id] = ShareGroup(group_id)
        group.create(self.topics)
        self.log(group, now)
        return group

    def set_offsets(
        self, group: ShareGroup, offsets: Mapping[TopicPartition, int], done: Done, now: float
    ) -> None:
        """Set up the state of partitions with their start offsets."""
        group.initializing(frozenset(offsets))
        self.log(group, now)

        def finish(results: Mapping[TopicPartition, Any], now: float) -> None:
            if self._is_here(group):
                failed = {each for each, result in results.items() if result.error_code}
                group.initialized(results.keys(), failed)
                self.log(group, now)
            done(results, now)

        epoch = group.epoch
        for_each(
            offsets,
            lambda each, then: self.persister.initialize(
                group.group_id, each, epoch, offsets[each], then, now
            ),
            finish,
            now,
        )

    def delete_states(
        self, group: ShareGroup, topics: frozenset[bytes], done: Done, now: float
    ) -> None:
        """Delete the state of topics; `done` is called with the results of their partitions."""
        partitions = sorted(group.partitions_with_state(topics, self.topics))
        group.deleting(topics)
        self.log(group, now)

        def finish(results: Mapping[TopicPartition, Any], now: float) -> None:
            failed = {each[0] for each, result in results.items() if result.error_code}
            if self._is_here(group):
                group.deleted(topics - failed)
                self.log(group, now)
            done(results, now)

        for_each(
            partitions,
            lambda each, then: self.persister.delete(group.group_id, each, then, now),
            finish,
            now,
        )

    def summaries(
        self, group_id: str, partitions: Iterable[TopicPartition], done: Done, now: float
    ) -> None:
        """Read the start offsets of partitions."""
        for_each(
            partitions,
            lambda each, then: self.persister.summarize(group_id, each, then, now),
            done,
            now,
        )

    def delete(
        self, group: ShareGroup, done: Callable[[ErrorCode, float], None], now: float
    ) -> None:
        """Delete a group without members and the state of its partitions; `done` gets the error."""
        if group.population:
            done(E.NON_EMPTY_GROUP, now)
            return

        def finish(results: Mapping[TopicPartition, Any], now: float) -> None:
            errors = [each.error_code for each in results.values() if each.error_code]
            if self._is_here(group) and not errors:
                if group.population:
                    errors = [E.NON_EMPTY_GROUP]
                else:
                    self.forget(group, now)
            done(error_of(errors[0]) if errors else E.NONE, now)

        self.delete_states(group, group.topics_with_state, finish, now)

    def topics_deleted(self, topic_ids: frozenset[bytes], now: float) -> None:
        """Forget deleted topics, whose state the share coordinators delete by themselves."""
        for group in self._groups.values():
            group.topics_deleted(topic_ids & group.topics_with_state)
            self.log(group, now)

    # -- the log

    def records(self, group: ShareGroup) -> list[LogRecord]:
        """Return the changes of a group that are not yet logged, as records."""
        changes, group.changes = group.changes, []
        name_of = self._metadata.topic_name
        return [record for each in changes for record in encode(group.group_id, each, name_of)]

    def decode(self, key: Structure, value: Structure | None) -> tuple[str, Change] | None:
        """Decode a record: the id of the group and the change; None for one of another type."""
        return decode(key, value)

    def is_deleted(self, group: ShareGroup) -> bool:
        """Whether the records of a group end with its deletion."""
        return not group.assignment_epoch and not group.subscriptions

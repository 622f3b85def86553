"""Coordinates the groups of one partition of `__consumer_offsets`, and stores their offsets.

A change of a group or of its offsets is appended to the partition's log before any response,
and committed before the response is sent; a new coordinator knows only what it loads from that log.

    request ─▶ Group ─▶ effects ─▶ log records, responses to delayed requests
"""

# over 300 lines: one machine, for groups of all types and for their offsets

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from ...primitives import Message
from ...protocol import ErrorCode
from ...records import BatchBuilder
from ..context import Context
from ..events import GroupDue
from ..metadata_cache import MetadataCache
from ..network.request_channel import RequestChannel
from . import offsets
from .classic_groups.group import Group
from .classic_groups.states import Kind
from .consumer_groups.coordinator import ConsumerGroups
from .consumer_groups.group import ConsumerGroup
from .consumer_groups.migration import downgrade
from .coordinator_log import CoordinatorLog
from .deferred import DeferredResponses
from .loading import load
from .offsets import Committed, LogRecord, TopicPartition
from .pending_offsets import PendingOffsets
from .requests import Effect, GroupRequest, Response, Store
from .responses import message
from .share_groups.coordinator import ShareGroups
from .share_groups.persister import Persister
from .streams_groups.coordinator import StreamsGroups
from .usage import Usage

E = ErrorCode
CLIENT_CHARACTERS: Final = 200
"""Maximum length of the client id or group instance id at the start of a member id."""


class Coordinator:
    """The groups of one partition by id, and their committed offsets.

    groups: of the classic protocol. consumer_groups: of KIP-848. share_groups: of KIP-932.
    streams_groups: of KIP-1071. A group is of one type.
    index: of the partition. usage: of all groups of the cluster. deferred: the responses that wait
    until records are committed. pending: the offset after what it has appended, 0 if that is
    committed.
    """

    def __init__(
        self,
        context: Context,
        channel: RequestChannel,
        log: CoordinatorLog,
        metadata: MetadataCache,
        usage: Usage,
        deferred: DeferredResponses,
        persister: Persister,
        index: int,
    ) -> None:
        self.context = context
        self.channel = channel
        self.log = log
        self.usage = usage
        self.deferred = deferred
        self.index = index
        self.pending = 0
        self.groups: dict[str, Group] = {}
        self.offsets: defaultdict[str, dict[TopicPartition, Committed]] = defaultdict(dict)
        self.pending_offsets = PendingOffsets()
        self.consumer_groups = ConsumerGroups(
            context, metadata, usage, index, self._write, self._downgrade
        )
        self.share_groups = ShareGroups(context, metadata, usage, persister, index, self._write)
        self.streams_groups = StreamsGroups(context, metadata, usage, index, self._write)

    # -- groups

    def group(self, group_id: str, now: float) -> Group:
        """Find a group, or create it."""
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = self._new_group(group_id, now)
            self.usage.note(group)
        return group

    def _new_group(self, group_id: str, now: float) -> Group:
        settings, new_uuid = self.context.settings, self.context.new_uuid
        return Group(
            group_id,
            new_member_id=lambda client: f"{client[:CLIENT_CHARACTERS]}-{new_uuid().hex()}",
            initial_delay=settings.seconds("group.initial.rebalance.delay.ms"),
            max_size=settings.number("group.max.size"),
            now=now,
        )

    @property
    def modern_groups(self) -> tuple[ConsumerGroups, ShareGroups, StreamsGroups]:
        """The groups of all types but the classic one."""
        return self.consumer_groups, self.share_groups, self.streams_groups

    def has(self, group_id: str) -> bool:
        """Whether a group of any type has an id."""
        return group_id in self.groups or any(group_id in each for each in self.modern_groups)

    def may_create(self, group_id: str) -> bool:
        """Whether a group exists, or may be created."""
        return self.has(group_id) or self.usage.admits_group()

    def handle(self, group: Group, request: GroupRequest, now: float) -> None:
        """Handle a group request; the response is sent now or later."""
        refusal = self.usage.refusal(group, request)
        self.perform(group, [refusal] if refusal else group.handle(request, now), now)
        if group.unused and not self.offsets.get(group.group_id):
            self.groups.pop(group.group_id, None)  # a failed join leaves no group behind
            self.usage.forget(group)

    def due(self, group_id: str, now: float) -> None:
        """Handle the expired deadlines of a group."""
        group = self.groups.get(group_id)
        if group is not None:
            self.perform(group, group.advance(now), now)
        for groups in self.modern_groups:
            groups.due(group_id, now)

    def perform(self, group: Group, effects: Iterable[Effect], now: float) -> None:
        """Carry out the effects of a group."""
        for effect in effects:
            if isinstance(effect, Store):
                self._write([offsets.group_record(group, self.context.wall_ms(now))], now)
                continue
            self.respond(effect, now)
        self.usage.note(group)
        due = GroupDue(self.index, group.group_id)
        self.context.deadlines.set(due, group.next_deadline())

    def respond(self, effect: Response, now: float) -> None:
        """Send the response to a request of a member, if its connection is still there."""
        request = self.channel.pending.get(effect.reply_to)
        if request is not None:
            self._respond(effect.reply_to, message(effect, request), now)

    def _downgrade(self, group: ConsumerGroup, rebalances: bool, now: float) -> None:
        """Put a classic group in the place of a consumer group."""
        classic = self._new_group(group.group_id, now)
        effects = downgrade(group, classic, self.consumer_groups.topics, rebalances, now)
        group.dissolve()
        records = self.consumer_groups.records(group)
        records.append(offsets.group_record(classic, self.context.wall_ms(now)))
        self._write(records, now)
        self.groups[group.group_id] = classic
        self.perform(classic, effects, now)

    def remove(self, group: Group, now: float) -> None:
        """Delete a classic group, but not its committed offsets."""
        self._write([offsets.group_tombstone(group.group_id)], now)
        self.perform(group, group.end(E.GROUP_ID_NOT_FOUND), now)
        del self.groups[group.group_id]
        self.usage.forget(group)

    def delete(self, group_id: str, now: float) -> ErrorCode:
        """Delete a group without members, and its committed offsets."""
        modern = self.consumer_groups.get(group_id) or self.streams_groups.get(group_id)
        if modern is not None:
            if modern.population:
                return E.NON_EMPTY_GROUP
            self._forget_offsets(group_id, now)
            self.forget_modern(group_id, now)
            return E.NONE
        group = self.groups.get(group_id)
        if group is None:
            return E.GROUP_ID_NOT_FOUND
        error = group.admits(Kind.DELETE)
        if not error:
            self.forget(group, now)
        return error

    def forget_modern(self, group_id: str, now: float) -> None:
        """Delete a consumer or Streams group without members, but not its committed offsets."""
        consumer_group = self.consumer_groups.get(group_id)
        if consumer_group is not None:
            self.consumer_groups.forget(consumer_group, now)
        streams_group = self.streams_groups.get(group_id)
        if streams_group is not None:
            self.streams_groups.forget(streams_group, now)

    def forget(self, group: Group, now: float) -> None:
        """Delete a classic group, and its committed offsets."""
        self._forget_offsets(group.group_id, now)
        self.remove(group, now)

    def _forget_offsets(self, group_id: str, now: float) -> None:
        committed, pending = self.offsets.pop(group_id, {}), list(self.pending_offsets.of(group_id))
        self.usage.offsets -= len(committed)
        self.pending_offsets.supersede(group_id, pending)
        of_group = dict.fromkeys([*committed, *pending])
        deleted = [offsets.offset_record(group_id, of, None) for of in of_group]
        if deleted:
            self._write(deleted, now)

    # -- offsets

    def commit(
        self,
        group_id: str,
        committed: Mapping[TopicPartition, Committed],
        now: float,
        records: Iterable[LogRecord],
    ) -> None:
        """Commit offsets of a group. records: `committed` as log records (`offset_record`)."""
        if not self.has(group_id):
            self.group(group_id, now)
        if committed:
            self._write(records, now)
            self.pending_offsets.supersede(group_id, committed)
            self._take_over(group_id, committed)

    def _take_over(self, group_id: str, committed: Mapping[TopicPartition, Committed]) -> None:
        by_partition = self.offsets[group_id]
        self.usage.offsets -= len(by_partition)
        by_partition.update(committed)
        self.usage.offsets += len(by_partition)

    def commit_transactional(
        self,
        producer: tuple[int, int],
        group_id: str,
        committed: Mapping[TopicPartition, Committed],
        now: float,
    ) -> None:
        """Commit offsets in a transaction: they are pending until it ends.

        producer: its id and epoch.
        """
        if not self.has(group_id):
            self.group(group_id, now)
        builder = BatchBuilder(
            producer_id=producer[0], producer_epoch=producer[1], transactional=True
        )
        records = [offsets.offset_record(group_id, *each) for each in committed.items()]
        if records:
            self._write(records, now, builder)
            self.pending_offsets.add(producer[0], group_id, committed)

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """Commit or forget the offsets of a transaction, whose marker is in the log."""
        for group_id, pending in self.pending_offsets.end(producer_id).items():
            if committed:
                self._take_over(group_id, pending)

    def may_commit(self, group_id: str, partitions: Iterable[TopicPartition]) -> bool:
        """Whether a group may commit offsets of these partitions within the limits."""
        by_partition = self.offsets.get(group_id, {})
        more = sum(of not in by_partition for of in partitions)
        return self.usage.admits_offsets(more + self.pending_offsets.count)

    def delete_offsets(self, group_id: str, of: Iterable[TopicPartition], now: float) -> None:
        """Delete committed offsets of a group."""
        by_partition = self.offsets.get(group_id, {})
        deleted = [each for each in of if each in by_partition]
        if deleted:
            self._write([offsets.offset_record(group_id, each, None) for each in deleted], now)
            for each in deleted:
                del by_partition[each]
            self.usage.offsets -= len(deleted)

    def topics_deleted(self, topics: Collection[str], now: float) -> None:
        """Delete the committed offsets of deleted topics."""
        for group_id, by_partition in self.offsets.items():
            self.delete_offsets(group_id, [of for of in by_partition if of[0] in topics], now)

    # -- the log

    def _write(
        self, records: Iterable[LogRecord], now: float, builder: BatchBuilder | None = None
    ) -> None:
        builder = builder or BatchBuilder()
        for key, value in records:
            builder.append(key, value, self.context.wall_ms(now))
        self.appended(self.log.append(self.index, builder, now))

    def appended(self, offset: int) -> None:
        """Take note of the end of the log: responses wait until it is committed."""
        self.pending = offset if self.log.committed(self.index) < offset else 0

    def _respond(self, reply_to: int, response: Message, now: float) -> None:
        if self.pending:
            self.deferred.add(reply_to, response, {self.index: self.pending}, now)
        else:
            self.channel.respond(reply_to, response, now)

    def committed(self, offset: int, now: float) -> None:
        """Send the responses that waited for records before `offset`."""
        if self.pending <= offset:
            self.pending = 0
        self.deferred.committed(self.index, offset, now)

    def load(self, now: float) -> None:
        """Load groups and offsets from the log."""
        load(self, now)

    def unload(self, error: ErrorCode, now: float) -> None:
        """Unload all groups; their delayed requests fail with an error."""
        self.pending = 0
        self.deferred.fail(self.index, error, now)
        for group in self.groups.values():
            self.perform(group, group.end(error), now)
            self.usage.forget(group)
        self.groups.clear()
        for groups in self.modern_groups:
            groups.unload()
        self.usage.offsets -= sum(map(len, self.offsets.values()))
        self.offsets.clear()
        self.pending_offsets = PendingOffsets()

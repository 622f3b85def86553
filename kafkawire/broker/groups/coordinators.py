"""Maps groups to partitions of `__consumer_offsets` and their coordinators.

The coordinator of a group is the leader of the partition given by Java's hash of the group id,
as in Kafka. When the leader changes, the new coordinator loads the partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from ...primitives import Message
from ...protocol import ErrorCode
from ..context import Context
from ..events import GroupDue, OffsetsDue, OffsetsLoaded
from ..metadata_cache import MetadataCache
from ..network.request_channel import RequestChannel
from ..request import DELAYED, Outcome, Request
from ..topics import NO_LEADER
from .coordinator_log import CoordinatorLog
from .java_collections import java_hash

if TYPE_CHECKING:
    from .coordinator import Coordinator
    from .deferred import DeferredResponses
    from .share_groups.persister import Persister
    from .usage import Usage

M = TypeVar("M", bound=Message)


def partition_for(group_id: str, partitions: int) -> int:
    """Return the partition of a group."""
    number = java_hash(group_id)
    return (0 if number == -0x80000000 else abs(number)) % partitions


class Coordinators:
    """The coordinators of a broker, by partition."""

    def __init__(
        self,
        node_id: int,
        context: Context,
        channel: RequestChannel,
        log: CoordinatorLog,
        metadata: MetadataCache,
        persister: Persister,
    ) -> None:
        self._node_id = node_id
        self._context = context
        self._metadata = metadata
        self._channel = channel
        self._log = log
        self._persister = persister
        self._by_partition: dict[int, Coordinator] = {}
        self._unavailable: dict[int, ErrorCode] = {}
        self._expiration_started = False
        self._usage: Usage | None = None
        self._deferred: DeferredResponses | None = None

    @property
    def usage(self) -> Usage:
        """The resource usage of all groups."""
        if self._usage is None:
            from .usage import Usage  # imported late, as coordinators below

            self._usage = Usage(self._context.bounds)
        return self._usage

    @property
    def deferred(self) -> DeferredResponses:
        """The responses that wait until records are committed."""
        if self._deferred is None:
            from .deferred import DeferredResponses

            self._deferred = DeferredResponses(self._context, self._channel)
        return self._deferred

    def partition_of(self, group_id: str) -> int:
        """Return the partition of a group."""
        return partition_for(group_id, self._log.partition_count)

    def coordinator(self, group_id: str) -> Coordinator | ErrorCode:
        """Return the coordinator of a group, if this broker is its coordinator."""
        if group_id == "":
            return ErrorCode.INVALID_GROUP_ID
        if not self._log.partition_count:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        index = self.partition_of(group_id)
        leader = self._log.leader(index)
        if leader == NO_LEADER:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return self.of(index) if leader == self._node_id else ErrorCode.NOT_COORDINATOR

    def of(self, index: int) -> Coordinator | ErrorCode:
        """Return a partition's coordinator, or an error while it is loading, or lost."""
        return self._unavailable.get(index) or self._of(index)

    def _of(self, index: int) -> Coordinator:
        coordinator = self._by_partition.get(index)
        if coordinator is None:
            # imported late: a cluster without groups starts faster
            from .coordinator import Coordinator

            coordinator = self._by_partition[index] = Coordinator(
                self._context,
                self._channel,
                self._log,
                self._metadata,
                self.usage,
                self.deferred,
                self._persister,
                index,
            )
        return coordinator

    def leader_changed(self, index: int, led: bool, now: float) -> None:
        """Unload the old coordinator of a partition, and load the new one if there is one here."""
        self.unload(index, ErrorCode.NOT_COORDINATOR, now)
        if not led:
            return
        if self._context.load_seconds <= 0:
            self.load(index, now)
        else:
            self._unavailable[index] = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            self._context.deadlines.set(OffsetsLoaded(index), now + self._context.load_seconds)

    def load(self, index: int, now: float) -> None:
        """Load the coordinator of a partition; from now on it serves requests."""
        self._unavailable.pop(index, None)
        self._of(index).load(now)

    def fail(self, index: int, now: float) -> None:
        """Unload the coordinator of a partition whose log is lost, until it is loaded again."""
        self.unload(index, ErrorCode.NOT_COORDINATOR, now)
        self._unavailable[index] = ErrorCode.NOT_COORDINATOR

    def unload(self, index: int, error: ErrorCode, now: float) -> None:
        """Unload the coordinator of a partition; its delayed requests fail."""
        self._unavailable.pop(index, None)
        self._context.deadlines.cancel(OffsetsLoaded(index))
        old = self._by_partition.pop(index, None)
        if old is not None:
            old.unload(error, now)

    def committed(self, index: int, offset: int, now: float) -> None:
        """Send the responses that waited for the high watermark of a partition."""
        coordinator = self._by_partition.get(index)
        if coordinator is not None:
            coordinator.committed(offset, now)

    def end_transaction(self, index: int, producer_id: int, committed: bool, end: int) -> None:
        """Let a coordinator commit or forget the offsets of a transaction.

        end: the offset after the marker in its partition.
        """
        coordinator = self._by_partition.get(index)
        if coordinator is not None:
            coordinator.end_transaction(producer_id, committed)
            coordinator.appended(end)

    def settle(
        self, request: Request, response: M, coordinators: Iterable[Coordinator], now: float
    ) -> M | Outcome:
        """Return a response, or defer it until what the coordinators have appended is committed."""
        offsets = {each.index: each.pending for each in coordinators if each.pending}
        if not offsets:
            return response
        self.deferred.add(request.reply_to, response, offsets, now)
        return DELAYED

    def due(self, due: GroupDue, now: float) -> None:
        """Handle the expired deadlines of a group."""
        coordinator = self._by_partition.get(due.partition)
        if coordinator is not None:
            coordinator.due(due.group_id, now)

    def start_expiration(self, now: float) -> None:
        """Start the periodic expiration of offsets."""
        if not self._expiration_started:
            self._expiration_started = True
            self._schedule_expiration(now)

    def expire_offsets(self, now: float) -> None:
        """Delete expired offsets, and schedule the next check."""
        from .expiration import expire  # imported late, as coordinators above

        for coordinator in list(self._by_partition.values()):
            expire(coordinator, now)
        self._schedule_expiration(now)

    def _schedule_expiration(self, now: float) -> None:
        interval = self._context.settings.seconds("offsets.retention.check.interval.ms")
        self._context.deadlines.set(OffsetsDue(), now + interval)

    def topics_deleted(self, topics: Mapping[bytes, str], now: float) -> None:
        """Delete the committed offsets and states of deleted topics, in one pass.

        topics: the ids and names of these.
        """
        for coordinator in list(self._by_partition.values()) if topics else ():
            coordinator.topics_deleted(set(topics.values()), now)
            coordinator.share_groups.topics_deleted(frozenset(topics), now)

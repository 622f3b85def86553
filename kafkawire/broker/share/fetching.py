"""Fetches records for the members of share groups, at once or when some are available.

Invariant: a request gets its response once: when records were acquired or an error was met, or when
its time is over. Records that it acquired are in its response.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...messages.share_fetch_response import AcquiredRecords, PartitionData
from ...metadata import TopicIdPartition
from ...protocol import ErrorCode
from ...replication import LogOffline, Partition
from ..context import Context
from ..events import ShareFetchExpired
from ..share_coordinator.state import ShareKey
from .acquiring import Wanted
from .config import ShareConfig
from .log_reading import read, visible_end
from .partition import SharePartition
from .partitions import SharePartitions
from .sessions import Member, ShareSession

E = ErrorCode
Data = dict[TopicIdPartition, PartitionData]
Then = Callable[[Data, float], None]
"""Called with what a request gets, by partition."""


class Amount(NamedTuple):
    """How much a request wants. max_wait: in seconds."""

    max_wait: float
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    strict: bool


@dataclass(slots=True)
class Waiting:
    """A request. number: its `reply_to`. unreadable: partitions of which it gets no records."""

    number: int
    session: ShareSession
    amount: Amount
    then: Then
    keys: list[ShareKey] = field(default_factory=list)
    unreadable: frozenset[TopicIdPartition] = frozenset()

    @property
    def member(self) -> Member:
        """Who fetches."""
        return self.session.member


class Ready(NamedTuple):
    """A share partition of which records may be acquired."""

    key: TopicIdPartition
    share: SharePartition
    replica: Partition


class ShareFetches:
    """The requests of a broker."""

    def __init__(self, context: Context, partitions: SharePartitions) -> None:
        self._context = context
        self._partitions = partitions
        self._waiting: dict[int, Waiting] = {}
        self._by_key: dict[ShareKey, dict[int, None]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    # -- requests

    def fetch(self, waiting: Waiting, now: float) -> None:
        """Acquire records; wait for some if there are none."""
        data = self._attempt(waiting, waiting.amount.max_wait <= 0, now)
        if data is not None:
            waiting.then(data, now)
            return
        self._waiting[waiting.number] = waiting
        waiting.keys = [_key(waiting.member, each) for each in waiting.session.partitions]
        for key in waiting.keys:
            self._by_key.setdefault(key, {})[waiting.number] = None
        due = ShareFetchExpired(waiting.number)
        self._context.deadlines.set(due, now + waiting.amount.max_wait)

    def check(self, key: ShareKey, now: float) -> None:
        """Go on with the requests that wait for a share partition: something has changed."""
        for number in list(self._by_key.get(key, ())):
            waiting = self._waiting.get(number)
            data = None if waiting is None else self._attempt(waiting, False, now)
            if waiting is not None and data is not None:
                self._remove(waiting)
                waiting.then(data, now)

    def expire(self, due: ShareFetchExpired, now: float) -> None:
        """Respond to a request whose time is over."""
        waiting = self._waiting[due.reply_to]
        data = self._attempt(waiting, True, now)
        self._remove(waiting)
        waiting.then(data or {}, now)

    def close(self, session: ShareSession, now: float) -> None:
        """Respond to the requests of a session that ends; they acquire nothing any more."""
        for waiting in [each for each in self._waiting.values() if each.session is session]:
            self._remove(waiting)
            waiting.then({}, now)

    def _remove(self, waiting: Waiting) -> None:
        if self._waiting.pop(waiting.number, None) is None:
            return
        self._context.deadlines.cancel(ShareFetchExpired(waiting.number))
        for key in waiting.keys:
            numbers = self._by_key[key]
            del numbers[waiting.number]
            if not numbers:
                del self._by_key[key]

    # -- acquiring

    def _attempt(self, waiting: Waiting, is_last: bool, now: float) -> Data | None:
        """Acquire records; return None if the request waits on. is_last: it does not wait."""
        data: Data = {}
        ready: list[Ready] = []
        for key in waiting.session.in_turn():
            if key in waiting.unreadable:
                continue
            current = self._partitions.find(_key(waiting.member, key), now)
            if isinstance(current, ErrorCode):
                data[key] = failed(key, current)
            elif current is not None:
                share, replica = current
                share.log_starts_at(replica.log.log_start_offset)
                if share.can_acquire:
                    ready.append(Ready(key, share, replica))
        config = self._partitions.config(waiting.member.group_id)
        enough = max(1, waiting.amount.min_bytes)
        if data or is_last or self._available(ready, config) >= enough:
            self._acquire(waiting, ready, config, data, now)
        return data if data or is_last else None

    def _available(self, ready: Sequence[Ready], config: ShareConfig) -> int:
        """Return how many bytes there are to read."""
        total = 0
        for each in ready:
            log, offset = each.replica.log, each.share.next_fetch_offset()
            end = visible_end(log, config.read_committed)
            total += log.size_between(offset, end) if offset < end else 0
        return total

    def _acquire(
        self,
        waiting: Waiting,
        ready: Sequence[Ready],
        config: ShareConfig,
        data: Data,
        now: float,
    ) -> None:
        """Acquire records of each share partition, in turn, until there are enough."""
        amount = waiting.amount
        left = amount.max_records
        for each in ready:
            if left <= 0:
                break
            wanted = Wanted(waiting.member.member_id, left, amount.batch_size, amount.strict)
            most_bytes = max(1, amount.max_bytes // len(ready))
            try:
                delivered = self._acquire_one(each, wanted, most_bytes, config, now)
            except LogOffline:
                delivered = failed(each.key, E.KAFKA_STORAGE_ERROR)
            if delivered is not None:
                data[each.key] = delivered
                left -= sum(
                    acquired.last_offset - acquired.first_offset + 1
                    for acquired in delivered.acquired_records
                )
            self._partitions.acquired(_key(waiting.member, each.key))

    def _acquire_one(
        self, ready: Ready, wanted: Wanted, most_bytes: int, config: ShareConfig, now: float
    ) -> PartitionData | None:
        share, offset = ready.share, ready.share.next_fetch_offset()
        log_read = read(ready.replica, offset, most_bytes, config.read_committed)
        if not log_read.batches:
            return None
        acquired = share.acquire(wanted, offset, log_read.ranges, now)
        acquired = share.remove(acquired, log_read.aborted)
        if not acquired:
            return None
        return PartitionData(
            partition_index=ready.key.partition,
            records=log_read.records(acquired),
            acquired_records=[
                AcquiredRecords(
                    first_offset=each.first, last_offset=each.last, delivery_count=each.deliveries
                )
                for each in acquired
            ],
        )


def _key(member: Member, key: TopicIdPartition) -> ShareKey:
    return ShareKey(member.group_id, key.topic_id, key.partition)


def failed(key: TopicIdPartition, error: ErrorCode) -> PartitionData:
    """Return the response of a partition with an error."""
    return PartitionData(
        partition_index=key.partition, error_code=error, error_message=error.name, records=b""
    )

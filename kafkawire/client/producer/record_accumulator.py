"""Appends records to batches, or blocks them until they fit.

Memory is bounded: a record without room, or of an unknown topic, is blocked, in order, until
there is room and metadata, or max.block.ms has passed.

    Send ─▶ too large? ─▶ topic known? ─▶ partition ─▶ room? ─▶ open batch
               │ Failed       │ Blocked                 │ Blocked
"""

# over 300 lines: one state, open batches and blocked records

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from typing import Final, NamedTuple, cast

from ...errors import counted
from ...protocol.error_code import ErrorCode
from ..cluster import ClusterView, Partition, Topic
from ..network.backoff import Rng
from ..network.metadata import with_cause
from ..requests import Reason, error_of
from .batch import Batch
from .checking import is_plain
from .configuration import ProducerSettings
from .events import Appended, Blocked, Failed, Failure, ProducerEffect, Send
from .murmur2 import partition_of_key
from .partition_queue import PartitionQueue
from .record_failures import failed, fatal, unexpected
from .sticky import Sticky

RECORD_OVERHEAD: Final = 36
"""Maximum bytes of lengths, deltas and attributes of a record."""
HEADER_OVERHEAD: Final = 10
BATCH_OVERHEAD: Final = 61
BYTES_PER_CHARACTER: Final = 4

TopicPartition = tuple[str, int]


class BlockedRecord(NamedTuple):
    """A record that waits until its deadline; arrival: its position among all blocked records."""

    record: Send
    size: int
    deadline: float
    arrival: int


class RecordAccumulator:
    """The batches of all partitions, and the blocked records.

    view: the cluster. queues: all partitions that have or had batches. busy: those with unresolved
    batches, by the time of their first. exhausted: whether buffer.memory is full. closed: whether
    no more records are accepted.
    """

    def __init__(self, settings: ProducerSettings, view: ClusterView, rng: Rng) -> None:
        self.queues: dict[TopicPartition, PartitionQueue] = {}
        self.busy: dict[TopicPartition, PartitionQueue] = {}
        self.used = 0
        self.topics: set[str] = set()
        self.exhausted = False
        self.closed = False
        self._settings = settings
        self._max_record_bytes = min(settings.max_request_size, settings.buffer_memory)
        self._batch_size = settings.batch_size
        self._ignore_keys = settings.ignore_keys
        self._most_joined = self._max_record_bytes - BATCH_OVERHEAD
        self._most_used = settings.buffer_memory - BATCH_OVERHEAD
        self._view = view
        self._rng = rng
        self._last = -1
        self.last_arrival = -1
        self._blocked: dict[str, deque[BlockedRecord]] = {}
        self._sticky: dict[str, Sticky] = {}

    @property
    def last_number(self) -> int:
        """The number of the newest batch, -1 for none."""
        return self._last

    @property
    def waiting(self) -> bool:
        """Whether a record is blocked."""
        return bool(self._blocked)

    def parked_since(self, arrival: int) -> bool:
        """Whether a record is still blocked that arrived as the `arrival`th or earlier."""
        return any(blocked[0].arrival <= arrival for blocked in self._blocked.values())

    def take(self, record: Send, now: float) -> list[ProducerEffect]:
        """Append a record, block it, or fail one that is too large."""
        size = size_of(record)
        most = self._max_record_bytes
        if size + BATCH_OVERHEAD > most:
            detail = f"record of up to {size} bytes; max.request.size and buffer.memory allow"
            detail = f"{detail} {most - BATCH_OVERHEAD}"
            return [failed(record, Failure(ErrorCode.MESSAGE_TOO_LARGE, None, detail))]
        if record.topic not in self._blocked and self._append_to_batch(record, size, now):
            return []
        self.last_arrival += 1
        blocked = BlockedRecord(record, size, now + self._settings.max_block_s, self.last_arrival)
        self._blocked.setdefault(record.topic, deque()).append(blocked)
        self.topics.add(record.topic)
        return [Blocked(record.token)]

    def join(
        self,
        token: object,
        topic: object,
        partition: object,
        key: object,
        value: object,
        timestamp: object,
    ) -> bool:
        """Append a record without headers to the open batch of its partition, if it has room.

        Does nothing and returns False for every other record, valid or not: it takes the long way
        of `Send`.
        """
        if self.closed or not is_plain(topic, partition, key, value, timestamp):
            return False
        name = cast(str, topic)
        metadata = self._view.topics.get(name)
        if metadata is None or name in self._blocked:
            return False
        return self._join(
            token,
            name,
            metadata.partitions,
            cast(int | None, partition),
            cast(bytes | None, key),
            cast(bytes | None, value),
            cast(int, timestamp),
        )

    def _join(
        self,
        token: Hashable,
        topic: str,
        partitions: Mapping[int, Partition],
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
    ) -> bool:
        size = RECORD_OVERHEAD + (0 if value is None else len(value))
        if key is not None:
            size += len(key)
        sticky: Sticky | None = None
        if partition is None and (key is None or self._ignore_keys):
            sticky = self._sticky.get(topic)
            if sticky is None:
                return False
            partition = sticky.partition
        elif partition is None and key is not None and partitions:
            partition = partition_of_key(key, len(partitions))
        queue = self.busy.get((topic, partition))  # type: ignore[arg-type]  # None: not there
        batch = None if queue is None else queue.last
        if batch is None or batch.closed or partition not in partitions:
            return False
        before = batch.builder.size
        if (
            before + size > self._batch_size
            or size > self._most_joined
            or self.used + size > self._most_used
            or not (sticky is None or sticky.stays(partitions, size))
        ):
            return False
        batch.append(token, key, value, timestamp, ())
        self.used += batch.builder.size - before
        return True

    def retry(self, now: float) -> Iterator[Appended | Failed]:
        """Append blocked records that fit now."""
        self.exhausted = False
        for topic, blocked in list(self._blocked.items()):
            problem = fatal(self._view.topics.get(topic))
            while blocked:
                if problem is not None:
                    yield failed(blocked.popleft().record, problem)
                    continue
                try:
                    appended = self._append_to_batch(blocked[0].record, blocked[0].size, now)
                except Exception as error:  # noqa: BLE001 - fails this record only
                    yield failed(blocked.popleft().record, unexpected(error))
                    continue
                if not appended:
                    break
                yield Appended(blocked.popleft().record.token)
            if not blocked:
                del self._blocked[topic]

    def parked_tokens(self) -> Iterator[Hashable]:
        """Iterate over the tokens of blocked records."""
        for blocked in self._blocked.values():
            for each in blocked:
                yield each.record.token

    def cancel(self, token: Hashable) -> None:
        """Drop a blocked record."""
        for topic, blocked in list(self._blocked.items()):
            self._blocked[topic] = deque(each for each in blocked if each.record.token != token)
            if not self._blocked[topic]:
                del self._blocked[topic]

    def fail_parked(self, failure: Failure) -> Iterator[Failed]:
        """Fail all blocked records."""
        queues, self._blocked = self._blocked, {}
        for blocked in queues.values():
            for each in blocked:
                yield failed(each.record, failure)

    def next_deadline(self) -> float | None:
        return min((blocked[0].deadline for blocked in self._blocked.values()), default=None)

    def advance(self, now: float) -> Iterator[Failed]:
        """Fail records that were blocked for too long."""
        for topic, blocked in list(self._blocked.items()):
            while blocked and blocked[0].deadline <= now:
                record = blocked.popleft().record
                yield failed(record, self._too_long(topic, record.partition))
            if not blocked:
                del self._blocked[topic]

    def unknown_topics(self) -> frozenset[str]:
        """Return the topics that blocked records wait for."""
        return frozenset(topic for topic in self._blocked if not self._known(topic))

    def _too_long(self, name: str, partition: int | None) -> Failure:
        topic = self._view.topics.get(name)
        if topic is not None and topic.error:
            return Failure(error_of(topic.error), None, f"topic {name}, within max.block.ms")
        if topic is None or not topic.partitions:
            detail = with_cause(f"unknown topic {name} within max.block.ms", self._view.last_error)
            return Failure(ErrorCode.NONE, Reason.TIMED_OUT, detail)
        detail = "buffer.memory is full"
        if partition is not None and partition not in topic.partitions:
            detail = (
                f"no partition {partition}; it has {counted(len(topic.partitions), 'partition')}"
            )
        return Failure(
            ErrorCode.NONE, Reason.TIMED_OUT, f"topic {name}: {detail}, within max.block.ms"
        )

    def _known(self, name: str) -> bool:
        topic = self._view.topics.get(name)
        return topic is not None and bool(topic.partitions)

    def _append_to_batch(self, record: Send, size: int, now: float) -> bool:
        topic = self._view.topics.get(record.topic)
        if topic is None or not topic.partitions:
            return False
        if self.used + size + BATCH_OVERHEAD > self._settings.buffer_memory:
            self.exhausted = True
            return False
        partition = record.partition
        if partition is None:
            if record.key is not None and not self._settings.ignore_keys:
                partition = partition_of_key(record.key, len(topic.partitions))
            else:
                partition = self._sticky_partition(topic, size)
        elif partition not in topic.partitions:
            return False
        self._append(record, partition, size, now)
        return True

    def _sticky_partition(self, topic: Topic, size: int) -> int:
        name = topic.name
        sticky = self._sticky.get(name)
        if sticky is None:
            stay, adaptive = max(self._settings.batch_size, 1), self._settings.adaptive
            sticky = self._sticky[name] = Sticky(stay, adaptive, self._rng)
        before = sticky.partition
        if before is not None and sticky.stays(topic.partitions, size):
            return before
        chosen = sticky.choose(topic, size, self._queue_length)
        if chosen != before and before is not None:
            previous = self.queues.get((name, before))
            if previous is not None and previous.open is not None:
                previous.open.closed = True  # no more records: it need not linger
        return chosen

    def _queue_length(self, topic: str, partition: int) -> int:
        queue = self.queues.get((topic, partition))
        return 0 if queue is None else len(queue.queued)

    def _append(self, record: Send, partition: int, size: int, now: float) -> None:
        key = record.topic, partition
        queue = self.queues.get(key)
        if queue is None:
            queue = self.queues[key] = PartitionQueue(record.topic, partition)
            self.topics.add(record.topic)
        batch = queue.open
        token, _, _, content_key, value, timestamp, headers = record
        if batch is None or (
            batch.tokens and batch.builder.size + size > self._settings.batch_size
        ):
            # append first: no empty batch must remain if this fails
            early = not self._settings.idempotent
            batch = Batch(
                (self._last + 1,),
                self._settings.compression,
                now,
                early,
                self._settings.transactional_id is not None,
            )
            before = batch.size
            batch.append(token, content_key, value, timestamp, headers)
            self._last += 1
            queue.add(batch)
            self.busy[key] = queue
            self.used += BATCH_OVERHEAD
        else:
            before = batch.size
            batch.append(token, content_key, value, timestamp, headers)
        self.used += batch.size - before


def size_of(record: Send) -> int:
    """Return an upper bound of a record's size in a batch, without encoding it."""
    _, _, _, key, value, _, headers = record
    size = RECORD_OVERHEAD
    if key is not None:
        size += len(key)
    if value is not None:
        size += len(value)
    for name, content in headers:
        size += HEADER_OVERHEAD + BYTES_PER_CHARACTER * len(name) + len(content or b"")
    return size

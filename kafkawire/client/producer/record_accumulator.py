"""Records from the user into batches: which partition, which batch, or wait.

Law: memory is bounded: a record that finds no room, or whose topic is not known, is parked, in
order, until there is, or max.block.ms has passed.

    Send ─▶ too large? ─▶ topic known? ─▶ partition ─▶ room? ─▶ open batch
               │ Failed       │ Parked                  │ Parked
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from typing import Final, NamedTuple

from ...protocol.error_code import ErrorCode
from ..network.backoff import Rng
from ..network.cluster import ClusterView, Topic
from ..network.metadata import told
from ..requests import Reason, error_of
from .batch import Batch
from .configuration import ProducerSettings
from .events import Failed, Failure, Parked, Placed, Send
from .murmur2 import partition_of_key
from .partition_queue import PartitionQueue
from .sticky import Sticky

RECORD_OVERHEAD: Final = 36
"""The most that lengths, deltas and attributes of a record take."""
HEADER_OVERHEAD: Final = 10
BATCH_OVERHEAD: Final = 61
BYTES_PER_CHARACTER: Final = 4

LaneKey = tuple[str, int]


class Held(NamedTuple):
    """A record that waits, and until when; arrival: where it stands among all that were parked."""

    record: Send
    size: int
    deadline: float
    arrival: int


class RecordAccumulator:
    """Places records.

    view: the cluster. lanes: all partitions that have or had batches. busy: those with batches that
    have no result yet, by the time of their first.
    """

    def __init__(self, settings: ProducerSettings, view: ClusterView, rng: Rng) -> None:
        self.lanes: dict[LaneKey, PartitionQueue] = {}
        self.busy: dict[LaneKey, PartitionQueue] = {}
        self.used = 0
        self.topics: set[str] = set()
        self.starved = False
        self._settings = settings
        self._most = min(settings.max_request_size, settings.buffer_memory)
        self._view = view
        self._rng = rng
        self._last = -1
        self.last_arrival = -1
        self._parked: dict[str, deque[Held]] = {}
        self._sticky: dict[str, Sticky] = {}

    @property
    def last_number(self) -> int:
        """The number of the youngest batch, -1 for none."""
        return self._last

    @property
    def waiting(self) -> bool:
        """Whether a record is parked."""
        return bool(self._parked)

    def parked_since(self, arrival: int) -> bool:
        """Whether a record is still parked that was the `arrival`th or earlier."""
        return any(held[0].arrival <= arrival for held in self._parked.values())

    def take(self, record: Send, now: float) -> list[object]:
        """Place a record, park it, or refuse what can never be sent."""
        size = size_of(record)
        most = self._most
        if size + BATCH_OVERHEAD > most:
            detail = f"a record of up to {size} bytes; max.request.size and buffer.memory allow"
            detail = f"{detail} {most - BATCH_OVERHEAD}"
            return [refused(record, Failure(ErrorCode.MESSAGE_TOO_LARGE, None, detail))]
        if record.topic not in self._parked and self._place(record, size, now):
            return []
        self.last_arrival += 1
        held = Held(record, size, now + self._settings.max_block_s, self.last_arrival)
        self._parked.setdefault(record.topic, deque()).append(held)
        self.topics.add(record.topic)
        return [Parked(record.token)]

    def retry(self, now: float) -> Iterator[object]:
        """Place what is parked and can be placed now."""
        self.starved = False
        for topic, held in list(self._parked.items()):
            problem = fatal(self._view.topics.get(topic))
            while held:
                if problem is not None:
                    yield refused(held.popleft().record, problem)
                    continue
                try:
                    placed = self._place(held[0].record, held[0].size, now)
                except Exception as error:  # noqa: BLE001 - one record's trouble stays its own
                    yield refused(held.popleft().record, unexpected(error))
                    continue
                if not placed:
                    break
                yield Placed(held.popleft().record.token)
            if not held:
                del self._parked[topic]

    def parked_tokens(self) -> Iterator[Hashable]:
        """Walk the tokens of the records that are parked."""
        for held in self._parked.values():
            for each in held:
                yield each.record.token

    def withdraw(self, token: Hashable) -> None:
        """Forget a parked record."""
        for topic, held in list(self._parked.items()):
            self._parked[topic] = deque(each for each in held if each.record.token != token)
            if not self._parked[topic]:
                del self._parked[topic]

    def fail_parked(self, failure: Failure) -> Iterator[object]:
        """Give up on all that is parked."""
        parked, self._parked = self._parked, {}
        for held in parked.values():
            for each in held:
                yield refused(each.record, failure)

    def next_deadline(self) -> float | None:
        return min((held[0].deadline for held in self._parked.values()), default=None)

    def advance(self, now: float) -> Iterator[object]:
        """Give up on what has been parked for too long."""
        for topic, held in list(self._parked.items()):
            while held and held[0].deadline <= now:
                yield refused(held.popleft().record, self._too_long(topic))
            if not held:
                del self._parked[topic]

    def unknown_topics(self) -> frozenset[str]:
        """Name the topics that records wait for."""
        return frozenset(topic for topic in self._parked if not self._known(topic))

    def _too_long(self, name: str) -> Failure:
        topic = self._view.topics.get(name)
        if topic is not None and topic.error:
            return Failure(error_of(topic.error), None, f"topic {name}, within max.block.ms")
        if topic is None or not topic.partitions:
            detail = told(f"topic {name} not known within max.block.ms", self._view.trouble)
            return Failure(ErrorCode.NONE, Reason.TIMED_OUT, detail)
        detail = "no such partition, or no room in buffer.memory, within max.block.ms"
        return Failure(ErrorCode.NONE, Reason.TIMED_OUT, f"topic {name}: {detail}")

    def _known(self, name: str) -> bool:
        topic = self._view.topics.get(name)
        return topic is not None and bool(topic.partitions)

    def _place(self, record: Send, size: int, now: float) -> bool:
        topic = self._view.topics.get(record.topic)
        if topic is None or not topic.partitions:
            return False
        if self.used + size + BATCH_OVERHEAD > self._settings.buffer_memory:
            self.starved = True
            return False
        partition = record.partition
        if partition is None:
            if record.key is not None and not self._settings.ignore_keys:
                partition = partition_of_key(record.key, len(topic.partitions))
            else:
                partition = self._stuck_to(topic, size)
        elif partition not in topic.partitions:
            return False
        self._append(record, partition, size, now)
        return True

    def _stuck_to(self, topic: Topic, size: int) -> int:
        name = topic.name
        sticky = self._sticky.get(name)
        if sticky is None:
            stay, adaptive = max(self._settings.batch_size, 1), self._settings.adaptive
            sticky = self._sticky[name] = Sticky(stay, adaptive, self._rng)
        before = sticky.partition
        if before is not None and sticky.stays(topic, size):
            return before
        chosen = sticky.choose(topic, size, self._queue_length)
        if chosen != before and before is not None:
            left = self.lanes.get((name, before))
            if left is not None and left.open is not None:
                left.open.closed = True  # nothing more will come: it need not linger
        return chosen

    def _queue_length(self, topic: str, partition: int) -> int:
        queue = self.lanes.get((topic, partition))
        return 0 if queue is None else len(queue.queued)

    def _append(self, record: Send, partition: int, size: int, now: float) -> None:
        key = record.topic, partition
        queue = self.lanes.get(key)
        if queue is None:
            queue = self.lanes[key] = PartitionQueue(record.topic, partition)
            self.topics.add(record.topic)
        batch = queue.open
        token, _, _, content_key, value, timestamp, headers = record
        if batch is None or (
            batch.tokens and batch.builder.size + size > self._settings.batch_size
        ):
            # the record first: a batch that could not take it must not be left behind
            batch = Batch((self._last + 1,), self._settings.compression, now)
            before = batch.builder.size
            batch.builder.append(content_key, value, timestamp, headers)
            self._last += 1
            queue.add(batch)
            self.busy[key] = queue
            self.used += BATCH_OVERHEAD
        else:
            before = batch.builder.size
            batch.builder.append(content_key, value, timestamp, headers)
        batch.tokens.append(token)
        self.used += batch.builder.size - before


def size_of(record: Send) -> int:
    """Bound the bytes of a record in a batch, without encoding it."""
    _, _, _, key, value, _, headers = record
    size = RECORD_OVERHEAD
    if key is not None:
        size += len(key)
    if value is not None:
        size += len(value)
    for name, content in headers:
        size += HEADER_OVERHEAD + BYTES_PER_CHARACTER * len(name) + len(content or b"")
    return size


def unexpected(error: Exception) -> Failure:
    """Make the failure of what raised an exception that nothing here expects."""
    detail = f"{type(error).__name__}: {error}"
    return Failure(ErrorCode.NONE, Reason.INVALID_REQUEST, detail)


def fatal(topic: Topic | None) -> Failure | None:
    """Say why no record of a topic will ever be placed; None where it may be."""
    code = ErrorCode.NONE if topic is None else error_of(topic.error)
    if not code or code.retriable or topic is None or topic.partitions:
        return None
    return Failure(code, None, f"topic {topic.name}")


def refused(record: Send, failure: Failure) -> Failed:
    """Fail one record that is in no batch."""
    partition = -1 if record.partition is None else record.partition
    return Failed(record.topic, partition, [record.token], failure)

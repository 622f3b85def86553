"""Writes records that a share group cannot process to its dead letter queue, a topic (KIP-1191).

Invariant: what is written is called back once, whether it is in the queue or could not be. A
partition of a queue has one append in flight, so the records of a share partition keep their order,
but for those that wait for another attempt, which others overtake.

    DeadLetter ─▶ destination ─▶ queue of the partition ─▶ batch ─┬─▶ log of this broker
                     ▲  └ no topic yet: let it be created         └─▶ Produce to another broker
                     └── backoff ◀── retriable error ◀──────────────────┘
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ...configs.rules import DEAD_LETTER_TOPIC
from ...messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from ...messages.produce_response import ProduceResponse
from ...metadata import TopicIdPartition
from ...primitives import Message
from ...protocol import ErrorCode
from ...protocol.error_code import error_of
from ...records.validated import ValidatedBatch
from ...replication import AppendCompleted, AppendRejected
from ..context import Context
from ..events import DeadLetterDue
from ..forwarding.topic_creation import TopicCreation
from ..log.validation import RecordsRejected, check
from ..machines import Machines
from ..metadata_cache import MetadataCache, TopicMetadata
from ..topic_rules import TopicRules
from ..topics import NO_LEADER
from .dead_letter_batch import DeadLetter, DeadLetterBatch, records_of

E = ErrorCode
PRODUCE_VERSION: Final = 13
ALL: Final = -1
TIMEOUT_MS: Final = 30_000
PREFIX: Final = "errors.deadletterqueue.topic.name.prefix"
CREATES: Final = "errors.deadletterqueue.auto.create.topics.enable"
ENABLED: Final = "errors.deadletterqueue.group.enable"
COPIES: Final = "errors.deadletterqueue.copy.record.enable"
INTERNAL: Final = "__"
"""Topics whose names begin with this are never dead letter queues."""
ATTEMPTS: Final = 5
BACKOFF: Final = 1.0
MAX_BACKOFF: Final = 30.0
RETRIABLE: Final = frozenset({E.NETWORK_EXCEPTION, E.NOT_LEADER_OR_FOLLOWER, E.REQUEST_TIMED_OUT})
Then = Callable[[float], None]


@dataclass(slots=True)
class Pending:
    """A dead letter until it is written. thens: to call then.

    next: the first offset that is not written yet. attempts: that failed since the last that did
    not. awaits_topic: whether its queue does not exist yet.
    """

    number: int
    letter: DeadLetter
    next: int
    thens: list[Then]
    attempts: int = 0
    awaits_topic: bool = False


@dataclass(slots=True)
class Queue:
    """What is to be written to a partition. in_flight: what an append has, with its last offset."""

    waiting: deque[Pending] = field(default_factory=deque)
    in_flight: list[tuple[Pending, int]] = field(default_factory=list)


class DeadLetters:
    """The dead letters of the share partitions that a broker leads."""

    def __init__(
        self,
        node_id: int,
        context: Context,
        metadata: MetadataCache,
        machines: Machines,
        creation: TopicCreation,
        rules: TopicRules,
    ) -> None:
        self._node_id = node_id
        self._context = context
        self._metadata = metadata
        self._machines = machines
        self._creation = creation
        self._rules = rules
        self._count = 0
        self._pending: dict[DeadLetter, Pending] = {}
        self._backing_off: dict[int, Pending] = {}
        self._queues: dict[TopicIdPartition, Queue] = {}
        self._sent: dict[int, TopicIdPartition] = {}
        """Token of an append or a request -> where it writes to."""

    def __len__(self) -> int:
        return len(self._pending)

    def write(self, letter: DeadLetter, then: Then, now: float) -> None:
        """Write records; `then` is called when they are written, or cannot be."""
        pending = self._pending.get(letter)
        if pending is not None:  # of a share partition that is loaded again
            pending.thens.append(then)
            return
        self._count += 1
        pending = self._pending[letter] = Pending(self._count, letter, letter.first, [then])
        self._attempt(pending, now)

    def _end(self, pending: Pending, now: float) -> None:
        del self._pending[pending.letter]
        for then in pending.thens:
            then(now)

    # -- where to

    def _attempt(self, pending: Pending, now: float) -> None:
        """Put records into the queue of their partition, or wait for it, or give up."""
        name = self._topic_name(pending.letter.key.group_id)
        if name is None or self._creation.failures([name], now):
            self._end(pending, now)
            return
        topic = self._metadata.topics.get(name)
        pending.awaits_topic = topic is None
        if topic is None:
            self._creation.create_dead_letter_topic(name, now)
            self._back_off(pending, now)
            return
        index = pending.letter.key.partition % len(topic.partitions)
        key = TopicIdPartition(topic.topic_id, index)
        self._queues.setdefault(key, Queue()).waiting.append(pending)
        self._send(key, now)

    def _topic_name(self, group_id: str) -> str | None:
        """Return the dead letter queue of a group; None if it has none that may be written to."""
        name = self._metadata.group_configs(group_id).get(DEAD_LETTER_TOPIC, "")
        settings = self._context.settings
        prefix = settings.text(PREFIX) if PREFIX in settings.keys else ""
        if not name or name.startswith(INTERNAL) or not name.startswith(prefix):
            return None
        topic = self._metadata.topics.get(name)
        if topic is None:
            return name if CREATES in settings.keys and settings.flag(CREATES) else None
        is_enabled = settings.topic(topic.configs, ENABLED).strip().lower() == "true"
        return name if is_enabled else None

    def _back_off(self, pending: Pending, now: float) -> None:
        """Write records again later, unless there were too many attempts."""
        pending.attempts += 1
        if pending.attempts >= ATTEMPTS:
            self._end(pending, now)
            return
        backoff = min(MAX_BACKOFF, BACKOFF * 2 ** (pending.attempts - 1))
        self._backing_off[pending.number] = pending
        self._context.deadlines.set(DeadLetterDue(pending.number), now + backoff)

    def due(self, due: DeadLetterDue, now: float) -> None:
        """Write records again."""
        self._attempt(self._backing_off.pop(due.number), now)

    def published(self, now: float) -> None:
        """Go on with what waits for a topic that exists now."""
        awaiting = [each for each in self._backing_off.values() if each.awaits_topic]
        for pending in awaiting:
            name = self._topic_name(pending.letter.key.group_id)
            if pending.number in self._backing_off and name in self._metadata.topics:
                self._context.deadlines.cancel(DeadLetterDue(pending.number))
                self._attempt(self._backing_off.pop(pending.number), now)

    # -- writing

    def _send(self, key: TopicIdPartition, now: float) -> None:
        """Write what waits for a partition, as long as the results are there at once."""
        queue = self._queues.get(key)
        if queue is None:
            return
        while queue.waiting and not queue.in_flight:
            topic = self._metadata.topics.by_id(key.topic_id)
            partition = None if topic is None else topic.partition(key.partition)
            if topic is None or partition is None or partition.leader_id == NO_LEADER:
                queue.in_flight = [(each, each.next - 1) for each in queue.waiting]
                queue.waiting.clear()
                self._settle(queue, E.NOT_LEADER_OR_FOLLOWER, now)
                continue
            batch = self._batch(queue, topic, now)
            error = self._write(key, topic, partition.leader_id, batch, now)
            if error is None:
                return
            self._settle(queue, error, now)
        if self._queues.get(key) is queue and not (queue.waiting or queue.in_flight):
            del self._queues[key]

    def _batch(self, queue: Queue, topic: TopicMetadata, now: float) -> bytes:
        """Take as many records as fit into a batch, one at least."""
        most = self._rules.of(topic.name).max_message_bytes
        batch = DeadLetterBatch(self._context.wall_ms(now), most)
        while queue.waiting and not batch.is_full:
            pending = queue.waiting.popleft()
            letter = pending.letter
            of = self._metadata.topic_name(letter.key.topic_id)
            copies = self._metadata.group_configs(letter.key.group_id).get(COPIES) == "true"
            key = TopicIdPartition(letter.key.topic_id, letter.key.partition)
            replica = self._machines.replica(key) if copies else None
            last = batch.add(letter, of, records_of(replica, pending.next, letter.last, most))
            if last < pending.next:
                queue.waiting.appendleft(pending)
            else:
                queue.in_flight.append((pending, last))
        return batch.build()

    def _write(
        self, key: TopicIdPartition, topic: TopicMetadata, leader: int, batch: bytes, now: float
    ) -> ErrorCode | None:
        """Write a batch; return its error, or None if that is not known yet."""
        if leader == self._node_id:
            token, result = self._machines.append(key, batch, now, self._validator(topic, now))
            if result is not None:
                return result.error
        else:
            partition = PartitionProduceData(index=key.partition, records=batch)
            data = TopicProduceData(topic_id=key.topic_id, partition_data=[partition])
            body = ProduceRequest(acks=ALL, timeout_ms=TIMEOUT_MS, topic_data=[data])
            sent = self._machines.send(leader, PRODUCE_VERSION, body)
            if sent is None:
                return E.NETWORK_EXCEPTION
            token = sent
        self._sent[token] = key
        return None

    def _validator(
        self, topic: TopicMetadata, now: float
    ) -> Callable[[str, bytes], tuple[ValidatedBatch]]:
        """Validate a batch as that of a client."""
        rules, wall_ms = self._rules.of(topic.name), self._context.wall_ms(now)

        def validate(_topic: str, records: bytes) -> tuple[ValidatedBatch]:
            try:
                return (check(records, PRODUCE_VERSION, rules, wall_ms),)
            except RecordsRejected as reason:
                raise AppendRejected(reason.error, reason.message) from None

        return validate

    def _settle(self, queue: Queue, error: ErrorCode, now: float) -> None:
        """Go on with what an append had: with the rest of it, again, or not at all."""
        settled, queue.in_flight = queue.in_flight, []
        for pending, last in reversed(settled):
            if not error and last < pending.letter.last:
                pending.next, pending.attempts = last + 1, 0
                queue.waiting.appendleft(pending)
        for pending, last in settled:
            if error in RETRIABLE:
                self._back_off(pending, now)
            elif error or last >= pending.letter.last:
                self._end(pending, now)

    def appended(self, effect: AppendCompleted, now: float) -> bool:
        """Handle the result of an append; return whether it was of this."""
        return self._arrived(effect.token, effect.result.error, now)

    def arrived(self, token: int, body: Message | None, now: float) -> bool:
        """Handle a response; return whether it was for this."""
        return self._arrived(token, _error(body), now)

    def _arrived(self, token: int, error: ErrorCode, now: float) -> bool:
        key = self._sent.pop(token, None)
        if key is None:
            return False
        self._settle(self._queues[key], error, now)
        self._send(key, now)
        return True


def _error(body: Message | None) -> ErrorCode:
    """Return the error of the only partition of a response."""
    if not isinstance(body, ProduceResponse):
        return E.NETWORK_EXCEPTION
    for topic in body.responses:
        for each in topic.partition_responses:
            return error_of(each.error_code)
    return E.UNKNOWN_SERVER_ERROR

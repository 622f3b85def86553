"""A transaction of a transactional id, and the history of the id.

What becomes of a transaction is what the capture shows, no guess: without a response to its
EndTxn it is unknown, and without an end it is hanging.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, NamedTuple

from kafkawire.capture.exchanges.topic_ids import Topic
from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.display import time_text
from kafkawire.protocol.error_code import ErrorCode

from .quantiles import Quantiles

KEPT: Final = 100
"""Transactions of an id that are kept: so many of the last that were committed, so many others."""

MAX_PARTITIONS: Final = 1000
"""Partitions of a transaction that are kept; more are counted."""


class State(StrEnum):
    """What became of a transaction."""

    HANGING = "hanging"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"
    """The response to EndTxn is not in the capture, or was an error that leaves it open."""


class Producer(NamedTuple):
    """A producer id and epoch, as InitProducerId or EndTxn returned them; -1 for unknown."""

    producer_id: int
    producer_epoch: int


UNKNOWN_PRODUCER: Final = Producer(-1, -1)


class Transaction:
    """A transaction.

    begin_ns: the time of the first request; NO_TIME if it began before the capture. end_ns: of the
    request that ended it. partitions: to which it produced, or that were added; implicit: those
    that only Produce added (KIP-890). groups: number of committed offsets by group id. errors:
    responses by error code.
    """

    __slots__ = (
        "begin_ns", "bytes", "client_id", "end_ns", "errors", "groups", "implicit", "more",
        "partitions", "producer", "reason", "state", "transactional_id",
    )  # fmt: skip

    def __init__(
        self, transactional_id: str, producer: Producer, client_id: str | None, begin_ns: int
    ) -> None:
        self.transactional_id = transactional_id
        self.producer = producer
        self.client_id = client_id
        self.begin_ns = begin_ns
        self.end_ns = NO_TIME
        self.state = State.HANGING
        self.reason = ""
        self.partitions: dict[tuple[object, int], Topic] = {}
        self.implicit = self.more = self.bytes = 0
        self.groups: dict[str, int] = {}
        self.errors: Counter[int] = Counter()

    @property
    def duration_ns(self) -> int | None:
        """Time from begin to end."""
        return None if NO_TIME in (self.begin_ns, self.end_ns) else self.end_ns - self.begin_ns

    def add_partition(self, topic: Topic, partition: int, *, implicit: bool) -> None:
        """Add a partition."""
        key = topic.key, partition
        if key in self.partitions:
            return
        if len(self.partitions) >= MAX_PARTITIONS:
            self.more += 1  # maybe one of them several times
            return
        self.partitions[key] = topic
        self.implicit += implicit

    def by_topic(self) -> list[tuple[Topic, list[int]]]:
        """Return the partitions by topic."""
        partitions: dict[object, tuple[Topic, list[int]]] = {}
        for (key, partition), topic in self.partitions.items():
            partitions.setdefault(key, (topic, []))[1].append(partition)
        return [(topic, sorted(numbers)) for topic, numbers in partitions.values()]

    def json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "state": self.state.value,
            "reason": self.reason or None,
            "begin_time": time_text(self.begin_ns),
            "end_time": time_text(self.end_ns),
            "duration_ns": self.duration_ns,
            **self.producer._asdict(),
            "client_id": self.client_id,
            "partitions": [
                {"topic": topic.name, "topic_id": topic.id_text, "partitions": numbers}
                for topic, numbers in self.by_topic()
            ],
            "partitions_left_out": self.more,
            "implicit_partitions": self.implicit,
            "bytes": self.bytes,
            "offsets": [{"group_id": group, "offsets": n} for group, n in self.groups.items()],
            "errors": errors_json(self.errors),
        }


class IdHistory:
    """The transactions of one transactional id.

    current: the one that is not ended. producers: the last producer ids and epochs. counts: ended
    ones by state. errors: of requests outside of transactions, by code.
    """

    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.clients: dict[str | None, None] = {}
        self.producer = UNKNOWN_PRODUCER
        self.producers: deque[Producer] = deque(maxlen=KEPT)
        self.timeout_ms: int | None = None
        self.current: Transaction | None = None
        self.last: Transaction | None = None
        self.counts: Counter[State] = Counter()
        self.errors: Counter[int] = Counter()
        self.durations = Quantiles()
        self._committed: deque[Transaction] = deque(maxlen=KEPT)
        self._others: deque[Transaction] = deque(maxlen=KEPT)

    def set_producer(self, producer: Producer) -> None:
        """Note a new producer id or epoch."""
        if producer.producer_id >= 0 and producer != self.producer:
            self.producer = producer
            self.producers.append(producer)

    def is_stale(self, producer: Producer) -> bool:
        """Whether a request is of an earlier epoch than the current one: of a fenced producer."""
        latest = self.producer
        same = producer.producer_id == latest.producer_id >= 0
        return same and producer.producer_epoch < latest.producer_epoch

    def end(self, state: State, reason: str, end_ns: int) -> None:
        """End the current transaction."""
        ended = self.current
        assert ended is not None
        ended.state, ended.reason, ended.end_ns = state, reason, end_ns
        self.current, self.last = None, ended
        self.counts[state] += 1
        if ended.duration_ns is not None:
            self.durations.add(ended.duration_ns)
        (self._committed if state is State.COMMITTED else self._others).append(ended)

    def reopen(self) -> None:
        """Let the last transaction be the current one again."""
        self.current, self.last = self.last, None
        assert self.current is not None
        self.counts[self.current.state] -= 1
        self._others.remove(self.current)

    @property
    def total(self) -> int:
        """The number of transactions."""
        return self.counts.total() + (self.current is not None)

    @property
    def transactions(self) -> list[Transaction]:
        """The transactions that were kept, in the order of their ends."""
        ended = sorted([*self._committed, *self._others], key=lambda one: one.end_ns)
        return ended if self.current is None else [*ended, self.current]

    def json(self) -> dict[str, Any]:
        """Return the JSON form; the most recent transactions of each kind are listed."""
        kept = self.transactions
        return {
            "transactional_id": self.transactional_id,
            "client_ids": list(self.clients),
            "producers": [producer._asdict() for producer in self.producers],
            "timeout_ms": self.timeout_ms,
            **{state.value: self.counts[state] for state in State if state is not State.HANGING},
            "hanging": int(self.current is not None),
            "p50_ns": self.durations.at(0.5),
            "p99_ns": self.durations.at(0.99),
            "max_ns": self.durations.max,
            "errors": errors_json(self.errors),
            "transactions": [one.json() for one in kept],
            "transactions_left_out": self.total - len(kept),
        }


def errors_json(errors: Counter[int]) -> dict[str, int]:
    """Return error codes by name."""
    return {ErrorCode.name_of(code): n for code, n in errors.most_common()}


ORDERS: Final[dict[str, Callable[[IdHistory], tuple[int, ...]]]] = {
    "harm": lambda one: (
        one.current is None,
        -one.counts[State.ABORTED],
        -one.counts[State.UNKNOWN],
        -(one.durations.max or 0),
    ),
    "duration": lambda one: (-(one.durations.max or 0),),
    "transactions": lambda one: (-one.counts.total(),),
    "id": lambda _: (),
}
"""Orders of transactional ids; those that are equal are sorted by id."""

"""The invariants of pipelines that read, process and write, checked while a simulation runs.

each record that is read is written once, and visible once
a transaction is visible as a whole, or not at all; one that is not to be committed is not
a producer that is fenced succeeds with nothing
an offset is not fetched while a transaction may replace it
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from kafkawire.node.invariants import Violation


class Input(NamedTuple):
    """A record that a pipeline reads."""

    partition: int
    offset: int


class Outcome(Enum):
    """What the coordinator has responded to the end of a transaction."""

    UNKNOWN = "unknown"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass
class Transaction:
    """A transaction. commits: whether its producer is going to commit it.

    visible: its inputs whose records consumers with read_committed see. offsets: when the group
    coordinator had those of these partitions. fetched: when offsets that it replaces were fetched.
    """

    name: str
    inputs: frozenset[Input]
    commits: bool
    outcome: Outcome = Outcome.UNKNOWN
    visible: set[Input] = field(default_factory=set)
    offsets: dict[int, float] = field(default_factory=dict)
    fetched: list[float] = field(default_factory=list)

    def value(self, one: Input) -> bytes:
        """Return the value of the record that is written for an input."""
        return f"{self.name}:{one.partition}:{one.offset}".encode()


class Holder(NamedTuple):
    """The producer that has a transactional id. when: it was initialised."""

    producer: str
    when: float


class PipelineChecker:
    """What producers and consumers of a pipeline saw so far."""

    def __init__(self) -> None:
        self.transactions: dict[str, Transaction] = {}
        self.visible: dict[Input, str] = {}
        """Input -> the transaction that wrote it."""
        self._holders: dict[str, Holder] = {}
        self._writers: dict[str, str] = {}
        """Transactional id -> the producer that has written last, in a transaction not ended."""

    # -- producers

    def initialised(self, transactional_id: str, producer: str, now: float) -> None:
        """Take note that a producer gets an epoch; it fences the ones before it."""
        self._holders[transactional_id] = Holder(producer, now)

    def succeeds(self, transactional_id: str, producer: str, since: float, what: str) -> None:
        """Check that a request of a producer may succeed. since: when it was sent."""
        holder = self._holders[transactional_id]
        if holder.producer != producer and holder.when < since:
            raise Violation(f"{what} of {producer} succeeds, which {holder.producer} has fenced")
        if what == "EndTxn":
            self._writers.pop(transactional_id, None)
        elif what == "Produce":
            self._writers[transactional_id] = producer

    def is_replaced(self, transactional_id: str, producer: str) -> bool:
        """Whether another producer with the transactional id is in a transaction."""
        return self._writers.get(transactional_id, producer) != producer

    def begin(self, name: str, inputs: Iterable[Input], commits: bool) -> Transaction:
        """Take note of a new transaction."""
        transaction = self.transactions[name] = Transaction(name, frozenset(inputs), commits)
        return transaction

    def ended(self, transaction: Transaction, outcome: Outcome, since: float) -> None:
        """Take note that a coordinator responds to the end of a transaction.

        since: when it was sent for the first time; until then the transaction was pending.
        """
        transaction.outcome = outcome
        if outcome is Outcome.COMMITTED and any(when < since for when in transaction.fetched):
            raise Violation(f"an offset was fetched that {transaction.name} was about to replace")

    # -- offsets

    def commits_offsets(
        self, transaction: Transaction, partitions: Iterable[int], now: float
    ) -> None:
        """Take note that a group coordinator has the offsets of a transaction."""
        transaction.offsets.update(dict.fromkeys(partitions, now))

    def offset_fetched(self, partition: int, since: float, now: float) -> None:
        """Take note that a group coordinator responds with a stable offset.

        since: when the request was sent.
        """
        for each in self.transactions.values():
            if each.outcome is Outcome.UNKNOWN and each.offsets.get(partition, since) < since:
                each.fetched.append(now)

    # -- consumers

    def consumed(self, value: bytes) -> None:
        """Check a record that a consumer with read_committed sees for the first time."""
        name, partition, offset = value.decode().rsplit(":", 2)
        one, transaction = Input(int(partition), int(offset)), self.transactions[name]
        if not transaction.commits:
            raise Violation(f"{value!r} is visible, its transaction is not committed")
        if one in self.visible:
            raise Violation(f"{one} is written twice: by {self.visible[one]}, and by {name}")
        self.visible[one] = name
        transaction.visible.add(one)

    def check_end(self) -> None:
        """Check that transactions are visible as a whole."""
        for each in self.transactions.values():
            if each.visible and each.visible != each.inputs:
                raise Violation(f"of {each.name}, only {sorted(each.visible)} is visible")
            if each.outcome is Outcome.COMMITTED and not each.visible:
                raise Violation(f"{each.name} is committed, and not visible")

    def missing(self, inputs: Iterable[Input]) -> list[Input]:
        """Return the inputs that are not written."""
        return [one for one in inputs if one not in self.visible]

"""The invariants of pipelines that read, process and write, checked while a simulation runs.

each record that is read is written once, and visible once
a transaction is visible as a whole, or not at all; one that is aborted is not
a producer that is fenced succeeds with nothing
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
    """A transaction. visible: its inputs whose records consumers with read_committed see."""

    name: str
    inputs: frozenset[Input]
    outcome: Outcome = Outcome.UNKNOWN
    visible: set[Input] = field(default_factory=set)

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

    # -- producers

    def initialised(self, transactional_id: str, producer: str, now: float) -> None:
        """Take note that a producer gets an epoch; it fences the ones before it."""
        self._holders[transactional_id] = Holder(producer, now)

    def succeeds(self, transactional_id: str, producer: str, since: float, what: str) -> None:
        """Check that a request of a producer may succeed. since: when it was sent."""
        holder = self._holders[transactional_id]
        if holder.producer != producer and holder.when < since:
            raise Violation(f"{what} of {producer} succeeds, which {holder.producer} has fenced")

    def begin(self, name: str, inputs: Iterable[Input]) -> Transaction:
        """Take note of a new transaction."""
        transaction = self.transactions[name] = Transaction(name, frozenset(inputs))
        return transaction

    def ended(self, transaction: Transaction, outcome: Outcome) -> None:
        """Take note that a coordinator responds to the end of a transaction."""
        transaction.outcome = outcome
        if outcome is Outcome.ABORTED and transaction.visible:
            raise Violation(f"{transaction.name} is aborted, and visible")

    # -- consumers

    def consumed(self, value: bytes) -> None:
        """Check a record that a consumer with read_committed sees for the first time."""
        name, partition, offset = value.decode().rsplit(":", 2)
        one, transaction = Input(int(partition), int(offset)), self.transactions[name]
        if transaction.outcome is Outcome.ABORTED:
            raise Violation(f"{value!r} is visible, its transaction is aborted")
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

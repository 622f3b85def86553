"""Transactional producers at nodes in memory, in virtual time; and what is committed in a log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from itertools import count
from random import Random
from typing import Final

from kafkawire.broker import Report
from kafkawire.client.config import Setting
from kafkawire.client.group_metadata import ConsumerGroupMetadata
from kafkawire.client.network.network import CloseNetwork
from kafkawire.client.producer import (
    BeginTransaction,
    Delivered,
    EndTransaction,
    Failed,
    Flush,
    Flushed,
    InitTransactions,
    Producer,
    Send,
    SendOffsets,
    TransactionDone,
    TransactionFailed,
    TransactionOffset,
)
from kafkawire.client.producer.transactions.states import TransactionState
from kafkawire.client.producer.transactions.transaction_manager import TransactionManager
from kafkawire.messages.api_key import ApiKey
from kafkawire.records import ControlType, control_record
from tests.client.clients import producer_client
from tests.client.simulation import NetworkConditions, Simulation

CALM = NetworkConditions(0.001, 0.0, 0.0)
VERSION_1: Final = "3.9"
"""The last release whose transactions are of version 1."""
OF_TRANSACTIONS: Final = (
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.PRODUCE,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.END_TXN,
)
Result = TransactionDone | TransactionFailed


class Stage:
    """A simulation and its transactional producers, by name.

    requests: those of transactions, by API and version, in the order of their responses.
    """

    def __init__(
        self,
        release: str | None = None,
        brokers: int = 1,
        conditions: NetworkConditions | None = None,
        seed: int = 1,
        settings: dict[str, str] | None = None,
    ) -> None:
        self.simulation = Simulation(
            seed,
            brokers=brokers,
            conditions=conditions or NetworkConditions(0.001, 0.0, 0.0),
            release=release,
            settings={
                "transaction.state.log.num.partitions": "1",
                "transaction.state.log.replication.factor": str(brokers),
                "transaction.state.log.min.isr": "1",
                **(settings or {}),
            },
        )
        self.simulation.on_report = self._on_report
        self.simulation.create("t", [list(range(1, brokers + 1))])
        self.requests: list[tuple[ApiKey, int]] = []
        self._seeds = count(seed)
        self._tokens = count(1)

    def _on_report(self, report: Report) -> None:
        if report.request.api_key in OF_TRANSACTIONS and report.request.client_id == "kafkawire":
            self.requests.append((ApiKey(report.request.api_key), report.request.version))

    def producer(self, name: str, transactional_id: str = "x", **config: Setting) -> User:
        """Start a producer."""
        settings = {
            "transactional.id": transactional_id,
            "linger.ms": 5,
            **{key.replace("_", "."): value for key, value in config.items()},
        }
        client = producer_client(Random(next(self._seeds)), self.simulation.bootstrap, settings)
        self.simulation.add(name, client)
        machine = client._first
        assert isinstance(machine, Producer)
        return User(self, name, machine, self._tokens)

    def committed(self, topic: str = "t") -> list[bytes | None]:
        """Return the values in partition 0 that are committed."""
        return committed_values(self.simulation, topic, 0)


def committed_values(simulation: Simulation, topic: str, partition: int) -> list[bytes | None]:
    """Return the values of a partition that are committed, by the markers in its log."""
    open_: dict[int, list[bytes | None]] = defaultdict(list)
    values: list[bytes | None] = []
    for batch in simulation.brokers.batches(topic, partition):
        records = list(batch.records())
        if batch.control:
            ended = open_.pop(batch.producer_id, [])
            if control_record(records[0]).type == ControlType.COMMIT:
                values += ended
        elif batch.transactional:
            open_[batch.producer_id] += [each.value for each in records]
        else:
            values += [each.value for each in records]
    return values


class User:
    """The user of one producer: calls it, and waits for what becomes of that."""

    def __init__(self, stage: Stage, name: str, machine: Producer, tokens: count[int]) -> None:
        self.simulation = stage.simulation
        self.name = name
        self.machine = machine
        self._tokens = tokens

    @property
    def transactions(self) -> TransactionManager:
        assert self.machine.transactions is not None
        return self.machine.transactions

    @property
    def state(self) -> TransactionState:
        return self.transactions.state

    @property
    def news(self) -> list[object]:
        return self.simulation.news[self.name]

    def give(self, event: Callable[[Hashable], object]) -> Hashable:
        """Pass an event; return its token."""
        token = f"{self.name}-{next(self._tokens)}"
        self.simulation.send_event(self.name, event(token))
        return token

    def result(self, token: Hashable) -> Result | None:
        """Return the result of a call, None without one yet."""
        found = [each for each in self.news if isinstance(each, Result) and each.token == token]
        assert len(found) <= 1, found
        return found[0] if found else None

    def call(self, event: Callable[[Hashable], object]) -> Result:
        """Call, and wait for the result."""
        token = self.give(event)
        self.simulation.run(lambda: self.result(token) is not None)
        result = self.result(token)
        assert result is not None
        return result

    def done(self, event: Callable[[Hashable], object]) -> None:
        """Call; it must succeed."""
        result = self.call(event)
        assert isinstance(result, TransactionDone), result

    def failed(self, event: Callable[[Hashable], object]) -> TransactionFailed:
        """Call; it must fail."""
        result = self.call(event)
        assert isinstance(result, TransactionFailed), result
        return result

    def begin(self) -> None:
        """Begin a transaction, the first one too."""
        if self.state is TransactionState.UNINITIALIZED:
            self.done(InitTransactions)
        self.done(BeginTransaction)

    def send(self, *values: bytes, topic: str = "t", partition: int = 0) -> list[Hashable]:
        return [
            self.give(lambda token, v=value: Send(token, topic, partition, None, v, 0))  # type: ignore[misc]
            for value in values
        ]

    def flush(self) -> None:
        token = self.give(Flush)
        self.simulation.run(lambda: Flushed(token) in self.news)

    def outcome(self, token: Hashable) -> Delivered | Failed:
        """Return what became of a record."""
        [found] = [
            each
            for each in self.news
            if isinstance(each, Delivered | Failed) and token in each.tokens
        ]
        return found

    def crash(self) -> None:
        """Disconnect in the middle of what it does."""
        self.simulation.to_network(self.name, CloseNetwork())


def commit(token: Hashable) -> EndTransaction:
    return EndTransaction(token, True)


def abort(token: Hashable) -> EndTransaction:
    return EndTransaction(token, False)


def offsets(
    offset: int, group: ConsumerGroupMetadata | str = "g", topic: str = "t"
) -> Callable[[Hashable], SendOffsets]:
    """Commit an offset of partition 0."""
    member = ConsumerGroupMetadata(group) if isinstance(group, str) else group
    return lambda token: SendOffsets(token, member, (TransactionOffset(topic, 0, offset, -1, ""),))

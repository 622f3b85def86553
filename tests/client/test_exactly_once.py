"""Read, process, write over failures: workers that crash, brokers that stop, responses that are
lost; and yet each record that was read is written once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final

import pytest

from kafkawire.broker import Action, Fault
from kafkawire.client.config import Setting
from kafkawire.client.consumer import ConsumerRecord, TopicPartition, events
from kafkawire.client.network.network import CloseNetwork
from kafkawire.client.producer import (
    BeginTransaction,
    EndTransaction,
    Flush,
    Flushed,
    InitTransactions,
    Send,
    SendOffsets,
    TransactionDone,
    TransactionFailed,
    TransactionOffset,
)
from kafkawire.client.producer.transactions.transaction_manager import CALLS, TransactionManager
from kafkawire.protocol.error_code import ErrorCode
from tests.client.clients import producer_client
from tests.client.consumer.users import User
from tests.client.producer.transactional import VERSION_1, committed_values
from tests.client.simulation import NetworkConditions, Simulation
from tests.fuzzing import replayable, seeds

PARTITIONS: Final = 2
TROUBLE_S: Final = 12.0
LIMIT_S: Final = 200.0
SOON_S: Final = 40.0
ERRORS: Final = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)
APIS: Final = (
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "TxnOffsetCommit",
    "EndTxn",
    "InitProducerId",
)
SEEDS: Final = seeds(5)
POLL_INTERVAL_S: Final = 7.0
SLOW: Final = 0.1
"""How often a worker takes so long that it may be expelled from the group."""
CRASHES: Final = 0.1
CALM: Final = 0.5
CONSUMING: Final[dict[str, Setting]] = {
    "group.id": "workers",
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
    "session.timeout.ms": 6_000,
    "heartbeat.interval.ms": 1_000,
    "max.poll.interval.ms": 7_000,
    "max.poll.records": 3,
    "request.timeout.ms": 5_000,
    "default.api.timeout.ms": 5_000,
}
PRODUCING: Final[dict[str, Setting]] = {
    "linger.ms": 0,
    "request.timeout.ms": 1_500,
    "delivery.timeout.ms": 3_000,
    "retry.backoff.max.ms": 300,
    "reconnect.backoff.max.ms": 300,
}


class Reader(User):
    """A consumer whose records go to its worker, which polls again."""

    on_records: Callable[[list[ConsumerRecord]], None]

    def _on_effect(self, effect: object) -> None:
        if isinstance(effect, events.Deliver):
            self._waiting = False
            self.on_records(effect.records)
        else:
            super()._on_effect(effect)


class Worker:
    """Reads `in`, writes `out`, in transactions; crashes where anything fails, and starts again."""

    def __init__(self, run: Run, name: str) -> None:
        self.run = run
        self.simulation = run.simulation
        self.name = name
        self.lives = 0
        self.start()

    def start(self) -> None:
        """Start, with the transactional id that it always has."""
        self.lives += 1
        self.alive = True
        seed = self.run.rng.randrange(1 << 30)
        self.life = f"{self.name}-{self.lives}"
        config = {**PRODUCING, "transactional.id": self.name}
        client = producer_client(Random(seed), self.simulation.bootstrap, config)
        self.simulation.on_news[f"{self.life}-p"] = partial(self._on_effect, self.lives)
        self.simulation.add(f"{self.life}-p", client)
        self.reader = Reader(self.simulation, f"{self.life}-c", CONSUMING, seed=seed)
        self.reader.on_records = self._on_records
        self._give(InitTransactions("init"))

    def crash(self) -> None:
        """End in the middle of what it does; start again soon."""
        if self.alive:
            self.alive = False
            self.reader.crash()
            self.simulation.to_network(f"{self.life}-p", CloseNetwork())
            self.simulation.at(self.simulation.now + self.run.rng.random(), self.start)

    def _on_records(self, records: list[ConsumerRecord]) -> None:
        self._give(BeginTransaction("begin"))
        ends: dict[TopicPartition, int] = {}
        for at, each in enumerate(records):
            ends[TopicPartition(*each[:2])] = each.offset + 1
            self._give(Send(at, "out", each.offset % PARTITIONS, None, each.value, 0))
        offsets = tuple(TransactionOffset(*where, end, -1, "") for where, end in ends.items())
        chance = self.run.rng.random() if self.simulation.now < TROUBLE_S else CALM
        pause = 0.0 if chance > SLOW else self.run.rng.random() * 2 * POLL_INTERVAL_S
        self.simulation.at(self.simulation.now + pause, partial(self._end, self.lives, offsets))
        if chance > 1 - CRASHES:
            self.simulation.at(self.simulation.now + self.run.rng.random() * 0.1, self.crash)

    def _end(self, life: int, offsets: tuple[TransactionOffset, ...]) -> None:
        if self.alive and life == self.lives:
            group = self.reader.machine.group_metadata
            self._give(SendOffsets("offsets", group, offsets))
            self._give(EndTransaction("commit", True))

    def _give(self, event: object) -> None:
        """Pass the producer an event, unless the worker has crashed meanwhile."""
        if self.alive:
            self.simulation.send_event(f"{self.life}-p", event)

    def _on_effect(self, life: int, effect: object) -> None:
        if not self.alive or life != self.lives:
            return
        match effect:
            case TransactionFailed():
                self.alive = False  # no other event of this moment counts
                self.simulation.at(self.simulation.now, self._crash_now)
            case TransactionDone(token="init"):
                self.reader.subscribe("in")
            case TransactionDone(token="commit"):
                self.simulation.at(self.simulation.now, self.reader.poll)

    def _crash_now(self) -> None:
        self.alive = True
        self.crash()


class Run:
    """One run: records to read, workers, and what goes wrong; then calm, and an account."""

    def __init__(self, seed: int, release: str | None = None) -> None:
        rng = self.rng = Random(seed)
        conditions = NetworkConditions(
            rng.choice((0.001, 0.02)), 0.0, rng.choice((0.0, 0.002, 0.01))
        )
        self.brokers = rng.choice((1, 3))
        one = {
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": str(self.brokers),
            "transaction.state.log.min.isr": "1",
        }
        self.simulation = Simulation(
            seed, brokers=self.brokers, conditions=conditions, release=release, settings=one
        )
        for topic in ("in", "out"):
            spread = [list(range(1, self.brokers + 1))] * PARTITIONS
            self.simulation.create(topic, spread)
        self.expected = self._fill(rng.choice((12, 30)))
        for number in range(rng.choice((1, 2))):
            worker = Worker(self, f"w{number}")
            for _ in range(rng.randrange(3)):
                self.simulation.at(rng.random() * TROUBLE_S, worker.crash)
        self._plan_trouble()

    def _fill(self, count: int) -> list[bytes]:
        values = [b"%d" % number for number in range(count)]
        client = producer_client(Random(1), self.simulation.bootstrap, {})
        self.simulation.add("source", client)
        for at, value in enumerate(values):
            self.simulation.send_event("source", Send(at, "in", at % PARTITIONS, None, value, 0))
        self.simulation.send_event("source", Flush("end"))
        self.simulation.run(lambda: Flushed("end") in self.simulation.news["source"])
        return values

    def _plan_trouble(self) -> None:
        rng, simulation = self.rng, self.simulation
        for _ in range(rng.randrange(3)):
            node, when = rng.choice(simulation.brokers.ids), rng.random() * TROUBLE_S
            simulation.at(when, partial(simulation.stop, node))
            simulation.at(when + rng.random() * 3, partial(simulation.start, node))
        for api in APIS:
            simulation.trouble(
                Fault(api, probability=0.1, action=Action.ERROR, error=rng.choice(ERRORS)),
                Fault(api, probability=0.1, action=Action.DISCONNECT, carried_out=True),
            )
        simulation.trouble(
            Fault("Produce", probability=0.1, error=ErrorCode.INVALID_RECORD),
            Fault("Produce", probability=0.1, action=Action.DISCONNECT, carried_out=True),
        )
        simulation.at(TROUBLE_S, simulation.calm)

    def written(self) -> list[bytes | None]:
        found: list[bytes | None] = []
        for partition in range(PARTITIONS):
            found += committed_values(self.simulation, "out", partition)
        return found

    def play(self, limit_s: float = LIMIT_S) -> None:
        """Let everything happen; each record is to be there once."""
        self.simulation.pass_time(TROUBLE_S)
        self.simulation.run(lambda: len(set(self.written())) == len(self.expected), limit_s)
        self.simulation.pass_time(3.0)
        assert sorted(self.written(), key=str) == sorted(self.expected, key=str)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("release", [None, VERSION_1], ids=["version 2", "version 1"])
def test_each_record_that_is_read_is_written_once(release: str | None) -> None:
    for seed in SEEDS:
        with replayable(seed):
            Run(seed, release).play()


def offsets_are_not_part_of_it(patch: pytest.MonkeyPatch) -> None:
    def done(self: TransactionManager, event: SendOffsets) -> None:
        self._out.append(TransactionDone(event.token))

    patch.setitem(CALLS, SendOffsets, done)


def records_that_failed_do_not_fail_it(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionManager, "on_batch_failed", lambda *_, **__: None)


def some_runs(count: int) -> None:
    for seed in range(count):
        Run(seed).play(SOON_S)


MUTANTS: Final = (offsets_are_not_part_of_it, records_that_failed_do_not_fail_it)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.__name__)
def test_a_rule_that_is_missing_is_found(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        some_runs(10)

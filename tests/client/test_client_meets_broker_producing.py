"""The producer and the broker on a wire that delays, splits, drops, in a cluster that moves, stops
and crashes: what was acknowledged is there, once, and in order per key.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from random import Random

import pytest

from kafkawire.broker import Action, Fault
from kafkawire.client.config import Setting
from kafkawire.client.network.network import CloseNetwork
from kafkawire.client.producer import (
    CloseProducer,
    Delivered,
    Failed,
    Flush,
    Flushed,
    ProducerClosed,
    Send,
)
from kafkawire.protocol.error_code import ErrorCode
from tests.client.clients import producer_client
from tests.client.seeds import chunk
from tests.client.simulation import NetworkConditions, Simulation
from tests.fuzzing import replayable

CHUNKS = 10
TOPICS = ("orders", "parcels")  # the second is made by who writes to it
RETRIABLE = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)
RELEASES = (None, "2.8", "3.9")


class Scenario:
    """One run: records with keys sent while things go wrong; then calm, and an account."""

    def __init__(self, seed: int, config: dict[str, Setting], trouble: float = 1.0) -> None:
        draws = Random(seed)
        conditions = NetworkConditions(
            delay_s=draws.choice((0.001, 0.02, 0.2)),
            split=draws.choice((0.0, 0.3)),
            reset=draws.choice((0.0, 0.002, 0.02)) * trouble,
        )
        brokers = draws.choice((1, 3))
        self.simulation = Simulation(seed, brokers=brokers, conditions=conditions)
        self.simulation.create(
            "orders", [[n % brokers + 1, (n + 1) % brokers + 1][:brokers] for n in range(3)]
        )
        self.results: dict[object, Delivered | Failed] = {}
        self.order: dict[tuple[str, int], list[object]] = defaultdict(list)
        self.sent: dict[object, Send] = {}
        self.simulation.on_news["p"] = self._heard
        client = producer_client(Random(seed + 1), self.simulation.bootstrap, config)
        self.simulation.add("p", client)
        self._plan(draws, trouble)

    def _plan(self, draws: Random, trouble: float) -> None:
        simulation = self.simulation
        for token in range(draws.choice((5, 5, 40, 40, 150))):
            key = f"k{draws.randrange(8)}".encode() if draws.random() < 0.8 else None
            record = Send(
                token,
                draws.choice(TOPICS),
                None,
                key,
                b"%d " % token * draws.randrange(1, 40),
                token,
            )
            self.sent[token] = record
            simulation.at(draws.random() * 8, partial(self._send, record))
        if draws.random() < 0.7 * trouble:
            for _ in range(draws.randrange(1, 4)):
                node, when = draws.choice(simulation.brokers.ids), draws.random() * 8
                simulation.at(when, partial(simulation.stop, node))
                simulation.at(when + draws.random() * 3, partial(simulation.start, node))
        if draws.random() < 0.5 * trouble:
            for _ in range(draws.randrange(1, 6)):
                where = (
                    draws.choice(TOPICS),
                    draws.randrange(3),
                    draws.choice(simulation.brokers.ids),
                )
                simulation.at(draws.random() * 8, partial(simulation.move, *where))
        if draws.random() < 0.4 * trouble:
            for _ in range(draws.randrange(1, 3)):
                simulation.at(draws.random() * 8, simulation.crash)
        if draws.random() < 0.6 * trouble:
            simulation.trouble(
                Fault(
                    "Produce", probability=0.1, action=Action.ERROR, error=draws.choice(RETRIABLE)
                ),
                Fault("Produce", probability=0.03, action=Action.DROP),
                Fault("Produce", probability=0.05, action=Action.DELAY, delay=0.5),
                Fault(None, probability=0.03, action=Action.TRUNCATE),
                Fault(None, probability=0.01, action=Action.CORRUPT, at=6),
                Fault(None, probability=0.03, action=Action.DISCONNECT, carried_out=True),
            )
        simulation.at(11.0, simulation.calm)

    def _send(self, record: Send) -> None:
        # the order that counts is the one in which the machine gets the records
        self.order["accepted", 0].append(record.token)
        self.simulation.send_event("p", record)

    def _heard(self, effect: object) -> None:
        if isinstance(effect, Delivered | Failed):
            for token in effect.tokens:
                assert token not in self.results, f"two results for {token}"
                self.results[token] = effect
                if effect.partition >= 0:
                    self.order[effect.topic, effect.partition].append(token)

    def play(self) -> None:
        simulation = self.simulation
        simulation.pass_time(12.0)
        simulation.send_event("p", Flush("end"))
        simulation.run(lambda: Flushed("end") in simulation.news["p"])
        simulation.send_event("p", CloseProducer())
        simulation.run(lambda: ProducerClosed() in simulation.news["p"])
        simulation.to_network("p", CloseNetwork())
        simulation.pass_time(1.0)

    def account(self, *, idempotent: bool, ordered: bool = True, kept: bool = True) -> None:
        """Hold what was said against what is in the logs.

        ordered: without acknowledgement, what goes to an old leader may meet what went to the new.
        kept: what a leader alone acknowledges is lost where another one leads before it has that.
        """
        assert self.results.keys() == self.sent.keys()
        accepted = {token: at for at, token in enumerate(self.order["accepted", 0])}
        values = {token: record.value for token, record in self.sent.items()}
        for topic in TOPICS:
            known = self.simulation.brokers.topic(topic)
            for partition in range(len(known.partitions) if known else 0):
                log = self.simulation.log(topic, partition)
                at = {offset: (key, value, offset) for offset, key, value in log}
                results = self.order[topic, partition]
                assert results == sorted(results, key=accepted.__getitem__), "results out of order"
                places = []
                for token in results if kept else ():
                    effect = self.results[token]
                    if isinstance(effect, Delivered) and effect.base_offset >= 0:
                        offset = effect.base_offset + effect.tokens.index(token)
                        assert at[offset][:2] == (self.sent[token].key, values[token])
                        places.append(offset)
                assert places == sorted(places), "acknowledged records out of order"
                if idempotent:
                    stamps = [value for _, _, value in log]
                    assert len(stamps) == len(set(stamps)), "a record is there twice"
            if known and ordered:
                self._keys_are_in_order(topic, len(known.partitions))
        assert self.simulation.nothing_is_left()

    def _keys_are_in_order(self, topic: str, partitions: int) -> None:
        """A key's records are in one partition, the first time each comes as they were sent."""
        accepted = {token: at for at, token in enumerate(self.order["accepted", 0])}
        found: dict[bytes, dict[object, int]] = defaultdict(dict)
        for partition in range(partitions):
            for _, key, value in self.simulation.log(topic, partition):
                if key is not None:
                    token = int((value or b"").split()[0])
                    assert found[key].setdefault(token, partition) == partition
        for key, tokens in found.items():
            assert len(set(tokens.values())) == 1, (key, tokens)
            sent = [accepted[token] for token in tokens]
            assert sent == sorted(sent), (key, tokens)


CONFIGS: tuple[dict[str, Setting], ...] = (
    {"linger.ms": 0},
    {"linger.ms": 50, "batch.size": 300},
    {"linger.ms": 5, "batch.size": 100, "compression.type": "lz4"},
    {"linger.ms": 20, "buffer.memory": 2_000, "max.request.size": 1_500},
)
HASTE: dict[str, Setting] = {
    "request.timeout.ms": 1_500,
    "delivery.timeout.ms": 120_000,
    "reconnect.backoff.max.ms": 300,
    "retry.backoff.max.ms": 300,
}


@pytest.mark.fuzz
@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(CHUNKS))
def test_nothing_acknowledged_is_lost_doubled_or_out_of_order(part: int) -> None:
    for seed in chunk(part, CHUNKS):
        with replayable(seed):
            scenario = Scenario(seed, {**HASTE, **CONFIGS[seed % len(CONFIGS)]})
            scenario.play()
            scenario.account(idempotent=True)
            lost = [each for each in scenario.results.values() if isinstance(each, Failed)]
            assert not lost, f"the cluster came back, yet {lost[0]}"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_without_idempotence_each_record_has_one_result_in_order(acks: str) -> None:
    for seed in chunk(0, CHUNKS):
        config = {**HASTE, **CONFIGS[seed % len(CONFIGS)]}
        with replayable(seed):
            scenario = Scenario(seed, {**config, "acks": acks, "enable.idempotence": False})
            scenario.play()
            scenario.account(idempotent=False, ordered=acks != "0", kept=acks == "all")


def test_a_seed_replays_to_the_byte() -> None:
    for seed in range(3, 13):
        runs = []
        for _ in range(2):
            scenario = Scenario(seed, {**HASTE, **CONFIGS[seed % len(CONFIGS)]})
            scenario.play()
            runs.append((scenario.simulation.digest, scenario.simulation.now))
        assert runs[0] == runs[1]

"""The producer and the broker on a wire that delays, splits, drops: what was acknowledged is there,
once and in order.
"""

from __future__ import annotations

import os
from collections import defaultdict
from functools import partial
from random import Random

import pytest

from kafkawire.broker import Action, Fault
from kafkawire.client.config import Setting
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
from tests.client.made import producer_client
from tests.client.world import Weather, World

SEEDS = int(os.environ.get("KAFKAWIRE_SEEDS", "1000"))
CHUNKS = 10
TOPICS = ("orders", "parcels")
RETRIABLE = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)
RELEASES = (None, "2.8", "3.9")


class Story:
    """One run: records with keys sent while things go wrong; then calm, and an account."""

    def __init__(self, seed: int, config: dict[str, Setting], trouble: float = 1.0) -> None:
        draws = Random(seed)
        weather = Weather(
            delay_s=draws.choice((0.001, 0.02, 0.2)),
            split=draws.choice((0.0, 0.3)),
            reset=draws.choice((0.0, 0.002, 0.02)) * trouble,
        )
        self.world = World(seed, brokers=draws.choice((1, 3)), weather=weather)
        self.results: dict[object, Delivered | Failed] = {}
        self.order: dict[tuple[str, int], list[object]] = defaultdict(list)
        self.sent: dict[object, Send] = {}
        self.world.on_news["p"] = self._heard
        client = producer_client(Random(seed + 1), self.world.bootstrap, config)
        self.world.add("p", client)
        self._plan(draws, trouble)

    def _plan(self, draws: Random, trouble: float) -> None:
        world = self.world
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
            world.at(draws.random() * 8, partial(self._send, record))
        if draws.random() < 0.7 * trouble:
            for _ in range(draws.randrange(1, 4)):
                node, when = draws.choice(list(world.cluster.brokers)), draws.random() * 8
                world.at(when, partial(world.stop, node))
                world.at(when + draws.random() * 3, partial(world.start, node))
        if draws.random() < 0.5 * trouble:
            for _ in range(draws.randrange(1, 6)):
                where = draws.choice(TOPICS), 0, draws.choice(list(world.cluster.brokers))
                world.at(draws.random() * 8, partial(world.move, *where))
        if draws.random() < 0.6 * trouble:
            world.cluster.faults += [
                Fault(
                    "Produce", probability=0.1, action=Action.ERROR, error=draws.choice(RETRIABLE)
                ),
                Fault("Produce", probability=0.03, action=Action.DROP),
                Fault("Produce", probability=0.05, action=Action.DELAY, delay=0.5),
                Fault(None, probability=0.03, action=Action.TRUNCATE),
                Fault(None, probability=0.03, action=Action.DISCONNECT, carried_out=True),
            ]
        world.at(11.0, self._calm)

    def _send(self, record: Send) -> None:
        # the order that counts is the one in which the machine is told
        self.order["told", 0].append(record.token)
        self.world.tell("p", record)

    def _calm(self) -> None:
        self.world.cluster.faults.clear()
        self.world.weather.reset = 0.0
        for node in self.world.cluster.brokers:
            self.world.start(node)

    def _heard(self, effect: object) -> None:
        if isinstance(effect, Delivered | Failed):
            for token in effect.tokens:
                assert token not in self.results, f"two results for {token}"
                self.results[token] = effect
                if effect.partition >= 0:
                    self.order[effect.topic, effect.partition].append(token)

    def play(self) -> None:
        world = self.world
        world.pass_time(12.0)
        world.tell("p", Flush("end"))
        world.run(lambda: Flushed("end") in world.news["p"])
        world.tell("p", CloseProducer())
        world.run(lambda: ProducerClosed() in world.news["p"])

    def account(self, *, idempotent: bool) -> None:
        """Hold what was said against what is in the logs."""
        assert self.results.keys() == self.sent.keys()
        told = {token: at for at, token in enumerate(self.order["told", 0])}
        values = {token: record.value for token, record in self.sent.items()}
        for topic in TOPICS:
            known = self.world.cluster.topics.get(topic)
            for partition in range(len(known.partitions) if known else 0):
                log = self.world.log(topic, partition)
                at = {offset: (key, value, offset) for offset, key, value in log}
                results = self.order[topic, partition]
                assert results == sorted(results, key=told.__getitem__), "results out of order"
                places = []
                for token in results:
                    effect = self.results[token]
                    if isinstance(effect, Delivered) and effect.base_offset >= 0:
                        offset = effect.base_offset + effect.tokens.index(token)
                        assert at[offset][:2] == (self.sent[token].key, values[token])
                        places.append(offset)
                assert places == sorted(places), "acknowledged records out of order"
                if idempotent:
                    stamps = [value for _, _, value in log]
                    assert len(stamps) == len(set(stamps)), "a record is there twice"


def chunk(part: int) -> range:
    return range(part * SEEDS // CHUNKS, (part + 1) * SEEDS // CHUNKS)


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


@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(CHUNKS))
def test_nothing_acknowledged_is_lost_doubled_or_out_of_order(part: int) -> None:
    for seed in chunk(part):
        story = Story(seed, {**HASTE, **CONFIGS[seed % len(CONFIGS)]})
        try:
            story.play()
            story.account(idempotent=True)
            lost = [each for each in story.results.values() if isinstance(each, Failed)]
            assert not lost, f"the cluster came back, yet {lost[0]}"
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


@pytest.mark.timeout(300)
@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_without_idempotence_each_record_has_one_result_in_order(acks: str) -> None:
    for seed in range(SEEDS // CHUNKS):
        config = {**HASTE, **CONFIGS[seed % len(CONFIGS)]}
        story = Story(seed, {**config, "acks": acks, "enable.idempotence": False})
        try:
            story.play()
            story.account(idempotent=False)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


def test_a_seed_replays_to_the_byte() -> None:
    for seed in (3, 17):
        runs = []
        for _ in range(2):
            story = Story(seed, {**HASTE, **CONFIGS[seed % len(CONFIGS)]})
            story.play()
            runs.append((story.world.digest, story.world.now))
        assert runs[0] == runs[1]

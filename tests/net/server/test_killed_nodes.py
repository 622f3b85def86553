"""Nodes as processes that are killed while clients write: nothing acknowledged is lost.

`make soak` kills three processes at 200 random points.
"""

from __future__ import annotations

import itertools
import random
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.fuzzing import SOAK

from .node_processes import NodeProcess, nodes

KILLS = 5 if SOAK == 1 else 200
pytestmark = pytest.mark.timeout(600 if SOAK == 1 else 7200)
PARTITIONS = 3
SECONDS = 120.0
Acknowledged = list[tuple[int, int]]
"""(partition, number), in the order of the acknowledgements."""


class Writer:
    """A producer in a thread, and what was acknowledged to it."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: Acknowledged = []
        self.failures: list[str] = []
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": int(SECONDS * 1000),
                "log_level": 0,
            }
        )
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self) -> None:
        for number in itertools.count():
            if self._ending.is_set():
                break
            partition = number % PARTITIONS
            self._producer.produce("t", b"%d" % number, partition=partition, on_delivery=self._done)
            self._producer.poll(0.001)

    def _done(self, error: object, message: confluent_kafka.Message) -> None:
        if error is not None:
            self.failures.append(str(error))
        else:
            self.acknowledged.append((message.partition() or 0, int(message.value() or b"")))

    def end(self) -> Acknowledged:
        """Stop writing; return what was acknowledged."""
        self._ending.set()
        self._thread.join()
        assert self._producer.flush(SECONDS) == 0
        assert not self.failures
        return self.acknowledged


def stored(bootstrap: str) -> list[list[int]]:
    """Read all partitions up to their ends."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "reader",
        "enable.partition.eof": True,
        "log_level": 0,
    }
    consumer = confluent_kafka.Consumer(settings)
    places = [confluent_kafka.TopicPartition("t", index, 0) for index in range(PARTITIONS)]
    consumer.assign(places)
    found: list[list[int]] = [[] for _ in places]
    at_end: set[int] = set()
    while len(at_end) < PARTITIONS:
        message = consumer.poll(SECONDS)
        assert message is not None
        partition = message.partition()
        assert partition is not None
        error = message.error()
        if error is None:
            found[partition].append(int(message.value() or b""))
        elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
            at_end.add(partition)
    consumer.close()
    return found


def kill(victim: NodeProcess, rng: random.Random) -> None:
    """Kill a node and start it again; one in four is killed while it starts, too."""
    victim.kill()
    victim.start()
    if rng.random() < 0.25:
        with suppress(subprocess.TimeoutExpired):
            victim.process.wait(rng.uniform(0.1, 2.0))
        victim.kill()
        victim.start()
    victim.serves()


@pytest.mark.fuzz
@pytest.mark.parametrize(("count", "kills"), [(1, 3), (3, KILLS)])
def test_nothing_acknowledged_is_lost(tmp_path: Path, count: int, kills: int) -> None:
    rng = random.Random(count)
    with nodes(tmp_path, count) as (bootstrap, processes):
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("t", PARTITIONS, count)])["t"].result(SECONDS)
        writer = Writer(bootstrap)
        for _ in range(kills):
            before = len(writer.acknowledged)
            while len(writer.acknowledged) < before + rng.randrange(100, 1000):
                assert not writer.failures
                writer._ending.wait(0.01)
            kill(rng.choice(processes), rng)
        acknowledged = writer.end()
        found = stored(bootstrap)
    assert len(acknowledged) > 100 * kills
    for partition, numbers in enumerate(found):
        assert numbers == sorted(set(numbers)), "in order, each once"
        assert {number for at, number in acknowledged if at == partition} <= set(numbers)

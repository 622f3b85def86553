"""Nodes as processes that are killed while clients write: nothing acknowledged is lost."""

from __future__ import annotations

import itertools
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.conftest import ROOT

pytestmark = pytest.mark.timeout(600)
HOST = "127.0.0.1"
PARTITIONS = 3
SECONDS = 120.0
SETTINGS = {
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": "2000",
    "default.replication.factor": "3",
    "group.initial.rebalance.delay.ms": "0",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "3",
}
Acknowledged = list[tuple[int, int]]
"""(partition, number), in the order of the acknowledgements."""


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        bound = [stack.enter_context(socket.create_server((HOST, 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in bound]


class NodeProcess:
    """A node: the same directory and ports at each start."""

    def __init__(self, node_id: int, folder: Path, port: int, controllers: str) -> None:
        self.node_id = node_id
        settings = [f"--set={name}={value}" for name, value in SETTINGS.items()]
        self._command = [sys.executable, "-m", "kafkawire_cli.main", "serve", "--quiet"]
        self._command += ["--data-dir", str(folder), "--node-id", str(node_id)]
        self._command += ["--port", str(port), "--controllers", controllers, *settings]

    def start(self) -> None:
        self.process = subprocess.Popen(self._command, cwd=ROOT, stdout=subprocess.PIPE, text=True)

    def serves(self) -> None:
        """Wait until it listens."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline().startswith("listening on ")

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextmanager
def nodes(folder: Path, count: int) -> Iterator[tuple[str, list[NodeProcess]]]:
    """Run nodes; return their bootstrap servers."""
    ports = free_ports(2 * count)
    ids = range(1, count + 1)
    controllers = ",".join(f"{id}@{HOST}:{ports[count + id - 1]}" for id in ids)
    made = [NodeProcess(id, folder / str(id), ports[id - 1], controllers) for id in ids]
    try:
        for each in made:
            each.start()
        for each in made:
            each.serves()
        yield ",".join(f"{HOST}:{port}" for port in ports[:count]), made
    finally:
        for each in made:
            each.kill()


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


@pytest.mark.parametrize(("count", "kills"), [(1, 3), (3, 5)])
def test_nothing_acknowledged_is_lost(tmp_path: Path, count: int, kills: int) -> None:
    rng = random.Random(count)
    with nodes(tmp_path, count) as (bootstrap, processes):
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("t", PARTITIONS, count)])["t"].result(SECONDS)
        writer = Writer(bootstrap)
        for _ in range(kills):
            before = len(writer.acknowledged)
            while len(writer.acknowledged) < before + rng.randrange(100, 1000):
                writer._ending.wait(0.01)
            victim = rng.choice(processes)
            victim.kill()
            victim.start()
            victim.serves()
        acknowledged = writer.end()
        found = stored(bootstrap)
    assert len(acknowledged) > 100 * kills
    for partition, numbers in enumerate(found):
        assert numbers == sorted(set(numbers)), "in order, each once"
        assert {number for at, number in acknowledged if at == partition} <= set(numbers)

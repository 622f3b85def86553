"""The brokers that suites run against: a node of ours with files, and an Apache Kafka.

Both are one node with id 0, as kafka-python's suite expects, and have the same configuration.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.real.broker import Broker, free_ports
from tests.real.java import install
from tests.real.wire import HOST, Wire

NODE_ID: Final = "0"
CONFIGURATION: Final = {
    "node.id": NODE_ID,
    "auto.create.topics.enable": "true",
    "num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
DEFAULTS: Final = {
    "group.consumer.session.timeout.ms": "45000",
    "group.consumer.max.session.timeout.ms": "60000",
    "group.share.session.timeout.ms": "45000",
    "group.share.max.session.timeout.ms": "60000",
    "group.share.min.record.lock.duration.ms": "15000",
    "group.streams.session.timeout.ms": "45000",
    "group.streams.max.session.timeout.ms": "60000",
    "log.index.size.max.bytes": "10485760",
}
"""What other tests change, and suites expect to be as in a new Kafka."""
READY_SECONDS: Final = 60.0


@contextmanager
def apache_kafka(folder: Path) -> Iterator[str]:
    """Run a new Apache Kafka; return its bootstrap servers."""
    port, sasl_port, controller_port = free_ports(3)
    broker = Broker(install(), folder, port, sasl_port, controller_port)
    quorum = {"controller.quorum.bootstrap.servers": f"{HOST}:{broker.controller_port}"}
    broker.configure({**CONFIGURATION, **DEFAULTS, **quorum})
    broker.format_storage("--standalone")
    try:
        broker.start()
        yield broker.bootstrap
    finally:
        broker.stop()


@contextmanager
def kafkawire(folder: Path) -> Iterator[str]:
    """Run a new node of ours in a process; return its bootstrap servers."""
    (port,) = free_ports(1)
    configuration = {**CONFIGURATION, **DEFAULTS}
    options = [f"--set={key}={value}" for key, value in configuration.items() if key != "node.id"]
    program = str(Path(sys.executable).with_name("kafkawire"))
    command = [program, "serve", "--quiet", f"--port={port}"]
    command += [f"--data-dir={folder / 'node'}", f"--node-id={NODE_ID}", *options]
    log_file = folder / "node.log"
    with log_file.open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            deadline = time.monotonic() + READY_SECONDS
            while not _listens(port):
                ended = process.poll() is not None
                if ended or time.monotonic() > deadline:
                    raise RuntimeError(f"the node does not listen:\n{log_file.read_text()}")
                time.sleep(0.1)
            yield f"{HOST}:{port}"
        finally:
            process.terminate()


def _listens(port: int) -> bool:
    try:
        with Wire(port, seconds=5.0):
            return True
    except OSError:
        return False


BROKERS: Final = {"Apache Kafka": apache_kafka, "kafkawire": kafkawire}

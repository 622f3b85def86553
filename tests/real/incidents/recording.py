"""Records incidents, and makes the clients and topics that they need."""

from __future__ import annotations

import gzip
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.conftest import FIXTURES
from tests.real.broker import Broker

FOLDER: Final = FIXTURES / "incidents"
SESSION_MS: Final = 6000
"""The shortest session that a broker accepts by default."""
SETTLING_SECONDS: Final = 0.5
"""How long dumpcap takes to begin, and packets to arrive."""

BUFFER_MIB: Final = "128"
"""The buffer of dumpcap, so that it loses no packets."""


@contextmanager
def recorded(
    name: str,
    *brokers: Broker,
    controllers: bool = False,
    direction: str = "",
    snaplen: int = 0,
    room: int = resource.RLIM_INFINITY,
) -> Iterator[None]:
    """Record the packets of clients of brokers.

    controllers: also those of brokers to controllers. direction: "src" or "dst", to record one
    only. snaplen: how many bytes of a packet are recorded; all if it is 0. room: bytes that there
    is room for on the disk.
    """
    ports = {port for broker in brokers for port in (broker.port, broker.sasl_port) if port}
    if controllers:
        ports |= {broker.controller_port for broker in brokers}
    expression = " or ".join(f"tcp {direction} port {port}" for port in sorted(ports))
    with recorded_on("lo", name, expression, snaplen, room):
        yield


@contextmanager
def recorded_on(
    interface: str,
    name: str,
    expression: str,
    snaplen: int = 0,
    room: int = resource.RLIM_INFINITY,
) -> Iterator[None]:
    """Record the packets of an interface that an expression of pcap selects."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.pcap"
        options = "-q", "-P", "-i", interface, "-B", BUFFER_MIB, "-s", str(snaplen)
        process = subprocess.Popen(
            ["dumpcap", *options, "-f", expression, "-w", str(path)], stderr=subprocess.DEVNULL
        )
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (room, room))
        time.sleep(SETTLING_SECONDS)
        try:
            yield
        finally:
            time.sleep(SETTLING_SECONDS)
            process.send_signal(signal.SIGINT)
            process.wait(30)
        FOLDER.mkdir(exist_ok=True)
        packed = gzip.compress(path.read_bytes(), mtime=0)
        (FOLDER / f"{name}.pcap.gz").write_bytes(packed)


def create_topic(broker: Broker, name: str, partitions: int = 1, /, **config: str) -> str:
    """Create a topic, with one partition by default."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for created in admin.create_topics([NewTopic(name, partitions, 1, config=config)]).values():
        created.result()
    return name


def producer(broker: Broker, client_id: str, **config: Any) -> Producer:
    """Return a producer; `_` in keys stands for `.`."""
    return Producer(_config(broker, client_id, config))


def consumer(broker: Broker, client_id: str, **config: Any) -> Consumer:
    """Return a consumer that starts at the beginning; `_` in keys stands for `.`."""
    usual = {"auto_offset_reset": "earliest", "group_id": "billing"}
    return Consumer(_config(broker, client_id, {**usual, **config}))


def _config(broker: Broker, client_id: str, config: dict[str, Any]) -> dict[str, Any]:
    named = {key.replace("_", "."): value for key, value in config.items()}
    return {"bootstrap.servers": broker.bootstrap, "client.id": client_id, **named}


def filled(broker: Broker, name: str, records: int) -> str:
    """Create a topic with records."""
    create_topic(broker, name)
    filler = producer(broker, "filler", linger_ms=100)
    for number in range(records):
        filler.produce(name, f"record {number}".encode())
    filler.flush()
    return name

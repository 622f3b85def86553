"""Incidents of a network that loses, delays or translates packets: a TUN interface.

What the kernel sends to the peer comes back with both addresses swapped, so a client that connects
to the peer reaches a broker of its own host, through a network whose loss, delay and MTU are set
here. Needs root; `unshare -n` keeps the interface apart from those of the host.

    client ─▶ 192.0.2.1 to .2 ─▶ TUN ─▶ swap, lose, delay ─▶ .2 to .1 ─▶ broker
"""

from __future__ import annotations

import fcntl
import os
import random
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from tests.real.broker import Broker, free_ports
from tests.real.java import Installation

from .recording import create_topic, producer, recorded_on

NAME: Final = "kafkawire0"
NEAR: Final = "192.0.2.1"
FAR: Final = "192.0.2.2"
"""Addresses for documentation (RFC 5737)."""
TUNSETIFF: Final = 0x400454CA
TUN_WITHOUT_HEADER: Final = 0x1001
LONGEST: Final = 1 << 16
ADDRESSES: Final = slice(12, 20)
"""Where source and destination are in a header of IPv4."""

AT_CLIENT: Final = "(dst host {far} and dst port {port}) or (src host {far} and src port {port})"
"""Selects packets as the client sends and receives them."""


@contextmanager
def link(*, loss: float = 0.0, delay: float = 0.0, mtu: int = 1500) -> Iterator[None]:
    """Set up the network. loss: share of packets; delay: seconds each way."""
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", NAME.encode(), TUN_WITHOUT_HEADER))
    for words in (
        ("link", "set", "lo", "up"),
        ("address", "add", f"{NEAR}/24", "dev", NAME),
        ("link", "set", NAME, "mtu", str(mtu), "up"),
    ):
        subprocess.run(["ip", *words], check=True)
    queue: SimpleQueue[tuple[float, bytes] | None] = SimpleQueue()
    threads = (
        threading.Thread(target=_receive, args=(device, queue, loss, delay), daemon=True),
        threading.Thread(target=_send, args=(device, queue)),
    )
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        queue.put(None)
        threads[1].join()
        subprocess.run(["ip", "link", "delete", NAME], check=True)


def _receive(
    device: int, queue: SimpleQueue[tuple[float, bytes] | None], loss: float, delay: float
) -> None:
    rng = random.Random(1)
    while True:
        try:
            packet = os.read(device, LONGEST)
        except OSError:  # the interface was deleted
            return
        if packet[0] >> 4 == 4 and rng.random() >= loss:
            addresses = packet[ADDRESSES]
            swapped = packet[:12] + addresses[4:] + addresses[:4] + packet[20:]
            queue.put((time.monotonic() + delay, swapped))


def _send(device: int, queue: SimpleQueue[tuple[float, bytes] | None]) -> None:
    while (item := queue.get()) is not None:
        due, packet = item
        time.sleep(max(0.0, due - time.monotonic()))
        os.write(device, packet)


@contextmanager
def far_broker(installation: Installation, folder: Path) -> Iterator[Broker]:
    """Run a broker that clients reach through the network."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    port, controller_port = free_ports(2)
    broker = Broker(installation, folder, port, 0, controller_port)
    broker.format(
        {
            "listeners": f"CLIENTS://0.0.0.0:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"CLIENTS://{FAR}:{port}",
            "inter.broker.listener.name": "CLIENTS",
        }
    )
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()


@contextmanager
def _recorded(name: str, broker: Broker) -> Iterator[None]:
    with recorded_on(NAME, name, AT_CLIENT.format(far=FAR, port=broker.port)):
        yield


def _send_records(broker: Broker, client: str, topic: str, records: int, size: int) -> None:
    servers = {"bootstrap.servers": f"{FAR}:{broker.port}"}
    sender = producer(broker, client, **servers)
    for _ in range(records):
        sender.produce(topic, bytes(size))
        sender.flush()


def _topic(broker: Broker, name: str) -> str:
    return create_topic(broker, name)


def retransmissions(broker: Broker) -> None:
    """Lose one in twenty packets."""
    with link(loss=0.05), _recorded("retransmissions", broker):
        _send_records(broker, "branch", _topic(broker, "receipts"), 6, 600_000)


def network_latency(broker: Broker) -> None:
    """Produce over a path of 30 ms each way."""
    with link(delay=0.03), _recorded("network-latency", broker):
        _send_records(broker, "overseas", _topic(broker, "freight"), 40, 100)


def small_segments(broker: Broker) -> None:
    """Produce through a tunnel with a small MTU."""
    with link(mtu=1000), _recorded("small-segments", broker):
        _send_records(broker, "tunnelled", _topic(broker, "letters-home"), 3, 600_000)


def copied_connections(broker: Broker) -> None:
    """Record packets before and after address translation."""
    expression = f"tcp port {broker.port}"
    with link(), recorded_on(NAME, "copied-connections", expression):
        _send_records(broker, "pod", _topic(broker, "readings-of-pods"), 20, 100)

"""Incidents of the network beside Kafka: TLS, refused connections, receive windows."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import Final

from tests.real.broker import Broker

from .recording import create_topic, producer, recorded

READING: Final = """
import sys
from confluent_kafka import Consumer

reader = Consumer({
    "bootstrap.servers": sys.argv[1], "client.id": "thumbnailer", "group.id": "pictures",
    "auto.offset.reset": "earliest", "fetch.max.bytes": 50_000_000,
    "max.partition.fetch.bytes": 50_000_000,
})
reader.subscribe([sys.argv[2]])
while True:
    reader.poll(1)
"""
"""A consumer that reads as much as it can."""

PICTURES: Final = 14
PICTURE_BYTES: Final = 1_000_000 - 1000
"""More than the receive buffer of a socket."""


def tls_handshakes(broker: Broker) -> None:
    """Use TLS at a listener without it."""
    with recorded("tls-handshakes", broker):
        sender = producer(broker, "courier", security_protocol="SSL", reconnect_backoff_ms=500)
        sender.poll(3)


def failed_connections(broker: Broker) -> None:
    """Stop a broker while a producer sends to it, and start it again."""
    topic = create_topic(broker, "orders-of-the-day")
    with recorded("failed-connections", broker):
        sender = producer(broker, "teller", reconnect_backoff_ms=200, reconnect_backoff_max_ms=300)
        sender.produce(topic, b"first")
        sender.flush()
        broker.stop()
        sender.produce(topic, b"second")
        sender.flush(3)
        broker.start()
        sender.flush(30)


def zero_windows(broker: Broker) -> None:
    """Pause a consumer while it fetches more than its receive buffer has room for."""
    topic = create_topic(broker, "pictures")
    filler = producer(broker, "filler")
    with recorded("zero-windows", broker):
        reader = subprocess.Popen([sys.executable, "-c", READING, broker.bootstrap, topic])
        time.sleep(6)
        reader.send_signal(signal.SIGSTOP)
        for _ in range(PICTURES):
            filler.produce(topic, bytes(PICTURE_BYTES))
        filler.flush()
        time.sleep(4)
        reader.send_signal(signal.SIGCONT)
        time.sleep(2)
        reader.kill()
        reader.wait(30)


def one_way_captures(broker: Broker) -> None:
    """Record what brokers send, only: `src port` instead of `port`."""
    topic = create_topic(broker, "monologues")
    with recorded("one-way-captures", broker, direction="src"):
        _produce(broker, topic)


def capture_loss(broker: Broker) -> None:
    """Record the first 96 bytes of each packet, only."""
    topic = create_topic(broker, "abstracts")
    with recorded("capture-loss", broker, snaplen=96):
        _produce(broker, topic)


def _produce(broker: Broker, topic: str) -> None:
    sender = producer(broker, "actor")
    for _ in range(20):
        sender.produce(topic, bytes(300))
        sender.flush()

"""Incidents of transactional producers, and of the groups whose offsets they commit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException, Producer, TopicPartition

from tests.real.broker import Broker, running
from tests.real.java import Installation

from .cluster import Cluster
from .connecting import pause, resume
from .recording import consumer, create_topic, filled, producer, recorded

EXPIRING: Final = {
    "transactional.id.expiration.ms": "1000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "500",
}


@contextmanager
def forgetful(installation: Installation, folder: Path) -> Iterator[Broker]:
    """Run a broker that forgets transactional ids after a second."""
    with running(installation, folder, EXPIRING) as broker:
        yield broker


def transactional(broker: Broker, client_id: str) -> Producer:
    """Return a transactional producer that is ready."""
    sender = producer(broker, client_id, transactional_id=f"{client_id}-1")
    sender.init_transactions(60)
    return sender


def send_in_transaction(sender: Producer, topic: str) -> None:
    """Commit a record."""
    sender.begin_transaction()
    sender.produce(topic, b"signed")
    sender.commit_transaction(30)


def expired_transactional_ids(broker: Broker) -> None:
    """Let a producer be idle for longer than its transactional id is kept."""
    topic = create_topic(broker, "treaties")
    with recorded("expired-transactional-ids", broker):
        sender = transactional(broker, "envoy")
        send_in_transaction(sender, topic)
        time.sleep(5)
        with suppress(KafkaException):
            send_in_transaction(sender, topic)


def unstable_offsets(broker: Broker) -> None:
    """Leave offsets of a group in an open transaction, and let another member take over."""
    topic = filled(broker, "invoices", 20)
    group = {"group_id": "bookkeeping", "isolation_level": "read_committed"}
    first = consumer(broker, "bookkeeper", **group)
    first.subscribe([topic])
    assert first.poll(60) is not None
    sender = transactional(broker, "ledger")
    sender.begin_transaction()
    offsets = [TopicPartition(topic, 0, 1)]
    sender.send_offsets_to_transaction(offsets, first.consumer_group_metadata(), 60)
    first.close()
    with recorded("unstable-offsets", broker):
        second = consumer(broker, "successor", **group)
        second.subscribe([topic])
        second.poll(15)
        sender.abort_transaction(30)
        assert second.poll(60) is not None
        second.close()


def concurrent_transactions(cluster: Cluster) -> None:
    """Pause the leader of a partition while the marker of its transaction is to be written."""
    cluster.create_topic("__transaction_state", [[1]], **{"cleanup.policy": "compact"})
    topic = cluster.create_topic("handovers", [[1], [2]])
    sender = transactional(cluster.first, "relay")
    send_in_transaction(sender, topic)
    with recorded("concurrent-transactions", *cluster.nodes):
        sender.begin_transaction()
        sender.produce(topic, b"baton", partition=1)
        sender.flush(30)
        pause(cluster.node(2))
        try:
            sender.commit_transaction(30)
            sender.begin_transaction()
            sender.produce(topic, b"baton", partition=0)
            sender.flush(4)
        finally:
            resume(cluster.node(2))
        sender.commit_transaction(60)

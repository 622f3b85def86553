"""Incidents of producers."""

from __future__ import annotations

import random
import time
from contextlib import suppress

from confluent_kafka import KafkaException

from kafkawire.messages import alter_client_quotas_request as quotas
from kafkawire.messages.alter_client_quotas_response import AlterClientQuotasResponse
from tests.real.broker import Broker
from tests.real.wire import Wire

from .recording import create_topic, producer, recorded


def tiny_batches(broker: Broker) -> None:
    """Wait for each record before the next one is sent."""
    topic = create_topic(broker, "orders")
    with recorded("tiny-batches", broker):
        sender = producer(broker, "checkout", linger_ms=0)
        for number in range(700):
            sender.produce(topic, f"order {number}".encode())
            sender.flush()


def acks_mixed(broker: Broker) -> None:
    """One of two producers does not wait for all replicas."""
    topic = create_topic(broker, "payments")
    with recorded("acks-mixed", broker):
        careful, careless = producer(broker, "ledger"), producer(broker, "legacy", acks="1")
        for number in range(20):
            for sender in (careful, careless):
                sender.produce(topic, f"payment {number}".encode())
                sender.flush()


def oversize_records(broker: Broker) -> None:
    """Send records that are larger than the topic allows."""
    topic = create_topic(broker, "documents", **{"max.message.bytes": "5000"})
    rng = random.Random(1)
    with recorded("oversize-records", broker):
        sender = producer(broker, "scanner")
        for _ in range(3):
            sender.produce(topic, rng.randbytes(6000))
            sender.flush()


def throttling(broker: Broker) -> None:
    """Produce more than a quota allows."""
    topic = create_topic(broker, "metrics")
    entity = quotas.EntityData(entity_type="client-id", entity_name="exporter")
    limit = quotas.OpData(key="producer_byte_rate", value=20_000.0)
    entry = quotas.EntryData(entity=[entity], ops=[limit])
    with Wire(broker.port) as wire:
        request = quotas.AlterClientQuotasRequest(entries=[entry])
        assert not wire.exchange(request, 1, AlterClientQuotasResponse).entries[0].error_code
    rng = random.Random(1)
    with recorded("throttling", broker):
        sender = producer(broker, "exporter", linger_ms=100)
        for _ in range(60):
            sender.produce(topic, rng.randbytes(1000) * 10)
            sender.poll(0.1)
        sender.flush(60)


def aborted_transactions(broker: Broker) -> None:
    """Abort most transactions."""
    topic = create_topic(broker, "transfers")
    with recorded("aborted-transactions", broker):
        sender = producer(broker, "mover", transactional_id="mover-1")
        sender.init_transactions(30)
        for number in range(10):
            sender.begin_transaction()
            sender.produce(topic, f"transfer {number}".encode())
            sender.flush()
            if number % 5:
                sender.abort_transaction(30)
            else:
                sender.commit_transaction(30)


def long_transactions(broker: Broker) -> None:
    """Do the work of half a minute in a transaction."""
    topic = create_topic(broker, "statements")
    with recorded("long-transactions", broker):
        sender = producer(broker, "month-end", transactional_id="month-end-1")
        sender.init_transactions(30)
        sender.begin_transaction()
        for _ in range(35):
            sender.produce(topic, b"statement")
            sender.flush()
            time.sleep(1)
        sender.commit_transaction(30)


def hot_keys(broker: Broker) -> None:
    """Give half of the records one key."""
    topic = create_topic(broker, "carts", 6)
    rng = random.Random(1)
    with recorded("hot-keys", broker):
        sender = producer(broker, "shop", linger_ms=200)
        for _ in range(20_000):
            key = "guest" if rng.random() < 0.5 else f"customer {rng.randrange(10_000)}"
            sender.produce(topic, b"cart", key)
        sender.flush()


def unkeyed_skew(broker: Broker) -> None:
    """Choose the same partition for records without keys."""
    topic = create_topic(broker, "audit", 6)
    with recorded("unkeyed-skew", broker):
        sender = producer(broker, "gateway", linger_ms=200)
        for _ in range(50):
            for _ in range(100):
                sender.produce(topic, bytes(1000), partition=0)
            sender.flush()
            time.sleep(1)


def fenced_producers(broker: Broker) -> None:
    """Start processes with the same transactional id, which replace each other."""
    topic = create_topic(broker, "jobs")
    with recorded("fenced-producers", broker):
        for _ in range(4):
            first, second = (
                producer(broker, f"worker-{number}", transactional_id="worker")
                for number in range(2)
            )
            first.init_transactions(30)
            first.begin_transaction()
            first.produce(topic, b"job")
            first.flush()
            second.init_transactions(30)
            with suppress(KafkaException):  # it is fenced
                first.commit_transaction(30)


def hanging_transactions(broker: Broker) -> None:
    """Leave a transaction open for longer than a minute."""
    topic = create_topic(broker, "wills")
    with recorded("hanging-transactions", broker):
        sender = producer(
            broker, "executor", transactional_id="executor-1", transaction_timeout_ms=600_000
        )
        sender.init_transactions(30)
        sender.begin_transaction()
        sender.produce(topic, b"heir")
        sender.flush()
        other = producer(broker, "registrar")
        for _ in range(66):
            other.produce(topic, b"entry")
            other.flush()
            time.sleep(1)
    sender.abort_transaction(30)


def invalid_requests(broker: Broker) -> None:
    """Ask for acknowledgements of two replicas, which there were until Kafka 0.9."""
    topic = create_topic(broker, "signatures")
    with recorded("invalid-requests", broker):
        sender = producer(broker, "typewriter", acks=2)
        for _ in range(5):
            sender.produce(topic, b"copy")
            sender.flush()


def compression(broker: Broker) -> None:
    """Send text that compresses well without compression."""
    topic = create_topic(broker, "access-log")
    line = b"GET /index.html HTTP/1.1 200 - Mozilla/5.0 (X11; Linux x86_64) 127.0.0.1 5120 bytes\n"
    with recorded("compression", broker):
        sender = producer(broker, "web", linger_ms=100)
        for _ in range(13_000):
            sender.produce(topic, line * 10)
            sender.poll(0)
        sender.flush()


def hot_partitions(broker: Broker) -> None:
    """Send nearly everything to one of six partitions, which the application chooses."""
    topic = create_topic(broker, "regions", 6)
    with recorded("hot-partitions", broker):
        sender = producer(broker, "census", linger_ms=100)
        for number in range(4000):
            partition = number // 10 % 6 if number % 10 == 0 else 4
            sender.produce(topic, bytes(1000), key=f"{number}", partition=partition)
            sender.poll(0)
        sender.flush()


def record_timestamps(broker: Broker) -> None:
    """Give records timestamps in seconds instead of milliseconds."""
    topic = create_topic(broker, "readings")
    with recorded("record-timestamps", broker):
        sender = producer(broker, "sensor")
        for _ in range(20):
            sender.produce(topic, b"21.5", timestamp=int(time.time()))
            sender.flush()


def clock_offset(broker: Broker) -> None:
    """Take timestamps from a clock that is four minutes ahead."""
    topic = create_topic(broker, "arrivals")
    with recorded("clock-offset", broker):
        sender = producer(broker, "turnstile")
        for _ in range(40):
            sender.produce(topic, b"visitor", timestamp=int((time.time() + 240) * 1000))
            sender.flush()

"""Incidents of any client: topics, metadata, connections, paused brokers."""

from __future__ import annotations

import signal
import time
from contextlib import suppress

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from tests.real.broker import GUEST, PASSWORD, Broker

from .recording import create_topic, producer, recorded


def unknown_topics(broker: Broker) -> None:
    """Produce to a topic that does not exist."""
    with recorded("unknown-topics", broker):
        sender = producer(
            broker, "audit", topic_metadata_propagation_max_ms=20_000, message_timeout_ms=15_000
        )
        sender.produce("audti", b"misspelt")
        sender.flush(30)


def authentication_failures(broker: Broker) -> None:
    """Use a wrong password."""
    with recorded("authentication-failures", broker):
        sender = producer(
            broker,
            "intruder",
            **{
                "bootstrap.servers": broker.sasl_bootstrap,
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": "PLAIN",
                "sasl_username": "alice",
                "sasl_password": "made-up",
            },
        )
        sender.poll(4)


def authorization_failures(broker: Broker) -> None:
    """Produce as a user without permissions."""
    topic = create_topic(broker, "salaries")
    with recorded("authorization-failures", broker):
        sender = producer(
            broker,
            "curious",
            message_timeout_ms=4000,
            **{
                "bootstrap.servers": broker.sasl_bootstrap,
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": "PLAIN",
                "sasl_username": GUEST,
                "sasl_password": PASSWORD,
            },
        )
        sender.produce(topic, b"raise")
        sender.flush(8)


def metadata_storm(broker: Broker) -> None:
    """List topics all the time."""
    with recorded("metadata-storm", broker):
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "client.id": "dashboard"})
        for _ in range(100):
            admin.list_topics(timeout=10)
            time.sleep(0.3)


def connection_churn(broker: Broker) -> None:
    """Create a producer for each record."""
    topic = create_topic(broker, "mails")
    with recorded("connection-churn", broker):
        for number in range(60):
            sender = producer(broker, "mailer")
            sender.produce(topic, f"mail {number}".encode())
            sender.flush()


def many_connections(broker: Broker) -> None:
    """Create a producer for each task, and keep all of them."""
    topic = create_topic(broker, "thumbnails")
    with recorded("many-connections", broker):
        senders = [producer(broker, "resizer") for _ in range(60)]
        for sender in senders:
            sender.produce(topic, b"small")
            sender.flush()
        time.sleep(25)
        senders.clear()
        del sender


def broker_stalls(broker: Broker) -> None:
    """Pause a broker for a moment, three times, while several clients produce."""
    topic = create_topic(broker, "bookings")
    with recorded("broker-stalls", broker):
        senders = [producer(broker, f"desk-{number}") for number in range(8)]
        for sender in senders:
            sender.produce(topic, b"room")
            sender.flush()
        for _ in range(3):
            pause(broker)
            for sender in senders:
                sender.produce(topic, b"room")
            time.sleep(1.5)
            resume(broker)
            for sender in senders:
                sender.flush()


def unanswered_requests(broker: Broker) -> None:
    """Pause a broker until the client has given up."""
    topic = create_topic(broker, "trades")
    with recorded("unanswered-requests", broker):
        sender = waiting_at_paused_broker(broker, topic)
        sender.flush(12)
        del sender
    resume(broker)


def slow_responses(broker: Broker) -> None:
    """Pause a broker for a while."""
    topic = create_topic(broker, "bids")
    with recorded("slow-responses", broker):
        sender = waiting_at_paused_broker(broker, topic)
        sender.flush(6.5)
        resume(broker)
        sender.flush(30)


def pause(broker: Broker) -> None:
    """Pause a broker (SIGSTOP)."""
    assert broker.process is not None
    broker.process.send_signal(signal.SIGSTOP)


def waiting_at_paused_broker(broker: Broker, topic: str) -> Producer:
    """Pause a broker, and send a record to it."""
    timeouts = {"socket_timeout_ms": 8000, "message_timeout_ms": 9000}
    sender = producer(broker, "trader", request_timeout_ms=100, **timeouts)
    sender.produce(topic, b"buy")
    sender.flush()
    pause(broker)
    sender.produce(topic, b"sell")
    return sender


def resume(broker: Broker) -> None:
    """Let a paused broker go on."""
    assert broker.process is not None
    broker.process.send_signal(signal.SIGCONT)


def other_errors(broker: Broker) -> None:
    """Delete a group that does not exist, again and again."""
    with recorded("other-errors", broker):
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "client.id": "janitor"})
        for _ in range(14):
            for deleted in admin.delete_consumer_groups(["nobody"]).values():
                with suppress(KafkaException):
                    deleted.result()
            time.sleep(0.15)

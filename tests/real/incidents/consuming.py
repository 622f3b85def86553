"""Incidents of consumers and their groups."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import Final

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from tests.real.broker import Broker

from .recording import SESSION_MS, consumer, create_topic, filled, producer, recorded


def commit_rate(broker: Broker) -> None:
    """Commit each record by itself."""
    topic = filled(broker, "invoices", 200)
    with recorded("commit-rate", broker):
        reader = consumer(broker, "invoicing", enable_auto_commit=False)
        reader.subscribe([topic])
        for _ in range(200):
            message = reader.poll(30)
            assert message is not None
            reader.commit(message=message, asynchronous=False)
        reader.close()


def tiny_fetches(broker: Broker) -> None:
    """Do not let the broker wait for records."""
    topic = create_topic(broker, "alerts")
    with recorded("tiny-fetches", broker):
        reader = consumer(broker, "alerting", fetch_wait_max_ms=2)
        reader.subscribe([topic])
        deadline = time.monotonic() + 4
        while time.monotonic() < deadline:
            reader.poll(0.5)
        reader.close()


def offset_resets(broker: Broker) -> None:
    """Read from an offset whose record was deleted."""
    topic = filled(broker, "logs", 100)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for deleted in admin.delete_records([TopicPartition(topic, 0, 90)]).values():
        deleted.result()
    with recorded("offset-resets", broker):
        reader = consumer(broker, "archive")
        reader.assign([TopicPartition(topic, 0, 5)])
        assert reader.poll(30) is not None
        reader.close()


def poll_timeouts(broker: Broker) -> None:
    """Take longer for a record than max.poll.interval.ms, twice."""
    topic = filled(broker, "images", 100)
    with recorded("poll-timeouts", broker):
        reader = consumer(
            broker,
            "thumbnails",
            max_poll_interval_ms=SESSION_MS,
            session_timeout_ms=SESSION_MS,
        )
        reader.subscribe([topic])
        for _ in range(2):
            while (message := reader.poll(30)) is None or message.error():
                pass
            time.sleep(SESSION_MS / 1000 + 3)
        while (message := reader.poll(30)) is None or message.error():
            pass
        reader.close()


def rebalance_storm(broker: Broker) -> None:
    """Restart a member of two every few seconds."""
    topic = filled(broker, "clicks", 10)
    with recorded("rebalance-storm", broker):
        steady = consumer(broker, "steady", session_timeout_ms=SESSION_MS)
        steady.subscribe([topic])
        for _ in range(12):
            restless = consumer(broker, "restless", session_timeout_ms=SESSION_MS)
            restless.subscribe([topic])
            deadline = time.monotonic() + 6
            while time.monotonic() < deadline:
                restless.poll(0.2)
                steady.poll(0.2)
            restless.close()
        steady.close()


def static_members_fighting(broker: Broker) -> None:
    """Start two processes with the same group.instance.id."""
    topic = filled(broker, "visits", 10)
    with recorded("static-members-fighting", broker):
        for _ in range(2):
            same = {"group_instance_id": "pod", "session_timeout_ms": SESSION_MS}
            pods = [consumer(broker, f"pod-{number}", **same) for number in range(2)]
            for pod in pods:
                pod.subscribe([topic])
                deadline = time.monotonic() + 5
                while time.monotonic() < deadline:
                    for one in pods:
                        one.poll(0.2)
            for pod in pods:
                pod.close()


def inconsistent_group_protocols(broker: Broker) -> None:
    """Start a member whose assignor no other member has."""
    topic = filled(broker, "reports", 10)
    with recorded("inconsistent-group-protocols", broker):
        first = consumer(broker, "monthly", partition_assignment_strategy="range")
        second = consumer(broker, "weekly", partition_assignment_strategy="roundrobin")
        for reader in (first, second):
            reader.subscribe([topic])
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline:
                first.poll(0.2)
                if reader is second:
                    second.poll(0.2)
        second.close()
        first.close()


def growing_lag(broker: Broker) -> None:
    """Process records more slowly than they are produced."""
    topic = create_topic(broker, "measurements")
    with recorded("growing-lag", broker):
        sender = producer(broker, "thermometer", linger_ms=100)
        reader = consumer(broker, "averages", enable_auto_commit=False)
        reader.subscribe([topic])
        for second in range(45):
            for _ in range(100):
                sender.produce(topic, b"21.5")
            sender.poll(0)
            until = time.monotonic() + 1
            for _ in range(20):
                reader.poll(0.05)
            if second > 5:
                reader.commit(asynchronous=True)
            time.sleep(max(0, until - time.monotonic()))
        sender.flush()
        reader.close()


def read_committed_stalled(broker: Broker) -> None:
    """Leave a transaction open for long, while others produce to the same topic."""
    topic = filled(broker, "ledgers", 10)
    with recorded("read-committed-stalled", broker):
        slow = producer(
            broker, "importer", transactional_id="import", transaction_timeout_ms=60_000
        )
        slow.init_transactions(30)
        for number in range(4):  # the last one stays open
            slow.begin_transaction()
            slow.produce(topic, b"line")
            slow.flush()
            if number < 3:
                slow.commit_transaction(30)
        sender = producer(broker, "teller")
        reader = consumer(broker, "auditor", isolation_level="read_committed")
        reader.subscribe([topic])
        deadline = time.monotonic() + 42
        while time.monotonic() < deadline:
            sender.produce(topic, b"booking")
            sender.flush()
            reader.poll(1)
        slow.commit_transaction(30)
        reader.poll(5)
        reader.close()


PAUSED: Final = """
import sys
from confluent_kafka import Consumer
reader = Consumer({
    "bootstrap.servers": sys.argv[1], "client.id": "paused", "group.id": "billing",
    "session.timeout.ms": 6000, "auto.offset.reset": "earliest", "auto.commit.interval.ms": 500,
})
reader.subscribe([sys.argv[2]])
while True:
    reader.poll(0.2)
"""


def expelled_members(broker: Broker) -> None:
    """Pause a process for longer than its session."""
    topic = filled(broker, "sensors", 10)
    with recorded("expelled-members", broker):
        process = subprocess.Popen([sys.executable, "-c", PAUSED, broker.bootstrap, topic])
        time.sleep(8)
        process.send_signal(signal.SIGSTOP)
        time.sleep(SESSION_MS / 1000 + 4)
        process.send_signal(signal.SIGCONT)
        time.sleep(8)
        process.kill()
        process.wait(30)


def long_rebalances(broker: Broker) -> None:
    """Let a member work for long before it joins the rebalance which another one starts."""
    topic = filled(broker, "drawings", 10)
    with recorded("long-rebalances", broker):
        slow = consumer(broker, "renderer", group_id="rendering")
        slow.subscribe([topic], on_revoke=lambda *_: None)
        while slow.poll(1) is None:
            pass
        for number in range(3):
            late = consumer(broker, f"helper-{number}", group_id="rendering")
            late.subscribe([topic])
            late.poll(12)  # while the other one does not poll
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline:
                slow.poll(0.2)
                late.poll(0.2)
            late.close()
            deadline = time.monotonic() + 4
            while time.monotonic() < deadline:
                slow.poll(0.2)
        slow.close()


ZOMBIE: Final = """
import sys, time
from confluent_kafka import Consumer, KafkaException
reader = Consumer({
    "bootstrap.servers": sys.argv[1], "client.id": "sleeper", "group.id": "beds",
    "session.timeout.ms": 6000, "auto.offset.reset": "earliest", "enable.auto.commit": False,
})
reader.subscribe([sys.argv[2]])
while True:
    message = reader.poll(0.2)
    if message is not None and not message.error():
        for _ in range(40):
            try:
                reader.commit(message=message, asynchronous=False)
            except KafkaException:
                pass
            time.sleep(0.2)
"""
"""A consumer that commits what it processes, whatever becomes of its membership."""


def zombie_commits(broker: Broker) -> None:
    """Pause a consumer for longer than its session, which then commits."""
    topic = filled(broker, "beds", 10)
    with recorded("zombie-commits", broker):
        process = subprocess.Popen([sys.executable, "-c", ZOMBIE, broker.bootstrap, topic])
        time.sleep(6)
        process.send_signal(signal.SIGSTOP)
        time.sleep(SESSION_MS / 1000 + 3)
        process.send_signal(signal.SIGCONT)
        time.sleep(8)
        process.kill()
        process.wait(30)

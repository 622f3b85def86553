"""Incidents of Kafka's own clients: the tools of Kafka 4.4.0."""

from __future__ import annotations

import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.real.broker import Broker

from .connecting import pause, resume
from .recording import SESSION_MS, create_topic, filled, recorded

PRODUCER: Final = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER: Final = "org.apache.kafka.tools.consumer.ConsoleConsumer"
SLOW: Final = Path(__file__).with_name("SlowShareConsumer.java")
STARTING_SECONDS: Final = 8
"""How long a consumer takes to join its group."""


def produce(broker: Broker, topic: str, records: int, per_second: int, **config: object) -> None:
    """Produce records of 20 bytes; `_` in keys stands for `.`."""
    broker.installation.run(
        PRODUCER,
        *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--record-size", "20"),
        *("--num-records", str(records), "--throughput", str(per_second)),
        *("--command-property", *properties(config)),
    )


@contextmanager
def consuming(broker: Broker, topic: str, **config: object) -> Iterator[subprocess.Popen[bytes]]:
    """Run a consumer from the beginning of a topic."""
    options = [part for text in properties(config) for part in ("--command-property", text)]
    arguments = "--bootstrap-server", broker.bootstrap, "--topic", topic, "--from-beginning"
    command = broker.installation.command(CONSUMER, *arguments, *options)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        time.sleep(STARTING_SECONDS)
        yield process
        process.kill()


def properties(config: dict[str, object]) -> list[str]:
    """Write the configuration of a client."""
    return [f"{key.replace('_', '.')}={value}" for key, value in config.items()]


def tiny_batches_java(broker: Broker) -> None:
    """Send each record at once."""
    topic = create_topic(broker, "clicks")
    with recorded("tiny-batches-java", broker):
        produce(broker, topic, 600, 150, client_id="tracker", linger_ms=0, batch_size=0)


def commit_rate_java(broker: Broker) -> None:
    """Commit twenty times a second, while records come one by one."""
    topic = create_topic(broker, "visits")
    settings = {"client_id": "counter", "group_id": "visitors", "auto_commit_interval_ms": 50}
    with recorded("commit-rate-java", broker), consuming(broker, topic, **settings):
        produce(broker, topic, 300, 50, client_id="door")


def expelled_members_java(broker: Broker) -> None:
    """Pause a consumer for longer than its session."""
    topic = filled(broker, "meters", 10)
    settings = {
        "client_id": "billing-java",
        "group_id": "billing",
        "session_timeout_ms": SESSION_MS,
    }
    with (
        recorded("expelled-members-java", broker),
        consuming(broker, topic, heartbeat_interval_ms=1000, **settings) as process,
    ):
        process.send_signal(signal.SIGSTOP)
        time.sleep(SESSION_MS / 1000 + 4)
        process.send_signal(signal.SIGCONT)
        time.sleep(6)


def eager_beside_cooperative(broker: Broker) -> None:
    """Upgrade one of two members to the cooperative assignor."""
    topic = filled(broker, "shelves", 10)
    eager = "org.apache.kafka.clients.consumer.RangeAssignor"
    cooperative = f"org.apache.kafka.clients.consumer.CooperativeStickyAssignor,{eager}"
    strategy = "partition_assignment_strategy"
    with (
        recorded("eager-beside-cooperative", broker),
        consuming(broker, topic, client_id="old", group_id="stores", **{strategy: eager}),
        consuming(broker, topic, client_id="new", group_id="stores", **{strategy: cooperative}),
    ):
        time.sleep(4)


def short_timeouts(broker: Broker) -> None:
    """Let a producer wait for less than a broker needs, again and again."""
    topic = create_topic(broker, "auctions")
    settings = {"client_id": "bidder", "linger_ms": 0, "request_timeout_ms": 700}
    command = broker.installation.command(
        PRODUCER,
        *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--record-size", "20"),
        *("--num-records", "120", "--throughput", "5"),
        *("--command-property", *properties({**settings, "delivery_timeout_ms": 20_000})),
    )
    with (
        recorded("short-timeouts", broker),
        subprocess.Popen(command, stdout=subprocess.DEVNULL) as process,
    ):
        time.sleep(STARTING_SECONDS / 2)
        for _ in range(5):
            pause(broker)
            time.sleep(1.5)
            resume(broker)
            time.sleep(2)
        process.kill()


def refused_delegation_tokens(broker: Broker) -> None:
    """Create a delegation token on a connection that is not authenticated."""
    with recorded("refused-delegation-tokens", broker), tempfile.TemporaryDirectory() as folder:
        configuration = Path(folder, "client.properties")
        configuration.write_text("client.id=concierge\n")
        command = broker.installation.command(
            "org.apache.kafka.tools.DelegationTokenCommand",
            *("--bootstrap-server", broker.bootstrap, "--command-config", str(configuration)),
            *("--create", "--max-life-time-period", "-1"),
        )
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def late_acknowledgements(broker: Broker) -> None:
    """Acknowledge records after their acquisition lock of a second has ended."""
    topic = filled(broker, "prescriptions", 20)
    broker.installation.run(
        "org.apache.kafka.tools.ConfigCommand",
        *("--bootstrap-server", broker.bootstrap, "--alter", "--group", "pharmacy"),
        *("--add-config", "share.record.lock.duration.ms=1000,share.auto.offset.reset=earliest"),
    )
    with recorded("late-acknowledgements", broker):
        broker.installation.run(str(SLOW), broker.bootstrap, "pharmacy", "dispenser", topic)

"""Records incidents: real clients in trouble at a real Kafka, each as a small capture.

    python -m tests.real.incidents [NAME...]

Writes fixtures/incidents/NAME.pcap.gz, where NAME is the rule of `kafkawire diagnose` that reports
the incident first. Needs dumpcap, Java and the jars of Kafka; takes about five minutes.
"""

from __future__ import annotations

import gzip
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkawire.messages import alter_client_quotas_request as quotas
from kafkawire.messages.alter_client_quotas_response import AlterClientQuotasResponse
from tests.conftest import FIXTURES

from .broker import Broker, running
from .class_archive import with_archive
from .java import install
from .wire import Wire

FOLDER: Final = FIXTURES / "incidents"
SESSION_MS: Final = 6000
"""The shortest session that a broker accepts by default."""
SETTLING_SECONDS: Final = 0.5
"""How long dumpcap takes to begin, and packets to arrive."""


@contextmanager
def recorded(name: str, broker: Broker) -> Iterator[None]:
    """Record the packets of clients of a broker."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.pcap"
        ports = f"tcp port {broker.port} or tcp port {broker.sasl_port}"
        process = subprocess.Popen(
            ["dumpcap", "-q", "-P", "-i", "lo", "-f", ports, "-w", str(path)],
            stderr=subprocess.DEVNULL,
        )
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


def create_topic(broker: Broker, name: str, **config: str) -> str:
    """Create a topic with one partition."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for created in admin.create_topics([NewTopic(name, 1, 1, config=config)]).values():
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


# -- the incidents


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


def unknown_topics(broker: Broker) -> None:
    """Produce to a topic that does not exist."""
    with recorded("unknown-topics", broker):
        sender = producer(
            broker, "audit", topic_metadata_propagation_max_ms=20_000, message_timeout_ms=15_000
        )
        sender.produce("audti", b"misspelt")
        sender.flush(30)


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


def oversize_records(broker: Broker) -> None:
    """Send records that are larger than the topic allows."""
    topic = create_topic(broker, "documents", **{"max.message.bytes": "5000"})
    rng = random.Random(1)
    with recorded("oversize-records", broker):
        sender = producer(broker, "scanner")
        for _ in range(3):
            sender.produce(topic, rng.randbytes(6000))
            sender.flush()


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


def waiting_at_paused_broker(broker: Broker, topic: str) -> Producer:
    """Pause a broker, and send a record to it."""
    timeouts = {"socket_timeout_ms": 8000, "message_timeout_ms": 9000}
    sender = producer(broker, "trader", request_timeout_ms=100, **timeouts)
    sender.produce(topic, b"buy")
    sender.flush()
    assert broker.process is not None
    broker.process.send_signal(signal.SIGSTOP)
    sender.produce(topic, b"sell")
    return sender


def resume(broker: Broker) -> None:
    """Let a paused broker go on."""
    assert broker.process is not None
    broker.process.send_signal(signal.SIGCONT)


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


# -- nothing is wrong


def healthy(broker: Broker) -> None:
    """Produce, consume in a group whose members are deployed anew, and commit transactions."""
    topic = create_topic(broker, "sales")
    with recorded("healthy", broker):
        plain = producer(broker, "shop", linger_ms=5)
        exact = producer(broker, "ledger", transactional_id="ledger-1", linger_ms=5)
        exact.init_transactions(30)
        for _ in range(2):
            members = [
                consumer(broker, f"reports-{number}", group_id="reports") for number in range(2)
            ]
            members.append(consumer(broker, "stock", group_id="stock", group_protocol="consumer"))
            for member in members:
                member.subscribe([topic])
            deadline = time.monotonic() + 12
            while time.monotonic() < deadline:
                exact.begin_transaction()
                for sender in (plain, exact):
                    for number in range(10):
                        sender.produce(topic, f"sale {number}".encode() * 20)
                exact.commit_transaction(30)
                for member in members:
                    member.poll(0.1)
                plain.poll(0.2)
            for member in members:
                member.close()
        plain.flush()


INCIDENTS: Final[dict[str, Callable[[Broker], None]]] = {
    incident.__name__.replace("_", "-"): incident
    for incident in (
        tiny_batches,
        acks_mixed,
        commit_rate,
        tiny_fetches,
        poll_timeouts,
        rebalance_storm,
        static_members_fighting,
        expelled_members,
        unknown_topics,
        offset_resets,
        oversize_records,
        authentication_failures,
        throttling,
        metadata_storm,
        connection_churn,
        unanswered_requests,
        slow_responses,
        aborted_transactions,
        fenced_producers,
        healthy,
    )
}
"""By name, which is that of a rule, or `healthy`."""


def main(names: list[str]) -> None:
    """Record the incidents with these names, or all."""
    installation = with_archive(install())
    with tempfile.TemporaryDirectory() as folder, running(installation, Path(folder)) as broker:
        for name in names or INCIDENTS:
            print(name, flush=True)
            INCIDENTS[name](broker)


if __name__ == "__main__":
    main(sys.argv[1:])

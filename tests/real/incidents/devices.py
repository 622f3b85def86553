"""Incidents of devices between clients and a broker, of its disks and of its listener with TLS."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.net.server.certificates import BROKER as CERTIFICATE
from tests.real.broker import Broker, free_ports
from tests.real.java import Installation
from tests.real.wire import HOST

from .proxy import Proxy, proxied
from .recording import consumer, create_topic, producer, recorded

TLS: Final = {
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SSL",
    "listener.name.sasl.ssl.keystore.location": CERTIFICATE,
    "listener.name.sasl.ssl.keystore.type": "PEM",
    "authorizer.class.name": "",
}
"""The listener SASL of other incidents has TLS, here."""
FULL: Final = 40_000
"""Bytes for which a full disk has room."""


@dataclass(frozen=True)
class Site:
    """A broker with two disks, reached through a proxy. broker: with the port of the proxy."""

    broker: Broker
    proxy: Proxy
    second_disk: Path


@contextmanager
def running_site(installation: Installation, folder: Path) -> Iterator[Site]:
    """Run a broker behind a proxy."""
    target, port, tls_port, controller_port = free_ports(4)
    broker = Broker(installation, folder, target, tls_port, controller_port)
    second_disk = folder / "second-disk"
    advertised = f"CLIENTS://{HOST}:{port},SASL://{HOST}:{tls_port}"
    disks = {"log.dirs": f"{broker.data},{second_disk}", "metadata.log.dir": str(broker.data)}
    classic = {"group.coordinator.rebalance.protocols": "classic"}
    broker.format({**TLS, **disks, **classic, "advertised.listeners": advertised})
    broker.start()
    try:
        with proxied(port, target) as proxy:
            outside = Broker(installation, folder, port, tls_port, controller_port)
            yield Site(outside, proxy, second_disk)
    finally:
        broker.stop()


def produce_retries(site: Site) -> None:
    """Cut the connections of an idempotent producer before it has its responses."""
    topic = create_topic(site.broker, "withdrawals")
    with recorded("produce-retries", site.broker):
        sender = producer(
            site.broker, "teller-machine", enable_idempotence=True, reconnect_backoff_ms=50
        )
        for number in range(30):
            if number % 2:
                site.proxy.cutting.set()
            sender.produce(topic, b"20")
            sender.flush()


def broker_errors(site: Site) -> None:
    """Damage the records of a producer on their way."""
    topic = create_topic(site.broker, "telegrams")
    with recorded("broker-errors", site.broker):
        sender = producer(site.broker, "telegraph", message_timeout_ms=4000)
        sender.produce(topic, b"first")
        sender.flush()
        site.proxy.damaging.set()
        sender.produce(topic, bytes(400))
        sender.flush(8)
        site.proxy.damaging.clear()


def disk_failures(site: Site) -> None:
    """Let a disk fail while a producer sends to its partitions."""
    topic = create_topic(site.broker, "deposits", 4, **{"segment.ms": "1000"})
    with recorded("disk-failures", site.broker):
        sender = producer(site.broker, "vault", message_timeout_ms=5000)
        for number in range(60):
            if number == 20:
                shutil.rmtree(site.second_disk)
            for partition in range(4):
                sender.produce(topic, b"gold", partition=partition)
            sender.poll(0)
            time.sleep(0.1)
        sender.flush(8)


def unsupported_versions(site: Site) -> None:
    """Consume with the protocol of KIP-848, which the broker has switched off."""
    topic = create_topic(site.broker, "waltzes")
    with recorded("unsupported-versions", site.broker):
        reader = consumer(site.broker, "dancer", group_id="ballroom", group_protocol="consumer")
        reader.subscribe([topic])
        reader.poll(3)
        del reader


def refused_members(site: Site) -> None:
    """Join with a session that is shorter than the broker allows."""
    topic = create_topic(site.broker, "sprints")
    with recorded("refused-members", site.broker):
        reader = consumer(site.broker, "hurdler", group_id="athletes", session_timeout_ms=1500)
        reader.subscribe([topic])
        reader.poll(4)
        del reader


def refused_transactions(site: Site) -> None:
    """Open transactions with a longer timeout than the broker allows."""
    with recorded("refused-transactions", site.broker):
        sender = producer(
            site.broker, "surveyor", transactional_id="survey-1", transaction_timeout_ms=3_600_000
        )
        with suppress(KafkaException):
            sender.init_transactions(5)


def refused_changes(site: Site) -> None:
    """Create a topic with more replicas than there are brokers."""
    with recorded("refused-changes", site.broker):
        admin = AdminClient({"bootstrap.servers": site.broker.bootstrap, "client.id": "deployer"})
        for _ in range(3):
            for created in admin.create_topics([NewTopic("ledgers", 3, 3)]).values():
                with suppress(KafkaException):
                    created.result(10)


def rejected_records(site: Site) -> None:
    """Produce records without keys to a compacted topic."""
    topic = create_topic(site.broker, "addresses", 1, **{"cleanup.policy": "compact"})
    with recorded("rejected-records", site.broker):
        sender = producer(site.broker, "removals")
        for _ in range(5):
            sender.produce(topic, b"moved")
            sender.flush()


def rejected_requests_consumer(site: Site) -> None:
    """Consume with the versions of Kafka 0.9, which JoinGroup no longer has."""
    topic = create_topic(site.broker, "ballads")
    with recorded("rejected-requests-consumer", site.broker):
        reader = consumer(
            site.broker,
            "minstrel",
            group_id="taverns",
            api_version_request=False,
            broker_version_fallback="0.9.0",
        )
        reader.subscribe([topic])
        reader.poll(6)
        del reader


def rejected_requests(site: Site) -> None:
    """Produce with the versions of Kafka 0.9, without ApiVersions."""
    topic = create_topic(site.broker, "gramophones")
    with recorded("rejected-requests", site.broker):
        sender = producer(
            site.broker,
            "phonograph",
            api_version_request=False,
            broker_version_fallback="0.9.0",
            message_timeout_ms=3000,
        )
        sender.produce(topic, b"needle")
        sender.flush(6)


def undecoded_connections(site: Site) -> None:
    """Produce with TLS; the capture has no keys."""
    topic = create_topic(site.broker, "envelopes")
    with recorded("undecoded-connections", site.broker):
        sender = producer(
            site.broker,
            "sealed",
            **{
                "bootstrap.servers": site.broker.sasl_bootstrap,
                "security_protocol": "SSL",
                "ssl_ca_location": CERTIFICATE,
                "ssl_endpoint_identification_algorithm": "none",
            },
        )
        for _ in range(10):
            sender.produce(topic, b"letter")
            sender.flush()


def damaged_captures(site: Site) -> None:
    """Record until the disk of the capturing host is full."""
    topic = create_topic(site.broker, "tapes")
    with recorded("damaged-captures", site.broker, room=FULL):
        sender = producer(site.broker, "recorder")
        for _ in range(120):
            sender.produce(topic, bytes(300))
            sender.flush()

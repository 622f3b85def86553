"""Incidents at a Kafka 3.9.1, the last release with the oldest versions of APIs."""

from __future__ import annotations

from typing import Any, Final

from tests.real.broker import Broker
from tests.real.java import install

from .java_clients import PRODUCER, properties
from .recording import consumer, create_topic, filled, producer, recorded

RELEASE: Final = "3.9.1"
OLD: Final[dict[str, Any]] = {"api_version_request": False, "broker_version_fallback": "0.9.0"}
"""Lets librdkafka use the versions of Kafka 0.9.0, as configurations of that time did."""


def old_versions(broker: Broker) -> None:
    """Produce with the versions of Kafka 0.9."""
    topic = create_topic(broker, "punch-cards")
    with recorded("old-versions", broker):
        sender = producer(broker, "mainframe", **OLD)
        for _ in range(20):
            sender.produce(topic, b"card")
            sender.flush()


def down_conversion(broker: Broker) -> None:
    """Read new batches with the versions of Kafka 0.9."""
    topic = filled(broker, "memoranda", 30)
    with recorded("down-conversion", broker):
        typist = producer(broker, "typist")
        reader = consumer(broker, "archivist", **OLD, fetch_wait_max_ms=10)
        reader.subscribe([topic])
        for number in range(30):
            typist.produce(topic, f"memo {number}".encode())
            typist.flush()
            assert reader.poll(30) is not None
        reader.close()


def api_versions_fallback(broker: Broker) -> None:
    """Use Kafka's newest producer at an older broker; its connections are closed when idle."""
    topic = create_topic(broker, "greetings")
    settings = {"client_id": "greeter", "linger_ms": 0, "connections_max_idle_ms": 150}
    newest = install()
    with recorded("api-versions-fallback", broker):
        newest.run(
            PRODUCER,
            *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--record-size", "20"),
            *("--num-records", "110", "--throughput", "2"),
            *("--command-property", *properties(settings)),
        )

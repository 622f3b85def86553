"""A cluster of a real Kafka and a node of ours whose brokers have two listeners.

Clients of one listener are shown the addresses of that listener, of both, by both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import confluent_kafka.admin
import pytest

from .broker import CLUSTER_ID, JAAS, PASSWORD, USER, Broker, free_ports
from .java import Installation
from .own_node import serving
from .test_mixed_cluster import PLAIN, Layout, create, in_sync, layout, produce, run
from .wire import HOST

pytestmark = pytest.mark.xdist_group("mixed")
SECONDS: Final = 90.0
OWN: Final = 1
REAL: Final = 2
CONFLUENT: Final[Any] = confluent_kafka.admin
SASL: Final = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": USER,
    "sasl.password": PASSWORD,
}


def listeners(cluster: Layout, outside: dict[int, int], node_id: int) -> dict[str, str]:
    """The keys of a broker, which are the same for Kafka and ours."""
    addresses = (
        f"INSIDE://{HOST}:{cluster.ports[node_id].broker},OUTSIDE://{HOST}:{outside[node_id]}"
    )
    return {
        "listeners": addresses,
        "advertised.listeners": addresses,
        "listener.security.protocol.map": (
            "INSIDE:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "inter.broker.listener.name": "INSIDE",
        "listener.name.outside.sasl.enabled.mechanisms": "PLAIN",
    }


def ports_seen(port: int, security: dict[str, str]) -> dict[int, int]:
    """The ports of the brokers that a client of a listener is shown."""
    client = CONFLUENT.AdminClient({"bootstrap.servers": f"{HOST}:{port}", **security})
    brokers = client.list_topics(timeout=SECONDS).brokers
    return {node_id: each.port for node_id, each in brokers.items()}


def test_brokers_of_both_are_shown_at_the_listener_of_the_client(
    installation: Installation, tmp_path: Path
) -> None:
    cluster = layout(nodes=2, voters=1)
    outside = dict(zip(cluster.ports, free_ports(2), strict=True))
    inside = {node_id: each.broker for node_id, each in cluster.ports.items()}
    (tmp_path / "kafka").mkdir()
    ports = cluster.ports[REAL]
    broker = Broker(installation, tmp_path / "kafka", ports.broker, 0, ports.controller)
    jaas = f'{JAAS}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
    broker.configure(
        {
            **PLAIN,
            **listeners(cluster, outside, REAL),
            "listener.name.outside.plain.sasl.jaas.config": jaas,
            "process.roles": "broker",
            "node.id": str(REAL),
            "controller.quorum.voters": cluster.controllers,
        }
    )
    broker.format_storage()
    options = ("--node-id", str(OWN), "--cluster-id", CLUSTER_ID, "--user", f"{USER}:{PASSWORD}")
    keys = listeners(cluster, outside, OWN)
    with serving(tmp_path / "data", None, cluster.controllers, keys, options):
        try:
            broker.start()
            run(create(cluster))
            run(produce(cluster, "both"))
            run(in_sync(cluster))
            for node_id in (OWN, REAL):
                assert ports_seen(inside[node_id], {}) == inside
                assert ports_seen(outside[node_id], SASL) == outside
        finally:
            broker.stop()

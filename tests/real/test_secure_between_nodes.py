"""SASL and TLS between nodes, brokers and controllers: of ours, and of ours with a real Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.net.server.certificates import BROKER as CERTIFICATE

from .broker import CLUSTER_ID, JAAS, Broker, free_ports
from .java import Installation
from .own_node import serving
from .test_mixed_cluster import PLAIN, Layout, create, in_sync, layout, produce, run
from .wire import HOST

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("mixed")]
NODE, PASSWORD, SCRAM, TOKEN = "node", "node-secret", "SCRAM-SHA-256", "OAUTHBEARER"
STORES: Final = {
    each: value
    for store in ("keystore", "truststore")
    for each, value in (
        (f"ssl.{store}.location", CERTIFICATE),
        (f"ssl.{store}.type", "PEM"),
    )
}


class Security(NamedTuple):
    """How nodes reach each other: protocols and mechanisms."""

    brokers: str
    controllers: str
    broker_mechanism: str = "PLAIN"
    controller_mechanism: str = "PLAIN"

    @property
    def has_scram(self) -> bool:
        return SCRAM in self


SECURITIES: Final = (
    Security("SASL_PLAINTEXT", "SASL_PLAINTEXT"),
    Security("SASL_SSL", "SSL", SCRAM),
    Security("SSL", "SASL_SSL"),
    Security("SASL_PLAINTEXT", "SASL_SSL", SCRAM, SCRAM),
    Security("SASL_SSL", "SASL_PLAINTEXT", TOKEN, TOKEN),
)
ADD_SCRAM: Final = f"--add-scram={SCRAM}=[name={NODE},password={PASSWORD}]"
"""Of `kafka-storage format`, and of `serve`."""


def login(mechanism: str) -> str:
    """The JAAS configuration of a mechanism of a listener."""
    if mechanism == TOKEN:
        options = f'unsecuredLoginStringClaim_sub="{NODE}"'
        return f"{JAAS}.oauthbearer.OAuthBearerLoginModule required {options};"
    module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    users = f' user_{NODE}="{PASSWORD}"' if mechanism == "PLAIN" else ""
    return f'{JAAS}.{module}LoginModule required username="{NODE}" password="{PASSWORD}"{users};'


def keys(
    security: Security, cluster: Layout, inside: dict[int, int], node_id: int
) -> dict[str, str]:
    """The keys of a node, which are the same for Kafka and ours."""
    ports = cluster.ports[node_id]
    addresses = f"INSIDE://{HOST}:{inside[node_id]},PLAINTEXT://{HOST}:{ports.broker}"
    is_voter = node_id in cluster.voters
    mechanism, of_controller = security.broker_mechanism, security.controller_mechanism
    return {
        "listeners": addresses + (f",CONTROLLER://{HOST}:{ports.controller}" if is_voter else ""),
        "advertised.listeners": addresses,
        "listener.security.protocol.map": (
            f"INSIDE:{security.brokers},PLAINTEXT:PLAINTEXT,CONTROLLER:{security.controllers}"
        ),
        "inter.broker.listener.name": "INSIDE",
        "controller.listener.names": "CONTROLLER",
        "sasl.enabled.mechanisms": f"PLAIN,{SCRAM}",
        "sasl.mechanism.inter.broker.protocol": mechanism,
        "sasl.mechanism.controller.protocol": of_controller,
        f"listener.name.inside.{mechanism.lower()}.sasl.jaas.config": login(mechanism),
        f"listener.name.controller.{of_controller.lower()}.sasl.jaas.config": login(of_controller),
        "listener.name.controller.sasl.enabled.mechanisms": of_controller,
        "listener.name.inside.sasl.enabled.mechanisms": mechanism,
        "ssl.client.auth": "required",
        "ssl.endpoint.identification.algorithm": "",
        **STORES,
    }


@contextmanager
def ours(
    directory: Path, security: Security, cluster: Layout, settings: dict[str, str], node_id: int
) -> Iterator[None]:
    directory.mkdir()
    options = ["--node-id", str(node_id), "--cluster-id", CLUSTER_ID]
    if security.has_scram and node_id in cluster.voters:
        options.append(ADD_SCRAM)
    with serving(directory / "data", None, cluster.controllers, settings, options):
        yield


@contextmanager
def real(
    installation: Installation,
    directory: Path,
    cluster: Layout,
    settings: dict[str, str],
    node_id: int,
) -> Iterator[None]:
    directory.mkdir()
    ports = cluster.ports[node_id]
    broker = Broker(installation, directory, ports.broker, 0, ports.controller)
    broker.configure(
        {
            **PLAIN,
            "process.roles": "broker,controller" if node_id in cluster.voters else "broker",
            "node.id": str(node_id),
            "controller.quorum.voters": cluster.controllers,
            **settings,
        }
    )
    broker.format_storage(ADD_SCRAM)
    try:
        broker.start()
        yield
    finally:
        broker.stop()


@pytest.mark.parametrize("security", SECURITIES, ids=lambda each: "-".join(each))
def test_nodes_of_ours(security: Security, tmp_path: Path) -> None:
    cluster = layout(nodes=2, voters=1)
    inside = dict(zip(cluster.ports, free_ports(2), strict=True))
    with ExitStack() as running:
        for node_id in (1, 2):
            settings = keys(security, cluster, inside, node_id)
            folder = tmp_path / str(node_id)
            running.enter_context(ours(folder, security, cluster, settings, node_id))
        run(create(cluster))
        run(produce(cluster, "both"))
        run(in_sync(cluster))


@pytest.mark.parametrize("security", SECURITIES, ids=lambda each: "-".join(each))
@pytest.mark.parametrize("controller", ["kafka", "ours"])
def test_nodes_of_ours_with_a_real_kafka(
    security: Security, controller: str, installation: Installation, tmp_path: Path
) -> None:
    """One node is the controller; each replicates the other's partitions."""
    cluster = layout(nodes=2, voters=1)
    inside = dict(zip(cluster.ports, free_ports(2), strict=True))
    own = 1 if controller == "ours" else 2
    with ExitStack() as running:
        for node_id in (1, 2):
            settings = keys(security, cluster, inside, node_id)
            folder = tmp_path / str(node_id)
            if node_id == own:
                running.enter_context(ours(folder, security, cluster, settings, node_id))
            else:
                running.enter_context(real(installation, folder, cluster, settings, node_id))
        run(create(cluster))
        run(produce(cluster, "both"))
        run(in_sync(cluster))

"""Makes clients for tests: configuration under Kafka's names, randomness from a given source."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from kafkawire.client.client import Client
from kafkawire.client.config import CLIENT_KEYS, Setting, network_settings, read_config
from kafkawire.client.network.network import Network
from kafkawire.client.network.settings import NetworkSettings
from kafkawire.client.producer import PRODUCER_KEYS, Producer, producer_settings
from kafkawire.client.producer.events import UserEffect, UserEvent

SOFTWARE = ("kafkawire", "tests")
Addresses = Sequence[tuple[str, int]]


def servers(addresses: Addresses) -> str:
    """What stands in bootstrap.servers."""
    return ",".join(f"{host}:{port}" for host, port in addresses)


def settings(config: dict[str, Setting] | None = None) -> NetworkSettings:
    """A network's settings."""
    values = read_config(CLIENT_KEYS, {"bootstrap.servers": "h:1", **(config or {})})
    return network_settings(values, SOFTWARE)


def network(
    random: Random, addresses: Addresses, config: dict[str, Setting] | None = None
) -> Network:
    """A network that creates the topics it asks about, as a producer's does."""
    values = read_config(CLIENT_KEYS, {"bootstrap.servers": servers(addresses), **(config or {})})
    return Network(
        network_settings(values, SOFTWARE, auto_create_topics=True),
        addresses,
        rng=random.random,
        nonce=lambda: f"{random.getrandbits(128):032x}",
    )


def producer_client(
    random: Random, addresses: Addresses, config: dict[str, Setting] | None = None
) -> Client[UserEvent, UserEffect]:
    """A client with one producer."""
    given = {"bootstrap.servers": servers(addresses), **(config or {})}
    values = read_config(PRODUCER_KEYS, given)
    made = network(random, addresses, {key: given[key] for key in given if key in CLIENT_KEYS})
    machine = Producer(producer_settings(values), made.view, rng=random.random)
    return Client(made, {"producer": machine})

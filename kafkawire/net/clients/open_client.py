"""Opens the network and driver of a Producer, Consumer or Admin.

A client is opened once, on the loop that uses it, and closed once.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Mapping
from typing import Final

from ... import __version__
from ...client.client import Client, UserEffect, UserEvent
from ...client.cluster import ClusterView
from ...client.config import Values, bootstrap, network_settings
from ...client.metrics import Metrics
from ...client.network.network import Network
from ...client.requests import Machine, OwnerEffect, OwnerEvent
from ...client.security import token_source
from .driver import Driver, DriverFailed
from .tls import tls_context
from .token_sources import provider_of

SOFTWARE: Final = ("kafkawire", __version__)
"""Software name and version in brokers' logs and metrics (KIP-511)."""
NONCE_BYTES: Final = 24


def open_client(
    values: Values,
    owners: Callable[
        [ClusterView], Mapping[str, Machine[UserEvent | OwnerEvent, UserEffect | OwnerEffect]]
    ],
    on_effect: Callable[[UserEffect | DriverFailed], None],
    *,
    auto_create_topics: bool = False,
    metrics: Metrics | None = None,
) -> Driver[UserEvent, UserEffect]:
    """Create a client and run it on the running loop.

    owners: makes the machines that send requests, given the cluster metadata; the first receives
    the user's events. on_effect: called with their effects for the user. metrics: records
    responses.
    """
    settings = network_settings(values, SOFTWARE, auto_create_topics=auto_create_topics)
    network = Network(
        settings,
        bootstrap(values),
        rng=random.random,
        nonce=lambda: secrets.token_urlsafe(NONCE_BYTES),
    )
    client: Client[UserEvent, UserEffect] = Client(network, owners(network.view), metrics)
    provider = provider_of(token_source(values))
    driver = Driver(client, on_effect, tls_context(values), provider)
    driver.start()
    return driver

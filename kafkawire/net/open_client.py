"""What Producer, Consumer and Admin share: a network made from settings, and its driver.

Law: a client is opened once, on the loop that uses it, and closed once.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Mapping
from typing import Final

from .. import __version__
from ..client.client import Client
from ..client.config import Values, bootstrap, network_settings
from ..client.network.cluster import ClusterView
from ..client.network.network import Network
from ..client.requests import Machine
from .driver import Driver
from .tls import tls_context

SOFTWARE: Final = ("kafkawire", __version__)
"""How brokers' logs and metrics name this client (KIP-511)."""
NONCE_BYTES: Final = 24


def open_client(
    values: Values,
    owners: Callable[[ClusterView], Mapping[str, Machine]],
    take: Callable[[object], None],
    *,
    auto_create_topics: bool = False,
) -> Driver:
    """Make a client and begin to run it on the running loop.

    owners: makes the machines that will ask, given the view of the cluster; the first gets the
    user's events. take: told of their effects for the user.
    """
    settings = network_settings(values, SOFTWARE, auto_create_topics=auto_create_topics)
    network = Network(
        settings,
        bootstrap(values),
        rng=random.random,
        nonce=lambda: secrets.token_urlsafe(NONCE_BYTES),
    )
    driver = Driver(Client(network, owners(network.view)), take, tls_context(values))
    driver.start()
    return driver

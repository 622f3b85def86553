"""A node connects with TLS only to a node whose certificate has the host name that it dialled."""

from __future__ import annotations

import ssl
from typing import Final

import pytest

from kafkawire.broker.configs import Settings
from kafkawire.broker.releases import LATEST
from kafkawire.configs import broker_configs
from kafkawire.net.brokers.tls_contexts import listener_tls, peer_tls

from .certificates import BROKER

LISTENER: Final = "REPLICATION"
KEY: Final = "ssl.endpoint.identification.algorithm"
OWN: Final = f"listener.name.replication.{KEY}"
STORES: Final = {
    "ssl.keystore.location": BROKER,
    "ssl.keystore.type": "PEM",
    "ssl.truststore.location": BROKER,
    "ssl.truststore.type": "PEM",
}


def shake_hands(keys: dict[str, str], host: str) -> None:
    """Let one node connect to another one at a host name. Raises ssl.SSLError."""
    settings = Settings(STORES | keys, broker_configs(LATEST))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = peer_tls(settings, LISTENER).wrap_bio(to_client, to_server, server_hostname=host)
    server = listener_tls(settings, LISTENER, None).wrap_bio(to_server, to_client, server_side=True)
    waiting = [client, server]
    while waiting:
        for each in list(waiting):
            try:
                each.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(each)


@pytest.mark.parametrize(
    ("keys", "host"),
    [
        ({}, "localhost"),
        ({}, "127.0.0.1"),
        ({KEY: ""}, "other"),
        ({OWN: ""}, "other"),
        ({KEY: "", OWN: "https"}, "localhost"),
    ],
)
def test_a_host_name_of_the_certificate_is_accepted(keys: dict[str, str], host: str) -> None:
    shake_hands(keys, host)


@pytest.mark.parametrize("keys", [{}, {KEY: "https"}, {KEY: "", OWN: "https"}])
@pytest.mark.parametrize("host", ["other", "127.0.0.2", "localhost.example"])
def test_another_host_name_is_refused(keys: dict[str, str], host: str) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="certificate is not valid for"):
        shake_hands(keys, host)

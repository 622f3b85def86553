"""1,000 connections of which 100 are hostile: the others notice nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kafkawire.messages.sasl_handshake_request import SaslHandshakeRequest
from tests.broker.harness import Client, Harness, metadata
from tests.broker.security.test_sasl import handshake, plain, token

CONNECTIONS: Final = 1000
SECRET: Final = "of-alice"


def huge_frame(client: Client) -> None:
    client.send_bytes(b"\x7f\xff\xff\xff" + bytes(100))


def negative_frame(client: Client) -> None:
    client.send_bytes(b"\xff" * 64)


def no_authentication(client: Client) -> None:
    client.send(MetadataRequest(topics=[]), 9)


def wrong_password(client: Client) -> None:
    client.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    client.send(SaslAuthenticateRequest(auth_bytes=plain("alice", "guess")), 2)


def no_handshake(client: Client) -> None:
    client.send(SaslAuthenticateRequest(auth_bytes=plain("alice", SECRET)), 2)


def broken_request(client: Client) -> None:
    client.send_bytes((12).to_bytes(4, "big") + b"\x00\x03\x00\x09" + b"\xff" * 8)


ATTACKS: Final[tuple[Callable[[Client], None], ...]] = (
    huge_frame,
    negative_frame,
    no_authentication,
    wrong_password,
    no_handshake,
    broken_request,
)


def test_others_notice_nothing_of_hostile_connections() -> None:
    settings = {"sasl.enabled.mechanisms": "PLAIN"}
    harness = Harness(topics={"t": 1}, settings=settings, passwords={"alice": SECRET})
    clients = [harness.client() for _ in range(CONNECTIONS)]
    hostile, others = clients[::10], [each for n, each in enumerate(clients) if n % 10]
    for each in others:
        handshake(each, "PLAIN")
        assert token(each, plain("alice", SECRET)).error_code == 0
    for number, each in enumerate(hostile):
        ATTACKS[number % len(ATTACKS)](each)
        assert metadata(others[number * 9], "t").topics[0].error_code == 0
    assert all(each.closed for each in hostile)
    assert not any(SECRET.encode() in each.received for each in hostile)
    assert not any(SECRET in str(each.closed) for each in hostile)
    for each in others:
        assert metadata(each, "t").topics[0].error_code == 0
        assert each.closed is None

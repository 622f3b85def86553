"""Delegation tokens of a real Apache Kafka and of our broker: the same responses."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final

import pytest

import kafkawire
from kafkawire import ErrorCode
from kafkawire.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kafkawire.messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribeDelegationTokenResponse,
)
from kafkawire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kafkawire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kafkawire.messages.sasl_handshake_request import SaslHandshakeRequest
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.interop.implementations import until

from ...broker.security.test_sasl import ScramClient
from ...real.broker import MECHANISMS, PASSWORD, PROPERTIES, USER, Broker
from ...real.wire import Wire

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]

E = ErrorCode
OWNER: Final = "beside-tokens"
"""Tokens of others, in the broker that tests share, have other owners."""
HOUR_MS: Final = 3_600_000
UNKNOWN: Final = b64encode(bytes(64)).decode()
NAME: Final = "DelegationToken"
SECRETS: Final = {"hmac", "tokenId"}


def alike(value: Any, issued: int = 0) -> Any:
    """Normalise a response: times in hours since the token was issued, no ids and secrets."""
    if isinstance(value, list):
        return [alike(each) for each in value]
    if not isinstance(value, dict):
        return value
    for key in ("issueTimestamp", "issueTimestampMs"):
        issued = value.get(key, issued)
    shown: dict[str, Any] = {}
    for key, each in value.items():
        if key in SECRETS:
            shown[key] = len(each)
        elif "imestamp" in key and each > 0:
            shown[key] = round((each - issued) / HOUR_MS)
        else:
            shown[key] = alike(each, issued)
    return shown


class Story:
    """The exchanges with one broker, as they are compared."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.responses: list[tuple[str, Any]] = []

    def send(self, wire: Wire, api: str, version: int, /, **fields: Any) -> Any:
        """Send a request about tokens."""
        issued = fields.pop("issued", 0)
        request = kafkawire.from_json(f"{api}{NAME}Request", version, fields)
        response = wire.send(request, version).frame.body
        self.responses.append((api, alike(kafkawire.to_json(response, version), issued)))
        return response

    def login(self, wire: Wire, mechanism: str, user: str, password: str, extra: str) -> None:
        """Authenticate with SCRAM."""
        wire.send(SaslHandshakeRequest(mechanism=mechanism), 1)
        scram = ScramClient(mechanism, user, password)
        scram.bare += extra
        response = authenticate(wire, scram.first())
        if response.error_code == E.NONE:
            response = authenticate(wire, scram.last(response.auth_bytes))
        self.responses.append((f"{mechanism}{extra}", response.error_code))


def authenticate(wire: Wire, data: bytes) -> SaslAuthenticateResponse:
    request = SaslAuthenticateRequest(auth_bytes=data)
    return wire.exchange(request, 2, SaslAuthenticateResponse)


def principal(name: str, type: str = "User") -> dict[str, str]:
    return {"principalType": type, "principalName": name}


def described(wire: Wire, name: str) -> int:
    """Return how many tokens an owner has."""
    fields = {"owners": [principal(name)]}
    request = kafkawire.from_json(f"Describe{NAME}Request", 3, fields)
    return len(wire.exchange(request, 3, DescribeDelegationTokenResponse).tokens)


def lifetime(token: DescribedDelegationToken) -> int:
    return token.max_timestamp - token.issue_timestamp


def requests_about_tokens(story: Story, wire: Wire) -> CreateDelegationTokenResponse:
    """Create, renew, describe and expire tokens; return one that is left."""
    mine: dict[str, Any] = {"renewers": [principal("bob")], "maxLifetimeMs": -1}
    other: dict[str, Any] = {"ownerPrincipalType": "User", "ownerPrincipalName": OWNER}
    nobody: dict[str, Any] = {"ownerPrincipalType": None, "ownerPrincipalName": None}
    token = story.send(wire, "Create", 3, **nobody, **mine)
    story.send(wire, "Create", 3, **other, renewers=[], maxLifetimeMs=10 * HOUR_MS)
    story.send(wire, "Create", 3, **other, renewers=[principal(USER)], maxLifetimeMs=1 << 40)
    story.send(wire, "Create", 3, **nobody, renewers=[principal("g", "Group")], maxLifetimeMs=5)
    story.send(wire, "Create", 1, renewers=[principal(OWNER)], maxLifetimeMs=0)
    until(lambda: described(wire, OWNER) == 3)
    response = kafkawire.from_json(f"Describe{NAME}Request", 3, {"owners": [principal(OWNER)]})
    tokens = wire.exchange(response, 3, DescribeDelegationTokenResponse).tokens
    for each in sorted(tokens, key=lambda each: (lifetime(each), str(each.renewers))):
        story.responses.append(("token", [p.principal_name for p in each.renewers]))
        secret, issued = b64encode(each.hmac).decode(), each.issue_timestamp
        for period in (-1, 5 * HOUR_MS):
            story.send(wire, "Renew", 2, issued=issued, hmac=secret, renewPeriodMs=period)
        story.send(
            wire, "Expire", 2, issued=issued, hmac=secret, expiryTimePeriodMs=40 * 24 * HOUR_MS
        )
        story.send(wire, "Expire", 2, issued=issued, hmac=secret, expiryTimePeriodMs=-1)
    until(lambda: described(wire, OWNER) == 1)  # that of which the client is neither
    for version in (1, 2, 3):
        story.send(wire, "Describe", version, owners=[principal(OWNER)])
        story.send(wire, "Describe", version, owners=[principal("nobody")])
        story.send(wire, "Describe", version, owners=[])
    for version in (1, 2):
        story.send(wire, "Renew", version, hmac=UNKNOWN, renewPeriodMs=-1)
        story.send(wire, "Expire", version, hmac="", expiryTimePeriodMs=-1)
    assert isinstance(token, CreateDelegationTokenResponse)
    return token


def told(port: int, plaintext_port: int, controller_port: int) -> list[tuple[str, Any]]:
    story = Story(port)
    with Wire(port) as wire:
        wire.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert authenticate(wire, f"\0{USER}\0{PASSWORD}".encode()).error_code == E.NONE
        token = requests_about_tokens(story, wire)
    password = b64encode(token.hmac).decode()
    attempts = {"": (token.token_id, password), "wrong": (token.token_id, UNKNOWN)}
    for mechanism in MECHANISMS[1:]:
        for user, secret in (*attempts.values(), ("unknown", password)):
            for extra in (",tokenauth=true", ",tokenauth=false", ""):
                with Wire(port) as wire:
                    story.login(wire, mechanism, user, secret, extra)
    with Wire(port) as wire:
        story.login(wire, MECHANISMS[1], token.token_id, password, ",tokenauth=true")
        refused(story, wire, described=True)
    with Wire(plaintext_port) as wire:
        refused(story, wire, described=True)
    with Wire(controller_port) as wire:
        refused(story, wire, described=False)
    return story.responses


def refused(story: Story, wire: Wire, described: bool) -> None:
    """Request what is only allowed after authentication without a token."""
    nobody: dict[str, Any] = {"ownerPrincipalType": None, "ownerPrincipalName": None}
    story.send(wire, "Create", 3, **nobody, renewers=[], maxLifetimeMs=-1)
    story.send(wire, "Renew", 2, hmac=UNKNOWN, renewPeriodMs=-1)
    story.send(wire, "Expire", 2, hmac=UNKNOWN, expiryTimePeriodMs=-1)
    if described:
        story.send(wire, "Describe", 3, owners=None)


def test_responses_about_tokens_equal_kafkas(kafka: Broker) -> None:
    key = "delegation.token.secret.key"
    settings = {key: PROPERTIES[key], "sasl.enabled.mechanisms": ",".join(MECHANISMS)}
    theirs = told(kafka.sasl_port, kafka.port, kafka.controller_port)
    config = ServerConfig(settings=settings, passwords={USER: PASSWORD})
    with (
        ServerThread(config) as server,
        ServerThread(ServerConfig(settings={key: PROPERTIES[key]})) as plaintext,
    ):
        [port], [other] = server.ports().values(), plaintext.ports().values()
        ours = told(port, other, other)
    for their, our in zip(theirs, ours, strict=True):
        assert our == their

"""Delegation tokens: created, renewed, expired, described; clients authenticate with one."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import pytest

from kafkawire import ErrorCode
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse
from kafkawire.messages.create_delegation_token_request import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from kafkawire.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kafkawire.messages.describe_delegation_token_request import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kafkawire.messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribeDelegationTokenResponse,
)
from kafkawire.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kafkawire.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from kafkawire.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kafkawire.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from kafkawire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kafkawire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kafkawire.messages.sasl_handshake_request import SaslHandshakeRequest
from kafkawire.messages.sasl_handshake_response import SaslHandshakeResponse
from tests.broker.harness import Client, Harness

from ..security.test_sasl import ScramClient

E = ErrorCode
DAY_MS = 86_400_000
PASSWORDS = {name: f"{name}-secret" for name in ("alice", "bob", "carol")}
SETTINGS = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "delegation.token.secret.key": "key of tokens",
}


def cluster(brokers: int = 1, settings: Mapping[str, str] = {}) -> Harness:
    return Harness(brokers, settings={**SETTINGS, **settings}, passwords=PASSWORDS)


def authenticated(harness: Harness, user: str) -> Client:
    client = harness.client()
    client.exchange(SaslHandshakeRequest(mechanism="PLAIN"), 1, SaslHandshakeResponse)
    token = f"\0{user}\0{PASSWORDS[user]}".encode()
    request = SaslAuthenticateRequest(auth_bytes=token)
    assert client.exchange(request, 2, SaslAuthenticateResponse).error_code == E.NONE
    return client


def create(client: Client, *renewers: str, **fields: Any) -> CreateDelegationTokenResponse:
    request = CreateDelegationTokenRequest(
        owner_principal_type=fields.pop("owner_type", None),
        owner_principal_name=fields.pop("owner", None),
        renewers=[
            CreatableRenewers(principal_type="User", principal_name=each) for each in renewers
        ],
        max_lifetime_ms=fields.pop("max_lifetime_ms", -1),
    )
    return client.exchange(request, 3, CreateDelegationTokenResponse)


def renew(client: Client, secret: bytes, period: int = -1) -> RenewDelegationTokenResponse:
    request = RenewDelegationTokenRequest(hmac=secret, renew_period_ms=period)
    return client.exchange(request, 2, RenewDelegationTokenResponse)


def expire(client: Client, secret: bytes, period: int = -1) -> ExpireDelegationTokenResponse:
    request = ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period)
    return client.exchange(request, 2, ExpireDelegationTokenResponse)


def describe(client: Client, *owners: str) -> list[DescribedDelegationToken]:
    named = [DescribeDelegationTokenOwner(principal_type="User", principal_name=o) for o in owners]
    request = DescribeDelegationTokenRequest(owners=named or None)
    response = client.exchange(request, 3, DescribeDelegationTokenResponse)
    assert response.error_code == E.NONE
    return response.tokens


@pytest.mark.parametrize("brokers", [1, 3])
def test_a_token_is_created_and_described(brokers: int) -> None:
    """Also where another node is the controller, which learns who the client is."""
    client = authenticated(cluster(brokers), "alice")
    token = create(client, "bob")
    assert (token.error_code, token.principal_name) == (E.NONE, "alice")
    assert token.token_requester_principal_name == "alice"
    assert token.expiry_timestamp_ms == token.issue_timestamp_ms + DAY_MS
    assert token.max_timestamp_ms == token.issue_timestamp_ms + 7 * DAY_MS
    [described] = describe(client)
    assert (described.token_id, described.hmac) == (token.token_id, token.hmac)
    assert [each.principal_name for each in described.renewers] == ["bob"]
    assert describe(client, "bob") == describe(client, "alice", "bob") == [described]
    assert describe(client, "carol") == []


def test_a_token_for_another_owner_is_not_that_of_who_requested_it() -> None:
    client = authenticated(cluster(), "alice")
    token = create(client, owner_type="User", owner="carol", max_lifetime_ms=1000)
    assert (token.principal_name, token.token_requester_principal_name) == ("carol", "alice")
    assert token.expiry_timestamp_ms == token.max_timestamp_ms == token.issue_timestamp_ms + 1000
    assert renew(client, token.hmac).error_code == E.DELEGATION_TOKEN_OWNER_MISMATCH


def test_owners_and_renewers_renew_and_expire_a_token() -> None:
    harness = cluster()
    alice, bob, carol = (authenticated(harness, each) for each in ("alice", "bob", "carol"))
    token = create(alice, "bob")
    renewed = renew(bob, token.hmac, 1000)
    assert renewed.error_code == E.NONE
    assert renewed.expiry_timestamp_ms < token.expiry_timestamp_ms
    assert renew(carol, token.hmac).error_code == E.DELEGATION_TOKEN_OWNER_MISMATCH
    assert expire(carol, token.hmac).error_code == E.DELEGATION_TOKEN_OWNER_MISMATCH
    assert expire(alice, token.hmac, 30 * DAY_MS).expiry_timestamp_ms == token.max_timestamp_ms
    assert expire(bob, token.hmac).error_code == E.NONE
    assert describe(alice) == []
    for change in (renew, expire):
        assert change(alice, token.hmac).error_code == E.DELEGATION_TOKEN_NOT_FOUND


def test_a_token_ends_and_is_removed() -> None:
    harness = cluster(settings={"delegation.token.expiry.check.interval.ms": "5000"})
    alice = authenticated(harness, "alice")
    token = create(alice, max_lifetime_ms=1000)
    assert login(harness, token.token_id, token.hmac)[1].error_code == E.NONE
    harness.advance(2.0)
    assert renew(alice, token.hmac).error_code == E.DELEGATION_TOKEN_EXPIRED
    assert expire(alice, token.hmac, 10).error_code == E.DELEGATION_TOKEN_EXPIRED
    assert login(harness, token.token_id, token.hmac)[1].error_code == E.SASL_AUTHENTICATION_FAILED
    harness.advance(5.0)
    assert describe(alice) == []


def login(
    harness: Harness, token_id: str, secret: bytes, mechanism: str = "SCRAM-SHA-256"
) -> tuple[Client, SaslAuthenticateResponse]:
    """Authenticate with a token, as a client with `tokenauth=true`; return the last response."""
    client = harness.client()
    client.exchange(SaslHandshakeRequest(mechanism=mechanism), 1, SaslHandshakeResponse)
    scram = ScramClient(mechanism, token_id, b64encode(secret).decode())
    scram.bare += ",tokenauth=true"
    request = SaslAuthenticateRequest(auth_bytes=scram.first())
    response = client.exchange(request, 2, SaslAuthenticateResponse)
    if response.error_code:
        return client, response
    request = SaslAuthenticateRequest(auth_bytes=scram.last(response.auth_bytes))
    return client, client.exchange(request, 2, SaslAuthenticateResponse)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_client_authenticates_with_a_token_and_requests_no_other(mechanism: str) -> None:
    harness = cluster()
    token = create(authenticated(harness, "alice"))
    client, response = login(harness, token.token_id, token.hmac, mechanism)
    assert response.error_code == E.NONE
    assert client.exchange(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == E.NONE
    refused = create(client)
    assert refused.error_code == E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert refused.principal_name == "alice"


@pytest.mark.parametrize("wrong", ["secret", "id"])
def test_a_wrong_token_does_not_authenticate(wrong: str) -> None:
    harness = cluster()
    token = create(authenticated(harness, "alice"))
    id = "unknown" if wrong == "id" else token.token_id
    secret = bytes(64) if wrong == "secret" else token.hmac
    _, response = login(harness, id, secret)
    assert response.error_code == E.SASL_AUTHENTICATION_FAILED
    assert b64encode(token.hmac).decode() not in str(response)


def test_a_token_is_no_user_without_the_extension() -> None:
    harness = cluster()
    token = create(authenticated(harness, "alice"))
    client = harness.client()
    client.exchange(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1, SaslHandshakeResponse)
    scram = ScramClient("SCRAM-SHA-256", token.token_id, b64encode(token.hmac).decode())
    request = SaslAuthenticateRequest(auth_bytes=scram.first())
    response = client.exchange(request, 2, SaslAuthenticateResponse)
    assert response.error_code == E.SASL_AUTHENTICATION_FAILED


def test_tokens_need_a_secret_key() -> None:
    client = authenticated(cluster(settings={"delegation.token.secret.key": ""}), "alice")
    assert create(client).error_code == E.DELEGATION_TOKEN_AUTH_DISABLED
    assert renew(client, b"x").error_code == E.DELEGATION_TOKEN_AUTH_DISABLED
    assert expire(client, b"x").error_code == E.DELEGATION_TOKEN_AUTH_DISABLED
    response = client.exchange(
        DescribeDelegationTokenRequest(owners=None), 3, DescribeDelegationTokenResponse
    )
    assert response.error_code == E.DELEGATION_TOKEN_AUTH_DISABLED


def test_tokens_need_authentication() -> None:
    client = Harness(settings={"delegation.token.secret.key": "k"}).client()
    response = create(client)
    assert response.error_code == E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert response.issue_timestamp_ms == -1


@pytest.mark.parametrize("version", [0, 1, 2])
def test_older_versions_do_not_name_who_requested_a_token(version: int) -> None:
    client = authenticated(cluster(), "alice")
    request = CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1)
    token = client.exchange(request, version, CreateDelegationTokenResponse)
    assert (token.error_code, token.principal_name) == (E.NONE, "alice")
    response = client.exchange(
        DescribeDelegationTokenRequest(owners=None), version, DescribeDelegationTokenResponse
    )
    assert [each.hmac for each in response.tokens] == [token.hmac]


def test_renewers_are_users() -> None:
    client = authenticated(cluster(), "alice")
    renewer = CreatableRenewers(principal_type="Group", principal_name="g")
    request = CreateDelegationTokenRequest(renewers=[renewer], max_lifetime_ms=-1)
    response = client.exchange(request, 2, CreateDelegationTokenResponse)
    assert response.error_code == E.INVALID_PRINCIPAL_TYPE


def test_a_token_survives_and_its_secret_is_in_no_log() -> None:
    harness = cluster()
    token = create(authenticated(harness, "alice"))
    again = harness.restored()
    [described] = describe(authenticated(again, "alice"))
    assert described.hmac == token.hmac
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", token.token_id)
    record = harness.front().broker.metadata.image.delegation_tokens[token.token_id]
    assert token.hmac not in record.encode(0)

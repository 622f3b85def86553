"""Sessions of SASL clients: their lifetime, re-authentication, and their end (KIP-368)."""

from __future__ import annotations

from base64 import b64encode

import pytest

from kafkawire import ErrorCode
from kafkawire.broker.security.session import EXPIRED, Session, session_end
from kafkawire.messages.produce_request import ProduceRequest
from kafkawire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from tests.broker.handlers.test_delegation_tokens import authenticated, cluster, create
from tests.broker.harness import Client, Harness, metadata

from .test_sasl import MECHANISMS, PASSWORD, USER, ScramClient, handshake, plain, token

E = ErrorCode
SESSION_S = 10.0


@pytest.fixture
def harness() -> Harness:
    settings = {
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "connections.max.reauth.ms": str(int(SESSION_S * 1000)),
    }
    passwords = {USER: PASSWORD, "bob": PASSWORD}
    return Harness(topics={"t": 1}, settings=settings, passwords=passwords)


def authenticate(client: Client, user: str = USER) -> int:
    """Authenticate with PLAIN; return the lifetime of the session."""
    assert handshake(client, "PLAIN").error_code == E.NONE
    response = token(client, plain(user))
    assert response.error_code == E.NONE, response.error_message
    return response.session_lifetime_ms


def is_served(client: Client) -> bool:
    return client.closed is None and metadata(client, "t").topics[0].error_code == E.NONE


def scram(client: Client, user: str, password: str, extra: str = "") -> int:
    peer = ScramClient("SCRAM-SHA-256", user, password)
    peer.bare += extra
    assert handshake(client, "SCRAM-SHA-256").error_code == E.NONE
    first = token(client, peer.first())
    assert first.session_lifetime_ms == 0
    response = token(client, peer.last(first.auth_bytes))
    assert response.error_code == E.NONE, response.error_message
    return response.session_lifetime_ms


def test_a_client_that_authenticates_again_goes_on(harness: Harness) -> None:
    client = harness.client()
    assert authenticate(client) == 10_000
    for _ in range(5):
        harness.advance(SESSION_S - 1)
        assert authenticate(client) == 10_000
        assert is_served(client)


def test_a_request_after_the_end_closes_the_connection(harness: Harness) -> None:
    client, other = harness.client(), harness.client()
    authenticate(client)
    harness.advance(SESSION_S)
    authenticate(other)
    assert is_served(client), "the session lasts for its lifetime"
    harness.advance(0.002)
    assert client.closed is None, "only a request closes it"
    client.send(ProduceRequest(acks=0), 9)
    assert client.closed == EXPIRED
    assert is_served(other)


def test_a_client_may_authenticate_after_the_end(harness: Harness) -> None:
    client = harness.client()
    authenticate(client)
    harness.advance(3 * SESSION_S)
    assert authenticate(client) == 10_000
    assert is_served(client)


def test_re_authentications_are_a_second_apart(harness: Harness) -> None:
    client = harness.client()
    authenticate(client)
    authenticate(client)
    harness.advance(0.998)
    assert handshake(client, "PLAIN").error_code == E.ILLEGAL_SASL_STATE
    harness.advance(0.002)
    assert authenticate(client) == 10_000


def test_the_principal_stays_the_same(harness: Harness) -> None:
    client = harness.client()
    authenticate(client)
    handshake(client, "PLAIN")
    response = token(client, plain("bob"))
    assert response.error_code == E.SASL_AUTHENTICATION_FAILED
    assert response.error_message == (
        f"Cannot change principals during re-authentication from User.{USER}: User.bob"
    )
    assert client.closed is not None


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_the_mechanism_stays_the_same(harness: Harness, mechanism: str) -> None:
    client = harness.client()
    authenticate(client)
    assert handshake(client, mechanism).error_code == E.NONE
    assert client.closed is None
    client.send(SaslAuthenticateRequest(auth_bytes=b"n,,n=u,r=n"), 2)
    assert client.frame() is None
    assert client.closed == (
        f"SASL mechanism '{mechanism}' requested by client is not supported for "
        "re-authentication of mechanism 'PLAIN'"
    )


def test_a_session_ends_with_the_token_of_its_client() -> None:
    harness = cluster(settings={"connections.max.reauth.ms": "60000"})
    alice = authenticated(harness, "alice")
    tokens = [create(alice, max_lifetime_ms=each) for each in (30_000, 90_000)]
    lifetimes = []
    for each in tokens:
        client, password = harness.client(), b64encode(each.hmac).decode()
        lifetimes.append(scram(client, each.token_id, password, ",tokenauth=true"))
    issued = [each.expiry_timestamp_ms - each.issue_timestamp_ms for each in tokens]
    assert issued == [30_000, 90_000]
    assert 29_000 <= lifetimes[0] <= 30_000
    assert lifetimes[1] == 60_000
    harness.advance(lifetimes[0] / 1000 + 0.002)
    client = harness.client()
    password = b64encode(tokens[0].hmac).decode()
    handshake(client, "SCRAM-SHA-256")
    peer = ScramClient("SCRAM-SHA-256", tokens[0].token_id, password)
    peer.bare += ",tokenauth=true"
    response = token(client, peer.first())
    assert response.error_code == E.SASL_AUTHENTICATION_FAILED
    assert password not in str(response.error_message)


def test_a_mechanism_of_a_listener_may_have_a_lifetime_of_its_own() -> None:
    settings = {
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "connections.max.reauth.ms": "1000",
        "listener.name.sasl_plaintext.connections.max.reauth.ms": "2000",
        "listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "0",
    }
    harness = Harness(topics={"t": 1}, settings=settings, passwords={USER: PASSWORD})
    assert authenticate(harness.client()) == 0
    assert scram(harness.client(), USER, PASSWORD) == 2000


@pytest.mark.parametrize(
    ("max_reauth_ms", "expires_ms", "end"),
    [(0, None, None), (5, None, 1005), (0, 1003, 1003), (5, 1003, 1003), (2, 1003, 1002)],
)
def test_a_session_ends_by_what_is_first(
    max_reauth_ms: int, expires_ms: int | None, end: int | None
) -> None:
    assert session_end(1000, max_reauth_ms, expires_ms) == end


def test_a_credential_that_has_expired_ends_the_session_at_once() -> None:
    session = Session("PLAIN", "alice", session_end(1000, 0, 900))
    assert session.lifetime_ms(1000) == 0
    assert not session.is_expired(1000)
    assert session.is_expired(1001)

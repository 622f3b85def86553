"""Connections to other nodes: requests, versions, failures, time."""

from __future__ import annotations

import random

import pytest

import kafkawire
from kafkawire.client.network.sasl import Credentials
from kafkawire.client.network.transport import (
    BytesReceived,
    Connect,
    ConnectionLost,
    ConnectionMade,
    Write,
)
from kafkawire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kafkawire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kafkawire.messages.sasl_handshake_response import SaslHandshakeResponse
from kafkawire.messages.vote_request import VoteRequest
from kafkawire.messages.vote_response import VoteResponse
from kafkawire.node import Destination, SendRequest
from kafkawire.node.front.peers import Arrived, Outcome, Peers
from kafkawire.node.logins import NO_LOGIN, Login

TIMEOUT = 5.0
OTHER = Destination(2, "node2", 9093)
VOTE, API_VERSIONS = 52, 18


@pytest.fixture
def peers() -> Peers:
    return Peers("node-1", TIMEOUT, lambda: "nonce")


def written(outcome: Outcome) -> bytes:
    [effect] = outcome.effects
    assert isinstance(effect, Write)
    return effect.data


def connected(outcome: Outcome) -> int:
    [effect] = outcome.effects
    assert isinstance(effect, Connect)
    assert (effect.node, effect.host, effect.port) == (2, "node2", 9093)
    return effect.connection


def respond(peers: Peers, number: int, request: bytes, response: kafkawire.Message) -> Outcome:
    """Respond to a request in its version."""
    frame = kafkawire.decode_frame(request)
    data = kafkawire.encode_frame(response, frame.api_version or 0, frame.correlation_id)
    return peers.handle(BytesReceived(number, data), 0.0)


def offer(first: int = 0, last: int = 2) -> ApiVersionsResponse:
    """Return a response to ApiVersions with versions of Vote."""
    rows = [(VOTE, first, last), (API_VERSIONS, 0, 4)]
    keys = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in rows]
    return ApiVersionsResponse(api_keys=keys)


def vote(token: int, version: int = 2) -> SendRequest:
    return SendRequest(token, OTHER, version, VoteRequest(cluster_id="c"))


def ready(peers: Peers, token: int, offered: ApiVersionsResponse) -> tuple[int, Outcome]:
    """Send a request on a new connection, up to the response to ApiVersions."""
    number = connected(peers.send(vote(token), 0.0))
    opening = written(peers.handle(ConnectionMade(number), 0.0))
    return number, respond(peers, number, opening, offered)


def test_a_request_is_sent_when_versions_are_negotiated_and_its_connection_used_again(
    peers: Peers,
) -> None:
    number, outcome = ready(peers, 7, offer())
    request = written(outcome)
    assert kafkawire.decode_frame(request).api_version == 2
    done = respond(peers, number, request, VoteResponse(error_code=3))
    assert done == Outcome([], [Arrived(7, VoteResponse(error_code=3))])
    again = written(peers.send(vote(8), 0.0))
    assert respond(peers, number, again, VoteResponse()).arrived == [Arrived(8, VoteResponse())]


def test_a_request_has_a_version_that_both_sides_have(peers: Peers) -> None:
    _, outcome = ready(peers, 7, offer(last=1))
    assert kafkawire.decode_frame(written(outcome)).api_version == 1


def test_a_request_without_a_common_version_has_no_response(peers: Peers) -> None:
    number, outcome = ready(peers, 7, offer(first=9, last=9))
    assert outcome == Outcome([], [Arrived(7, None)])
    assert not [each for each in peers.send(vote(8), 0.0).effects if isinstance(each, Connect)]
    assert number


def test_requests_do_not_wait_for_each_other(peers: Peers) -> None:
    first = connected(peers.send(vote(1), 0.0))
    second = connected(peers.send(vote(2), 0.0))
    assert first != second


@pytest.mark.parametrize("when", ["connecting", "negotiating", "in flight", "idle"])
def test_a_connection_that_is_lost_fails_its_request(peers: Peers, when: str) -> None:
    if when in ("in flight", "idle"):
        number, outcome = ready(peers, 7, offer())
        if when == "idle":
            respond(peers, number, written(outcome), VoteResponse())
    else:
        number = connected(peers.send(vote(7), 0.0))
        if when == "negotiating":
            peers.handle(ConnectionMade(number), 0.0)
    lost = peers.handle(ConnectionLost(number, "reset"), 0.0)
    assert lost.arrived == ([] if when == "idle" else [Arrived(7, None)])
    assert connected(peers.send(vote(8), 0.0)) != number
    assert peers.handle(BytesReceived(number, b"late"), 0.0) == Outcome()


def test_a_request_waits_only_so_long(peers: Peers) -> None:
    ready(peers, 7, offer())
    due = peers.next_deadline()
    assert due == TIMEOUT
    assert peers.advance(TIMEOUT - 0.1).arrived == []
    assert peers.advance(TIMEOUT).arrived == [Arrived(7, None)]
    assert peers.next_deadline() is None


def test_hostile_bytes_fail_the_request_alone(peers: Peers) -> None:
    rng = random.Random(3)
    for token in range(200):
        number, _ = ready(peers, token, offer())
        data = rng.randbytes(rng.randrange(1, 60))
        outcome = peers.handle(BytesReceived(number, len(data).to_bytes(4, "big") + data), 0.0)
        outcome.arrived += peers.handle(ConnectionLost(number, "closed"), 0.0).arrived
        assert [each.token for each in outcome.arrived] == [token]


def test_a_request_waits_while_an_idle_connection_authenticates_again() -> None:
    """The first session lasts 10 s; the request is sent on the same connection."""
    who = Login("INSIDE", Credentials("PLAIN", "node", "secret"))
    peers = Peers("node-1", TIMEOUT, lambda: "nonce", NO_LOGIN, who)
    request = vote(7)._replace(to_controller=True)
    number = connected(peers.send(request, 0.0))
    assert peers.listener_of(number) == "INSIDE"
    opening = written(peers.handle(ConnectionMade(number), 0.0))
    rows = [(VOTE, 0, 2), (API_VERSIONS, 0, 4), (17, 0, 1), (36, 0, 2)]
    keys = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in rows]
    offered = ApiVersionsResponse(api_keys=keys)
    accepted = SaslAuthenticateResponse(session_lifetime_ms=10_000)
    handshake = written(respond(peers, number, opening, offered))
    token = written(respond(peers, number, handshake, SaslHandshakeResponse()))
    first = written(respond(peers, number, token, accepted))
    assert respond(peers, number, first, VoteResponse()).arrived == [Arrived(7, VoteResponse())]
    due = peers.next_deadline()
    assert due == 8.5
    handshake = written(peers.advance(due))
    assert peers.send(request._replace(token=8), due) == Outcome()
    token = written(respond(peers, number, handshake, SaslHandshakeResponse()))
    second = written(respond(peers, number, token, accepted))
    assert respond(peers, number, second, VoteResponse()).arrived == [Arrived(8, VoteResponse())]

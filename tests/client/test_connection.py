"""One connection: its table, its opening with brokers of every kind, and peers that misbehave."""

from __future__ import annotations

import itertools
from random import Random
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kafkawire
from kafkawire.client.network.connection import HANDLERS, Connection
from kafkawire.client.network.connection_states import (
    LEGAL,
    CloseConnection,
    ConnectionClosed,
    ConnectionEffect,
    ConnectionEvent,
    ConnectionReady,
    ConnectionSettings,
    State,
    Submit,
)
from kafkawire.client.network.in_flight_requests import InFlightRequests
from kafkawire.client.network.negotiated_versions import Opening
from kafkawire.client.network.oauthbearer import FromTokenProvider, OAuthBearerToken
from kafkawire.client.network.sasl import Credentials
from kafkawire.client.network.transport import (
    BytesReceived,
    Close,
    ConnectionLost,
    ConnectionMade,
    RequestToken,
    TokenFailed,
    TokenReceived,
    Write,
    WritingPaused,
    WritingResumed,
)
from kafkawire.client.requests import (
    LEAST_LOADED,
    NoResponse,
    Reason,
    ResponseReceived,
    Same,
    SendRequest,
    Sent,
)
from kafkawire.errors import LocalProtocolError
from kafkawire.messages.api_key import ApiKey
from kafkawire.messages.heartbeat_request import HeartbeatRequest
from kafkawire.messages.heartbeat_response import HeartbeatResponse
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kafkawire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kafkawire.messages.sasl_handshake_request import SaslHandshakeRequest
from kafkawire.messages.sasl_handshake_response import SaslHandshakeResponse
from kafkawire.primitives import Limits
from kafkawire.protocol.error_code import ErrorCode
from kafkawire.protocol.frame import Frame
from tests.calls import names_called

from .peers import frames, respond, versions

TABLE = {
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.HEARTBEAT: (0, 4),
    ApiKey.SASL_HANDSHAKE: (0, 1),
    ApiKey.SASL_AUTHENTICATE: (0, 2),
}
EVENTS: dict[type[ConnectionEvent], ConnectionEvent] = {
    ConnectionMade: ConnectionMade(1),
    ConnectionLost: ConnectionLost(1, "gone"),
    BytesReceived: BytesReceived(1, b""),
    WritingPaused: WritingPaused(1),
    WritingResumed: WritingResumed(1),
    TokenReceived: TokenReceived(1, OAuthBearerToken("abc")),
    TokenFailed: TokenFailed(1, "no token"),
    CloseConnection: CloseConnection(Reason.CLOSED, "enough"),
}


def made(
    credentials: Credentials | FromTokenProvider | None = None,
    *,
    opening: Opening = Opening.NEWEST,
    limit: int = 1 << 20,
    max_in_flight: int = 3,
) -> Connection:
    settings = ConnectionSettings(
        client_id="tests",
        software=("kafkawire", "tests"),
        request_timeout_s=10.0,
        setup_timeout_s=5.0,
        max_in_flight=max_in_flight,
        limits=Limits(max_frame_bytes=limit),
        credentials=credentials,
    )
    return Connection(1, 7, settings, opening, 0.0, nonce=lambda: "nonce", rng=Random(1).random)


def ready(connection: Connection | None = None) -> Connection:
    """A connection that is open, without SASL."""
    connection = connection or made()
    (request,) = frames(connection.handle(ConnectionMade(1), 0.0))
    effects = connection.handle(BytesReceived(1, respond(request, versions(TABLE))), 0.0)
    assert effects == [ConnectionReady()]
    return connection


def request_of(key: object = 0, *, has_response: bool = True, highest: int = 4) -> SendRequest:
    message = HeartbeatRequest(group_id="g", member_id=str(key), generation_id=1)
    body = Same(message, 0, highest)
    return SendRequest("o", str(key), LEAST_LOADED, ApiKey.HEARTBEAT, body, 10.0, has_response)


def submit(connection: Connection, key: object, now: float = 0.0) -> Frame:
    (request,) = frames(connection.handle(Submit(request_of(key), now + 10.0), now))
    return request


def test_every_state_and_event_has_its_handler() -> None:
    """The table is total: what is not in it is refused as our own mistake, and nothing else is."""
    assert set(LEGAL) == set(State)
    assert LEGAL[State.CLOSED] == frozenset()
    assert set(HANDLERS) == set(get_args(ConnectionEvent))
    for state, kind in itertools.product(State, [*EVENTS, Submit]):
        connection = made()
        connection.state = state
        event = EVENTS.get(kind) or Submit(request_of(), 10.0)
        if state in HANDLERS[kind][1]:
            connection.handle(event, 0.0)
        else:
            with pytest.raises(LocalProtocolError, match=state.value):
                connection.handle(event, 0.0)


def test_states_follow_only_the_table() -> None:
    for before, after in itertools.product(State, State):
        connection = made()
        connection.state = before
        if after in LEGAL[before]:
            connection._transition(after)
        else:
            with pytest.raises(LocalProtocolError):
                connection._transition(after)


def test_responses_come_in_order_with_the_negotiated_version() -> None:
    connection = ready()
    first, second = submit(connection, "a"), submit(connection, "b")
    assert (first.api_version, second.api_version) == (4, 4)
    assert second.correlation_id == first.correlation_id + 1
    data = respond(first, HeartbeatResponse(error_code=1)) + respond(second, HeartbeatResponse())
    for cut in range(1, len(data)):
        fresh = ready()
        submit(fresh, "a")
        submit(fresh, "b")
        effects = fresh.handle(BytesReceived(1, data[:cut]), 0.0)
        effects += fresh.handle(BytesReceived(1, data[cut:]), 0.0)
        responses = [effect for effect in effects if isinstance(effect, ResponseReceived)]
        assert [each.request.key for each in responses] == ["a", "b"]
        assert [each.version for each in responses] == [4, 4]
        assert [each.node for each in responses] == [7, 7]


def test_a_response_that_comes_alone_is_not_buffered() -> None:
    """Nor is anything made for the text of an error."""
    connection = ready()
    data = respond(submit(connection, "a"), HeartbeatResponse())
    effects: list[object] = []
    names = names_called(lambda: effects.extend(connection.handle(BytesReceived(1, data), 0.0)))
    assert [type(each) for each in effects] == [ResponseReceived]
    assert "_on_bytes" in names
    assert {"feed", "_cut", "name", "_response_to"}.isdisjoint(names)


def test_the_request_bounds_the_version_too() -> None:
    connection = ready()
    (request,) = frames(connection.handle(Submit(request_of(highest=2), 10.0), 0.0))
    assert request.api_version == 2


def test_a_request_that_the_broker_lacks_is_not_sent() -> None:
    connection = ready()
    body = Same(HeartbeatRequest(), 5, 9)
    unknown = SendRequest("o", 1, LEAST_LOADED, ApiKey.HEARTBEAT, body, 10.0)
    (effect,) = connection.handle(Submit(unknown, 10.0), 0.0)
    assert isinstance(effect, NoResponse)
    assert (effect.reason, effect.retriable, effect.sent) == (Reason.NO_VERSION, False, False)
    assert "HEARTBEAT" in effect.detail
    assert "0 to 4" in effect.detail


def test_a_request_that_cannot_be_written_fails_alone() -> None:
    connection = ready()
    body = Same(HeartbeatRequest(group_id="g", group_instance_id="i"), 0, 1)
    bad = SendRequest("o", 1, LEAST_LOADED, ApiKey.HEARTBEAT, body, 10.0)
    (effect,) = connection.handle(Submit(bad, 10.0), 0.0)
    assert isinstance(effect, NoResponse)
    assert effect.reason is Reason.INVALID_REQUEST
    assert "group_instance_id" in effect.detail
    request = submit(connection, "next")
    (done,) = connection.handle(BytesReceived(1, respond(request, HeartbeatResponse())), 0.0)
    assert isinstance(done, ResponseReceived)


def test_a_request_without_a_response_is_done_when_it_is_sent() -> None:
    connection = ready()
    silent = request_of("x", has_response=False)
    write, sent = connection.handle(Submit(silent, 10.0), 0.0)
    assert isinstance(write, Write)
    assert sent == Sent(silent, 4)
    assert not connection.in_flight


def test_large_records_are_not_joined_with_their_frame() -> None:
    records = bytes(100_000)
    part = PartitionProduceData(records=records)
    message = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[part])])
    settings = ConnectionSettings("me", ("kafkawire", "1"), 1.0, 1.0, 1, Limits())
    write = InFlightRequests(settings).write(1, message, 9)
    assert write.buffers[1] is records
    assert [len(each) < 1000 for each in write.buffers] == [True, False, True]
    assert write.data == kafkawire.encode_frame(message, 9, 0, client_id="me")


def test_no_more_than_the_limit_is_in_flight_and_nothing_while_writing_is_paused() -> None:
    connection = ready()
    for key in range(3):
        assert connection.can_send
        submit(connection, key)
    assert not connection.can_send
    idle = ready()
    idle.handle(WritingPaused(1), 0.0)
    assert not idle.can_send
    idle.handle(WritingResumed(1), 0.0)
    assert idle.can_send


def test_a_request_too_late_ends_the_connection_and_only_it_is_late() -> None:
    connection = ready()
    submit(connection, "a", 0.0)
    submit(connection, "b", 4.0)
    assert connection.next_deadline() == 10.0
    assert connection.advance(9.9) == []
    close, first, second, ended = connection.advance(10.0)
    assert close == Close(1)
    assert isinstance(first, NoResponse)
    assert isinstance(second, NoResponse)
    assert (first.request.key, first.reason) == ("a", Reason.TIMED_OUT)
    assert (second.request.key, second.reason, second.retriable) == ("b", Reason.DISCONNECTED, True)
    assert isinstance(ended, ConnectionClosed)
    assert connection.next_deadline() is None


# The opening.


def test_error_35_is_followed_by_the_version_it_names() -> None:
    connection = made()
    (request,) = frames(connection.handle(ConnectionMade(1), 0.0))
    assert request.api_version == 4
    refusal = versions({ApiKey.API_VERSIONS: (0, 2)}, ErrorCode.UNSUPPORTED_VERSION)
    (again,) = frames(
        connection.handle(BytesReceived(1, respond(request, refusal, version=0)), 0.0)
    )
    assert (again.api_key, again.api_version) == (ApiKey.API_VERSIONS, 2)
    effects = connection.handle(BytesReceived(1, respond(again, versions(TABLE))), 0.0)
    assert effects == [ConnectionReady()]


def test_error_35_with_nothing_named_is_followed_by_version_0() -> None:
    connection = made()
    (request,) = frames(connection.handle(ConnectionMade(1), 0.0))
    refusal = versions({}, ErrorCode.UNSUPPORTED_VERSION)
    (again,) = frames(
        connection.handle(BytesReceived(1, respond(request, refusal, version=0)), 0.0)
    )
    assert again.api_version == 0
    effects = connection.handle(BytesReceived(1, respond(again, refusal)), 0.0)
    assert any(isinstance(each, ConnectionClosed) for each in effects), (
        "a broker that refuses 0 too"
    )


def test_a_broker_that_closes_on_api_versions_gets_version_0() -> None:
    connection = made()
    connection.handle(ConnectionMade(1), 0.0)
    (ended,) = connection.handle(ConnectionLost(1, "closed"), 0.0)
    assert isinstance(ended, ConnectionClosed)
    assert ended.opening is Opening.OLDEST
    again = made(opening=ended.opening)
    (request,) = frames(again.handle(ConnectionMade(1), 0.0))
    assert request.api_version == 0
    again.handle(BytesReceived(1, respond(request, versions(TABLE))), 0.0)
    (later,) = again.handle(ConnectionLost(1, "closed"), 0.0)
    assert isinstance(later, ConnectionClosed)
    assert later.opening is Opening.NEWEST


@pytest.mark.parametrize("has_response", [True, False])
def test_what_no_response_confirms_is_received_before_the_socket_closes(has_response: bool) -> None:
    connection = ready()
    connection.handle(Submit(request_of("x", has_response=has_response), 10.0), 0.0)
    close, *_ = connection.handle(CloseConnection(Reason.CLOSED, "enough"), 0.0)
    assert close == Close(1, after_peer=not has_response)


def test_a_connection_that_is_not_made_in_time_is_given_up() -> None:
    connection = made()
    assert connection.next_deadline() == 5.0
    effects = connection.advance(5.0)
    assert effects[0] == Close(1)
    assert isinstance(effects[-1], ConnectionClosed)


# SASL.


def authenticated(
    lifetime_ms: int = 0, *, handshake: int = 1
) -> tuple[Connection, list[ConnectionEffect], Frame | None]:
    """PLAIN, up to the broker's last word; with handshake 0 tokens have no header."""
    connection = made(Credentials("PLAIN", "alice", "secret"))
    (request,) = frames(connection.handle(ConnectionMade(1), 0.0))
    table = {**TABLE, ApiKey.SASL_HANDSHAKE: (0, handshake)}
    (shake,) = frames(connection.handle(BytesReceived(1, respond(request, versions(table))), 0.0))
    assert shake.api_version == handshake
    response = respond(shake, SaslHandshakeResponse(mechanisms=["PLAIN"]))
    effects = connection.handle(BytesReceived(1, response), 0.0)
    if handshake == 0:
        assert effects == [Write(1, [(13).to_bytes(4, "big") + b"\0alice\0secret"])]
        return connection, connection.handle(BytesReceived(1, bytes(4)), 0.0), None
    (token,) = frames(effects)
    good = SaslAuthenticateResponse(session_lifetime_ms=lifetime_ms)
    return connection, connection.handle(BytesReceived(1, respond(token, good)), 0.0), token


@pytest.mark.parametrize("handshake", [0, 1])
def test_sasl_plain_with_either_handshake(handshake: int) -> None:
    connection, effects, _ = authenticated(handshake=handshake)
    assert effects == [ConnectionReady()]
    assert connection.can_send


def test_a_mechanism_the_broker_lacks_is_named() -> None:
    connection = made(Credentials("PLAIN", "alice", "secret"))
    (request,) = frames(connection.handle(ConnectionMade(1), 0.0))
    (shake,) = frames(connection.handle(BytesReceived(1, respond(request, versions(TABLE))), 0.0))
    code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
    response = respond(shake, SaslHandshakeResponse(error_code=code, mechanisms=["GSSAPI"]))
    _, ended = connection.handle(BytesReceived(1, response), 0.0)
    assert isinstance(ended, ConnectionClosed)
    assert (ended.reason, ended.fatal) == (Reason.AUTHENTICATION_FAILED, True)
    assert "GSSAPI" in ended.detail
    assert "secret" not in ended.detail


def test_a_session_is_renewed_before_it_ends_and_nothing_is_lost() -> None:
    connection, _, _ = authenticated(lifetime_ms=100_000)
    due = connection.next_deadline()
    assert due is not None
    assert 85.0 <= due <= 95.0
    waiting = submit(connection, "a", due - 1)
    assert connection.advance(due) == [], "what is in flight comes first"
    assert not connection.can_send
    done, renew = connection.handle(BytesReceived(1, respond(waiting, HeartbeatResponse())), due)
    assert isinstance(done, ResponseReceived)
    (shake,) = frames([renew])
    assert shake.api_key == ApiKey.SASL_HANDSHAKE
    response = respond(shake, SaslHandshakeResponse(mechanisms=["PLAIN"]))
    (token,) = frames(connection.handle(BytesReceived(1, response), due))
    effects = connection.handle(BytesReceived(1, respond(token, SaslAuthenticateResponse())), due)
    assert effects == [ConnectionReady()]
    assert connection.can_send


# OAUTHBEARER.


def negotiated() -> Connection:
    """A connection that needs a token next."""
    connection = made(FromTokenProvider())
    (request,) = frames(connection.handle(ConnectionMade(1), 0.0))
    effects = connection.handle(BytesReceived(1, respond(request, versions(TABLE))), 0.0)
    assert effects == [RequestToken(1)]
    return connection


def send_token(connection: Connection, value: str, now: float) -> Frame:
    """Pass the token that was asked for; return the request that carries it."""
    (shake,) = frames(connection.handle(TokenReceived(1, OAuthBearerToken(value)), now))
    assert isinstance(shake.body, SaslHandshakeRequest)
    assert shake.body.mechanism == "OAUTHBEARER"
    response = respond(shake, SaslHandshakeResponse(mechanisms=["OAUTHBEARER"]))
    (token,) = frames(connection.handle(BytesReceived(1, response), now))
    assert isinstance(token.body, SaslAuthenticateRequest)
    assert token.body.auth_bytes == f"n,,\x01auth=Bearer {value}\x01\x01".encode()
    return token


def test_each_authentication_has_a_token_of_its_own() -> None:
    connection = negotiated()
    good = SaslAuthenticateResponse(session_lifetime_ms=100_000)
    response = respond(send_token(connection, "first", 1.0), good)
    assert connection.handle(BytesReceived(1, response), 1.0) == [ConnectionReady()]
    due = connection.next_deadline()
    assert due is not None
    assert connection.advance(due) == [RequestToken(1)]
    assert not connection.can_send
    response = respond(send_token(connection, "second", due), good)
    assert connection.handle(BytesReceived(1, response), due) == [ConnectionReady()]
    assert connection.can_send


def test_a_provider_without_a_token_is_an_authentication_error() -> None:
    closed = ended(negotiated().handle(TokenFailed(1, "the identity provider is down"), 1.0))
    assert (closed.reason, closed.fatal) == (Reason.AUTHENTICATION_FAILED, True)
    assert closed.detail == "the identity provider is down"


def test_a_provider_that_never_returns_is_given_up() -> None:
    connection = negotiated()
    assert connection.next_deadline() == 10.0
    closed = ended(connection.advance(10.0))
    assert (closed.reason, closed.fatal) == (Reason.TIMED_OUT, False)
    assert "sasl.oauth.token.provider" in closed.detail
    connection = negotiated()
    send_token(connection, "late", 9.0)
    assert connection.advance(10.0) == [], "the token came in time"


@pytest.mark.parametrize("message", ["", "Authentication failed", '{"status":"\x1binvalid"}'])
def test_a_rejected_token_is_acknowledged_and_explained(message: str) -> None:
    connection = negotiated()
    token = send_token(connection, "abc", 1.0)
    reason = SaslAuthenticateResponse(auth_bytes=b'{"status":"\x1binvalid"}')
    (acknowledged,) = frames(connection.handle(BytesReceived(1, respond(token, reason)), 1.0))
    assert isinstance(acknowledged.body, SaslAuthenticateRequest)
    assert acknowledged.body.auth_bytes == b"\x01"
    refusal = SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=message
    )
    refused = respond(acknowledged, refusal)
    closed = ended(connection.handle(BytesReceived(1, refused), 1.0))
    assert (closed.reason, closed.fatal) == (Reason.AUTHENTICATION_FAILED, True)
    assert "SASL_AUTHENTICATION_FAILED" in closed.detail
    assert closed.detail.count(r'{"status":"\x1binvalid"}') == 1
    assert "abc" not in closed.detail


def test_a_rejection_is_not_taken_for_success() -> None:
    connection = negotiated()
    token = send_token(connection, "abc", 1.0)
    reason = SaslAuthenticateResponse(auth_bytes=b'{"status":"invalid_token"}')
    (acknowledged,) = frames(connection.handle(BytesReceived(1, respond(token, reason)), 1.0))
    done = respond(acknowledged, SaslAuthenticateResponse())
    closed = ended(connection.handle(BytesReceived(1, done), 1.0))
    assert closed.reason is Reason.AUTHENTICATION_FAILED
    assert "invalid_token" in closed.detail


# Hostile peers.


def test_a_wrong_correlation_id_ends_the_connection() -> None:
    connection = ready()
    submit(connection, "a")
    second = submit(connection, "b")
    close, first, other, ended = connection.handle(
        BytesReceived(1, respond(second, HeartbeatResponse())), 0.0
    )
    assert close == Close(1)
    assert isinstance(first, NoResponse)
    assert isinstance(other, NoResponse)
    assert (first.reason, other.reason) == (Reason.INVALID_RESPONSE, Reason.DISCONNECTED)
    assert isinstance(ended, ConnectionClosed)
    assert "correlation id" in ended.detail


@pytest.mark.parametrize("size", [-1, 1 << 20 | 1, 0x7FFF_FFFF])
def test_a_size_that_cannot_be_ends_the_connection_before_memory_is_taken(size: int) -> None:
    connection = ready()
    submit(connection, "a")
    data = size.to_bytes(4, "big", signed=True) + b"x" * 100
    effects = connection.handle(BytesReceived(1, data), 0.0)
    assert effects[0] == Close(1)
    assert isinstance(effects[-1], ConnectionClosed)


def test_a_response_without_a_request_closes_the_connection() -> None:
    connection = ready()
    effects = connection.handle(BytesReceived(1, (4).to_bytes(4, "big") + bytes(4)), 0.0)
    assert isinstance(effects[-1], ConnectionClosed)
    assert "response without a request" in effects[-1].detail


@settings(max_examples=300)
@given(
    data=st.lists(st.binary(max_size=64), max_size=6),
    sasl=st.booleans(),
    keep=st.integers(0, 3),
)
def test_whatever_a_peer_sends_each_request_ends_once(
    data: list[bytes], sasl: bool, keep: int
) -> None:
    """Random bytes, at any point of the opening or later."""
    connection = made(Credentials("SCRAM-SHA-256", "a", "b")) if sasl else ready()
    if sasl:
        connection.handle(ConnectionMade(1), 0.0)
    requested: set[str] = set()
    ends: list[object] = []
    for part in data:
        if connection.can_send and len(requested) < keep:
            requested.add(str(len(requested)))
            submit(connection, len(requested) - 1)
        if connection.state is State.CLOSED:
            break
        ends += connection.handle(BytesReceived(1, part), 0.0)
    if connection.state is not State.CLOSED:
        ends += connection.handle(ConnectionLost(1, "gone"), 0.0)
    keys = [each.request.key for each in ends if isinstance(each, ResponseReceived | NoResponse)]
    assert sorted(map(str, keys)) == sorted(requested)
    assert sum(isinstance(each, ConnectionClosed) for each in ends) == 1
    assert connection.next_deadline() is None


# -- the other side expects something else


def ended(effects: list[ConnectionEffect]) -> ConnectionClosed:
    """Return how a connection ended."""
    (closed,) = (each for each in effects if isinstance(each, ConnectionClosed))
    return closed


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (bytes.fromhex("15030300020246"), "expects TLS"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP server"),
    ],
)
def test_a_server_of_another_protocol_is_named_at_once(answer: bytes, named: str) -> None:
    connection = made()
    connection.handle(ConnectionMade(1), 0.0)
    closed = ended(connection.handle(BytesReceived(1, answer), 0.0))
    assert closed.fatal
    assert named in closed.detail


def test_a_broker_that_closes_at_the_first_request_may_require_sasl() -> None:
    connection = ready()
    submit(connection, 1)
    assert "SASL" in ended(connection.handle(ConnectionLost(1, "gone"), 1.0)).detail
    connection = ready()
    request = submit(connection, 1)
    connection.handle(BytesReceived(1, respond(request, HeartbeatResponse())), 0.0)
    submit(connection, 2)
    assert "SASL" not in ended(connection.handle(ConnectionLost(1, "gone"), 1.0)).detail
    idle = ended(ready().handle(ConnectionLost(1, "gone"), 1.0))
    assert idle.detail == "gone"


def test_a_listener_without_sasl_is_named() -> None:
    connection = made(Credentials("PLAIN", "alice", "secret"))
    (request,) = frames(connection.handle(ConnectionMade(1), 0.0))
    effects = connection.handle(BytesReceived(1, respond(request, versions(TABLE))), 0.0)
    (handshake,) = frames(effects)
    refusal = SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    closed = ended(connection.handle(BytesReceived(1, respond(handshake, refusal)), 0.0))
    assert closed.fatal
    assert "does not use SASL" in closed.detail

"""The limits of what clients can make grow; other clients are served as before."""

from __future__ import annotations

import pytest

from kafkawire import ErrorCode
from kafkawire.broker import Bounds, Disconnected, Drained
from kafkawire.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkawire.messages.create_partitions_response import CreatePartitionsResponse
from kafkawire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafkawire.messages.fetch_response import FetchResponse
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.metadata_response import MetadataResponse

from .fetches import fetch_of, only
from .harness import Client, Harness, metadata
from .log.test_log import batch, produce
from .security.test_sasl import PASSWORD, USER, handshake, plain, token
from .test_hostile import undisturbed

E = ErrorCode
EXCESS = "Excessively large number of partitions per request."
EXCESS_ADDITIONAL = "Excessively large number of additional partitions per request."
EXCESS_RECORDS = "Unable to perform excessively large batch operation."
SECURED = {"sasl.enabled.mechanisms": "PLAIN"}


def announce(client: Client, size: int) -> None:
    """Begin a frame of that size."""
    client.send_bytes(size.to_bytes(4, "big"))


# -- connections


@pytest.mark.parametrize("version", [0, 1])
def test_an_unauthenticated_client_may_buffer_little(version: int) -> None:
    harness = Harness(topics={"t": 1}, settings=SECURED, passwords={USER: PASSWORD})
    early, during, done = harness.client(), harness.client(), harness.client()
    announce(early, 524_288)
    assert early.closed is None
    for client in (during, done):
        handshake(client, "PLAIN", version)
    announce(during, 524_289)
    assert during.closed is not None
    assert "frame of 524289 bytes exceeds sasl.server.max.receive.size (524288)" in during.closed
    if version:
        token(done, plain())
        announce(done, 524_289)
        assert done.closed is None


def test_the_same_bound_holds_while_a_client_authenticates_again() -> None:
    again = {"connections.max.reauth.ms": "60000"}  # without, none authenticates again, as in Kafka
    settings = {**SECURED, **again, "sasl.server.max.receive.size": "1000"}
    client = Harness(settings=settings, passwords={USER: PASSWORD}).client()
    handshake(client, "PLAIN")
    token(client, plain())
    handshake(client, "PLAIN")
    announce(client, 1001)
    assert client.closed is not None
    assert "sasl.server.max.receive.size (1000)" in client.closed


def test_connections_of_one_address_and_of_all_are_bounded() -> None:
    settings = {"max.connections": "4", "max.connections.per.ip": "2"}
    harness = Harness(topics={"t": 1}, settings=settings)
    first, second, third = (harness.client(host="10.0.0.1") for _ in range(3))
    assert first.closed is second.closed is None
    assert third.closed == "too many connections from 10.0.0.1: max.connections.per.ip is 2"
    others = [harness.client(host=f"10.0.0.{number}") for number in range(2, 5)]
    for each in others:
        each.send(MetadataRequest(topics=[]), 9)
    assert [each.response() is None for each in others] == [False, False, True]
    harness.handle(Disconnected(first.number))
    assert others[2].receive(MetadataResponse), "it has waited"
    assert all(each.closed is None for each in others)
    harness.handle(Disconnected(others[0].number))
    assert harness.client(host="10.0.0.1").closed is None
    undisturbed(second)


def test_an_override_applies_before_the_bound_of_any_address() -> None:
    overrides = "10.0.0.1:1, 10.0.0.2:3,::1:0"
    settings = {"max.connections.per.ip": "2", "max.connections.per.ip.overrides": overrides}
    harness = Harness(topics={"t": 1}, settings=settings)
    allowed = {
        host: sum(harness.client(host=host).closed is None for _ in range(5))
        for host in ("10.0.0.1", "10.0.0.2", "10.0.0.3", "::1")
    }
    assert allowed == {"10.0.0.1": 1, "10.0.0.2": 3, "10.0.0.3": 2, "::1": 0}


def test_all_connections_together_may_buffer_so_much_and_the_largest_closes() -> None:
    harness = Harness(topics={"t": 1}, settings={"queued.max.request.bytes": "100000"})
    hostile = [harness.client() for _ in range(30)]
    other = harness.client()
    for at, client in enumerate(hostile):
        announce(client, 50_000)
        client.send_bytes(bytes(10_000 + at))
        undisturbed(other)
        assert harness.server().connections.buffered <= 100_000
        assert harness.server().connections.buffered == sum(
            len(each.buffer) for each in harness.server().connections.values()
        )
    closed = [each for each in hostile if each.closed is not None]
    assert len(closed) == 21
    assert all("queued.max.request.bytes" in (each.closed or "") for each in closed)
    for client in hostile:
        client.disconnect()
    assert harness.server().connections.buffered == 0


def test_a_request_that_comes_drop_by_drop_is_not_waited_for_for_ever() -> None:
    harness = Harness(topics={"t": 1}, settings={"connections.max.idle.ms": "1000"})
    slow, other = harness.client(), harness.client()
    announce(slow, 1000)
    for _ in range(9):
        harness.advance(0.1)
        slow.send_bytes(b"\0")
        undisturbed(other)
    assert slow.closed is None
    harness.advance(0.2)
    assert slow.closed == "request not complete within connections.max.idle.ms"
    assert other.closed is None
    undisturbed(other)


# -- topics


def creation(client: Client, *topics: CreatableTopic, validate_only: bool = False) -> list[int]:
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
    response = client.exchange(request, 7, CreateTopicsResponse)
    messages = {each.error_message for each in response.topics}
    assert messages <= {None, "", EXCESS, EXCESS_RECORDS, FULL}
    return [each.error_code for each in response.topics]


FULL = "The cluster would have more than 12 partitions."


def numbered(name: str, count: int) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=count, replication_factor=1)


def assigned(name: str, count: int) -> CreatableTopic:
    replicas = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=[1]) for index in range(count)
    ]
    return CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=replicas)


@pytest.mark.parametrize("validate_only", [True, False])
def test_one_request_creates_only_so_many_partitions(validate_only: bool) -> None:
    harness = Harness(bounds=Bounds(partitions_per_request=10))
    client = harness.client()
    both = numbered("a", 5), assigned("b", 6)
    assert creation(client, *both, validate_only=validate_only) == [E.POLICY_VIOLATION] * 2
    assert creation(client, assigned("c", 11), validate_only=True) == [E.POLICY_VIOLATION]
    assert not harness.image.topics
    assert creation(client, numbered("a", 5), assigned("b", 5)) == [E.NONE] * 2


def test_kafkas_own_bound_is_the_default() -> None:
    client = Harness().client()
    thousand = [numbered(f"t{at}", 10_000) for at in range(1000)]
    assert set(creation(client, *thousand, validate_only=True)) == {E.POLICY_VIOLATION}
    assert creation(client, numbered("t", 10_000), validate_only=True) == [E.POLICY_VIOLATION]
    assert creation(client, numbered("t", 9_999), validate_only=True) == [E.NONE]


@pytest.mark.parametrize("by_assignment", [True, False])
@pytest.mark.parametrize("validate_only", [True, False])
def test_one_request_adds_only_so_many_partitions(by_assignment: bool, validate_only: bool) -> None:
    harness = Harness(topics={"a": 1, "b": 1}, bounds=Bounds(partitions_per_request=10))

    def grown(count: int) -> set[tuple[int, str | None]]:
        assignments = [CreatePartitionsAssignment(broker_ids=[1]) for _ in range(1, count)]
        topics = [
            CreatePartitionsTopic(
                name=name, count=count, assignments=assignments if by_assignment else None
            )
            for name in "ab"
        ]
        request = CreatePartitionsRequest(topics=topics, validate_only=validate_only)
        response = harness.client().exchange(request, 3, CreatePartitionsResponse)
        return {(each.error_code, each.error_message) for each in response.results}

    assert grown(7) == {(E.POLICY_VIOLATION, EXCESS_ADDITIONAL)}
    assert grown(6) == {(E.NONE, None)}


def test_a_cluster_has_only_so_many_partitions() -> None:
    harness = Harness(topics={"a": 8}, bounds=Bounds(partitions=12))
    client = harness.client()
    assert creation(client, numbered("b", 5)) == [E.POLICY_VIOLATION]
    assert creation(client, numbered("b", 4)) == [E.NONE]
    assert metadata(client, "c").topics[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    harness.delete_topics("a")
    assert metadata(client, "c").topics[0].error_code == E.NONE


def test_a_metadata_creates_only_so_many_topics_and_the_next_goes_on() -> None:
    harness = Harness(bounds=Bounds(partitions_per_metadata=10))
    client = harness.client()
    names = [f"t{at}" for at in range(25)]
    for made in (10, 20, 25, 25):
        codes = [each.error_code for each in metadata(client, *names).topics]
        assert codes == [E.NONE] * made + [E.LEADER_NOT_AVAILABLE] * (25 - made)
    assert metadata(client, "a b", "x").topics[0].error_code == E.INVALID_TOPIC_EXCEPTION


# -- fetching


def whole(client: Client, *partitions: int, session_id: int = 0, epoch: int = 0) -> FetchResponse:
    requested = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 30)
        for index in partitions
    ]
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 30,
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(topic="t", partitions=requested)] if requested else [],
    )
    return client.exchange(request, 12, FetchResponse)


def test_a_fetch_session_has_only_so_many_partitions() -> None:
    harness = Harness(topics={"t": 8}, bounds=Bounds(session_partitions=4))
    client = harness.client()
    assert whole(client, *range(5)).session_id == 0, "it does without one"
    session = whole(client, *range(3)).session_id
    assert session
    assert whole(client, 3, session_id=session, epoch=1).error_code == E.NONE
    grown = whole(client, 4, session_id=session, epoch=2)
    assert grown.error_code == E.FETCH_SESSION_ID_NOT_FOUND
    assert len(harness.broker().sessions) == 0


def test_a_response_is_no_larger_than_the_broker_lets_it_be() -> None:
    harness = Harness(topics={"t": 8}, settings={"fetch.max.bytes": "1500"})
    client = harness.client()
    for index in range(8):
        assert produce(client, batch(b"x" * 1000), partition=index).error_code == E.NONE
    found = whole(client, *range(8), epoch=-1).responses[0].partitions
    assert [bool(each.records) for each in found] == [True] + [False] * 7


# -- producers


def test_a_partition_remembers_only_so_many_producers() -> None:
    harness = Harness(topics={"t": 1}, bounds=Bounds(producers=3))
    client = harness.client()

    def written(producer: int, sequence: int) -> int:
        data = batch(b"a", producer_id=producer, producer_epoch=0, base_sequence=sequence)
        return produce(client, data).error_code

    for producer in (1, 2, 3):
        assert written(producer, 0) == E.NONE
    assert written(1, 1) == E.NONE  # now 2 is the one that wrote longest ago
    assert written(4, 0) == E.NONE
    assert len(harness.front().machines.producers(harness.key("t"))) == 3
    assert written(1, 5) == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert written(2, 5) == E.NONE, "forgotten, so any sequence will do"


# -- responses


def test_a_client_that_never_reads_is_closed() -> None:
    harness = Harness(topics={"t": 1}, settings={"connections.max.idle.ms": "1000"})
    produce(harness.client(), batch(b"x" * 900_000))
    greedy, other = harness.client(), harness.client()
    harness.not_draining.add(greedy.number)
    for _ in range(10):
        greedy.send(fetch_of(greedy), 12)
    assert len(greedy.received) < 2_000_000
    for _ in range(3):
        harness.advance(0.5)
        undisturbed(other)
    assert greedy.closed == "responses not read within connections.max.idle.ms"
    harness.not_draining.clear()
    harness.handle(Drained(greedy.number))
    assert (
        only(other.exchange(fetch_of(other, max_bytes=1), 12, FetchResponse)).error_code == E.NONE
    )

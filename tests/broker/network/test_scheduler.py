"""Scheduling of requests: no client delays the others, whatever it sends at once."""

from __future__ import annotations

from itertools import pairwise

import pytest

import kafkawire
from kafkawire import Message
from kafkawire.broker import (
    AwaitDrain,
    Disconnected,
    Drained,
    PauseReading,
    Received,
    Reply,
    ResumeReading,
)
from kafkawire.broker.bounds import (
    BACKLOG,
    SLICE_BYTES,
    SLICE_DEADLINES,
    SLICE_ELEMENTS,
    SLICE_REQUESTS,
)
from kafkawire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafkawire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafkawire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkawire.node.local_cluster import Effect
from tests.broker.fetches import fetch_of
from tests.broker.harness import Harness
from tests.broker.log.test_log import batch, produce
from tests.broker.members import coordinator
from tests.broker.work import steps

ONE = MetadataRequest(topics=[])


def frames(request: Message, count: int, version: int = 9) -> bytes:
    return b"".join(
        kafkawire.encode_frame(request, version, number, client_id="c") for number in range(count)
    )


class Calls:
    """Single calls of the cluster: the responses of each connection, in order."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.order: list[int] = []
        self.got: dict[int, list[int]] = {}
        self.effects: list[Effect] = []

    def receive(self, connection: int, data: bytes) -> None:
        self._take(self.harness.cluster.handle(Received(connection, data), self.harness.now))

    def advance(self) -> None:
        self._take(self.harness.cluster.advance(self.harness.now))

    @property
    def due(self) -> bool:
        due = self.harness.cluster.next_deadline()
        return due is not None and due <= self.harness.now

    def finish(self) -> None:
        """Process all queued requests."""
        while self.due:
            self.advance()

    def _take(self, effects: list[Effect]) -> None:
        self.effects += effects
        for effect in effects:
            if isinstance(effect, Reply):
                self.order.append(effect.connection)
                number = int.from_bytes(effect.data[4:8], "big")
                self.got.setdefault(effect.connection, []).append(number)
            elif isinstance(effect, AwaitDrain):
                self._take(
                    self.harness.cluster.handle(Drained(effect.connection), self.harness.now)
                )


def test_one_call_processes_one_time_slice() -> None:
    harness = Harness()
    pipelining, calls = harness.client().number, Calls(harness)
    calls.receive(pipelining, frames(ONE, 10 * SLICE_REQUESTS))
    assert calls.got[pipelining] == [*range(SLICE_REQUESTS)]
    assert calls.due
    for done in range(2, 11):
        calls.advance()
        assert len(calls.order) == done * SLICE_REQUESTS
    assert calls.got[pipelining] == [*range(10 * SLICE_REQUESTS)]
    calls.finish()
    assert not calls.due


def test_a_pipelining_client_does_not_delay_others() -> None:
    harness = Harness()
    pipelining, other, calls = harness.client().number, harness.client().number, Calls(harness)
    calls.receive(pipelining, frames(ONE, 20 * SLICE_REQUESTS))
    for _ in range(10):
        calls.receive(other, frames(ONE, 1))
        calls.advance()
    calls.finish()
    positions = [at for at, number in enumerate(calls.order) if number == other]
    between = [later - earlier - 1 for earlier, later in pairwise(positions)]
    assert len(positions) == 10
    assert positions[0] <= SLICE_REQUESTS
    assert max(between) <= 2 * SLICE_REQUESTS
    assert calls.got[pipelining] == [*range(20 * SLICE_REQUESTS)]


def test_a_new_request_is_processed_at_once_however_many_clients_are_queued() -> None:
    for count in (10, 100):
        harness = Harness()
        calls = Calls(harness)
        other, *waiting = [harness.client().number for _ in range(1 + count)]
        for pipelining in waiting:
            calls.receive(pipelining, frames(ONE, 3 * SLICE_REQUESTS))
        before = len(calls.order)
        calls.receive(other, frames(ONE, 1))
        assert calls.order[before] == other
        assert len(calls.order) - before <= SLICE_REQUESTS
        calls.finish()
        assert {len(found) for found in calls.got.values()} == {1, 3 * SLICE_REQUESTS}


def test_requests_of_some_clients_do_not_run_those_that_others_have_queued() -> None:
    """All sockets that are readable are read before `advance` is called, with its deadlines."""
    harness = Harness()
    calls = Calls(harness)
    pipelining, *others = [harness.client().number for _ in range(1 + 100)]
    calls.receive(pipelining, frames(ONE, 5 * SLICE_REQUESTS))
    for other in others:
        calls.receive(other, frames(ONE, 1))
    assert calls.order == [pipelining] * SLICE_REQUESTS + others
    calls.advance()
    assert calls.got[pipelining] == [*range(2 * SLICE_REQUESTS)]
    calls.finish()
    assert calls.got[pipelining] == [*range(5 * SLICE_REQUESTS)]


def test_large_responses_end_a_time_slice() -> None:
    harness = Harness(topics={"t": 1})
    produce(harness.client(), batch(b"x" * SLICE_BYTES))
    pipelining, other = harness.client(), harness.client()
    calls = Calls(harness)
    fetch = fetch_of(pipelining, max_bytes=1, partition_max_bytes=1)
    calls.receive(pipelining.number, frames(fetch, 4, 12))
    calls.receive(other.number, frames(ONE, 1))
    calls.advance()
    assert calls.order == [pipelining.number, other.number, pipelining.number]


def test_delayed_fetches_with_one_deadline_complete_in_several_time_slices() -> None:
    harness = Harness(topics={"t": 1})
    calls, other = Calls(harness), harness.client()
    many = 3 * SLICE_DEADLINES
    for _ in range(many):
        client = harness.client()
        calls.receive(client.number, frames(fetch_of(client, max_wait_ms=500, min_bytes=1), 1, 12))
    harness.now = 0.5
    calls.advance()
    assert len(calls.order) == SLICE_DEADLINES
    calls.receive(other.number, frames(ONE, 1))
    assert calls.order[SLICE_DEADLINES] == other.number
    calls.finish()
    assert len(calls.order) == many + 1


def test_reading_from_a_queued_client_is_paused() -> None:
    harness = Harness()
    pipelining, calls = harness.client().number, Calls(harness)
    one = frames(ONE, 1)
    many = 2 * BACKLOG // len(one)
    calls.receive(pipelining, frames(ONE, many))
    calls.finish()
    effects = [each for each in calls.effects if isinstance(each, PauseReading | ResumeReading)]
    assert effects == [PauseReading(pipelining), ResumeReading(pipelining)]
    assert len(calls.got[pipelining]) == many


def test_an_event_costs_the_same_however_many_clients_are_paused() -> None:
    costs = []
    for count in (10, 100):
        harness = Harness(topics={"t": 1})
        for _ in range(count):
            pipelining = harness.client()
            pipelining.send(fetch_of(pipelining, max_wait_ms=500, min_bytes=1), 12)
            pipelining.send_bytes(frames(ONE, 4000))
            assert harness.server().connections[pipelining.number].paused
        other, data = harness.client(), frames(ONE, 1)
        other.send_bytes(data)
        costs.append(steps(lambda: harness.cluster.handle(Received(other.number, data), 0.0)))  # noqa: B023
    assert costs[0] == costs[1]


MANY = 5 * SLICE_ELEMENTS
LARGE: list[tuple[Message, int]] = [
    (MetadataRequest(topics=[MetadataRequestTopic(name=f"u{at}") for at in range(MANY)]), 9),
    (MetadataRequest(topics=None), 9),
    (
        DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=2, resource_name=f"t{at}")
                for at in range(MANY)
            ]
        ),
        4,
    ),
    (
        OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=-1,
            topics=[
                OffsetCommitRequestTopic(
                    name=f"t{at}",
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=0, committed_offset=1, committed_metadata=""
                        )
                    ],
                )
                for at in range(MANY)
            ],
        ),
        8,
    ),
]


def crowded() -> tuple[Harness, int, int, Calls]:
    """A cluster of many topics, two connections and no request in process."""
    harness = Harness(settings={"auto.create.topics.enable": "false"})
    coordinator(harness, "g").disconnect()
    topics = [
        CreatableTopic(name=f"t{at}", num_partitions=1, replication_factor=1) for at in range(MANY)
    ]
    harness.administer(CreateTopicsRequest(topics=topics), CreateTopicsResponse)
    return harness, harness.client().number, harness.client().number, Calls(harness)


@pytest.mark.parametrize(("large", "version"), LARGE)
def test_others_are_served_during_a_large_request(large: Message, version: int) -> None:
    harness, pipelining, other, calls = crowded()
    calls.receive(pipelining, frames(large, 1, version) + frames(ONE, 1))
    for number in range(1, 5):
        calls.receive(other, frames(ONE, 1))
        assert calls.order == [other] * number, "a part of the large one at a time"
    calls.finish()
    assert calls.order == [other] * 4 + [pipelining] * 2
    assert calls.got[pipelining] == [0, 0]
    assert not harness.broker().channel.pending


@pytest.mark.parametrize(("large", "version"), LARGE)
def test_a_large_request_is_dropped_when_its_client_disconnects(
    large: Message, version: int
) -> None:
    harness, pipelining, other, calls = crowded()
    calls.receive(pipelining, frames(large, 1, version))
    calls.advance()
    harness.handle(Disconnected(pipelining))
    assert not harness.broker().channel.pending
    handler = harness.front()._served[0]._request_handler
    assert handler is not None
    assert not handler._work_of
    calls.receive(other, frames(ONE, 1))
    assert calls.order == [other]

"""Whose requests are taken next: no client keeps the others waiting, whatever it sends at once."""

from __future__ import annotations

from itertools import pairwise

import pytest

import kafkawire
from kafkawire import Message
from kafkawire.broker import (
    AwaitDrain,
    Disconnected,
    Drained,
    Effect,
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

from .fetches import fetch_of
from .scene import Scene
from .test_log import batch, produce
from .work import steps

ONE = MetadataRequest(topics=[])


def frames(request: Message, count: int, version: int = 9) -> bytes:
    return b"".join(
        kafkawire.encode_frame(request, version, number, client_id="c") for number in range(count)
    )


class Calls:
    """The machine, call by call: what each connection got, in the order it went out."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.order: list[int] = []
        self.got: dict[int, list[int]] = {}
        self.effects: list[Effect] = []

    def receive(self, connection: int, data: bytes) -> None:
        self._take(self.scene.cluster.handle(Received(connection, data), self.scene.now))

    def advance(self) -> None:
        self._take(self.scene.cluster.advance(self.scene.now))

    @property
    def due(self) -> bool:
        due = self.scene.cluster.next_deadline()
        return due is not None and due <= self.scene.now

    def finish(self) -> None:
        """Let all requests be taken that are there."""
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
                self._take(self.scene.cluster.handle(Drained(effect.connection), self.scene.now))


def test_one_call_does_the_work_of_one_turn() -> None:
    scene = Scene()
    hog, turns = scene.client().number, Calls(scene)
    turns.receive(hog, frames(ONE, 10 * SLICE_REQUESTS))
    assert turns.got[hog] == [*range(SLICE_REQUESTS)]
    assert turns.due
    for done in range(2, 11):
        turns.advance()
        assert len(turns.order) == done * SLICE_REQUESTS
    assert turns.got[hog] == [*range(10 * SLICE_REQUESTS)]
    turns.finish()
    assert not turns.due


def test_requests_of_others_come_between_those_of_a_pipelining_client() -> None:
    scene = Scene()
    hog, other, turns = scene.client().number, scene.client().number, Calls(scene)
    turns.receive(hog, frames(ONE, 20 * SLICE_REQUESTS))
    for _ in range(10):
        turns.receive(other, frames(ONE, 1))
        turns.advance()
    turns.finish()
    places = [at for at, number in enumerate(turns.order) if number == other]
    between = [later - earlier - 1 for earlier, later in pairwise(places)]
    assert len(places) == 10
    assert places[0] <= SLICE_REQUESTS
    assert max(between) <= 2 * SLICE_REQUESTS
    assert turns.got[hog] == [*range(20 * SLICE_REQUESTS)]


def test_a_largeis_taken_at_once_however_many_clients_wait_for_their_turn() -> None:
    for hogs in (10, 100):
        scene = Scene()
        turns = Calls(scene)
        other, *waiting = [scene.client().number for _ in range(1 + hogs)]
        for hog in waiting:
            turns.receive(hog, frames(ONE, 3 * SLICE_REQUESTS))
        before = len(turns.order)
        turns.receive(other, frames(ONE, 1))
        assert turns.order[before] == other
        assert len(turns.order) - before <= SLICE_REQUESTS
        turns.finish()
        assert {len(found) for found in turns.got.values()} == {1, 3 * SLICE_REQUESTS}


def test_large_responses_end_a_turn() -> None:
    scene = Scene(topics={"t": 1})
    produce(scene.client(), batch(b"x" * SLICE_BYTES))
    hog, other = scene.client(), scene.client()
    turns = Calls(scene)
    whole = fetch_of(hog, max_bytes=1, partition_max_bytes=1)
    turns.receive(hog.number, frames(whole, 4, 12))
    turns.receive(other.number, frames(ONE, 1))
    assert turns.order == [hog.number, other.number, hog.number]


def test_waits_that_end_at_the_same_time_are_answered_in_turns() -> None:
    scene = Scene(topics={"t": 1})
    turns, other = Calls(scene), scene.client()
    many = 3 * SLICE_DEADLINES
    for _ in range(many):
        client = scene.client()
        turns.receive(client.number, frames(fetch_of(client, max_wait_ms=500, min_bytes=1), 1, 12))
    scene.now = 0.5
    turns.advance()
    assert len(turns.order) == SLICE_DEADLINES
    turns.receive(other.number, frames(ONE, 1))
    assert turns.order[SLICE_DEADLINES] == other.number
    turns.finish()
    assert len(turns.order) == many + 1


def test_who_waits_for_its_turn_is_not_read_until_it_had_it() -> None:
    scene = Scene()
    hog, turns = scene.client().number, Calls(scene)
    one = frames(ONE, 1)
    many = 2 * BACKLOG // len(one)
    turns.receive(hog, frames(ONE, many))
    turns.finish()
    ways = [each for each in turns.effects if isinstance(each, PauseReading | ResumeReading)]
    assert ways == [PauseReading(hog), ResumeReading(hog)]
    assert len(turns.got[hog]) == many


def test_an_event_costs_the_same_however_many_clients_are_paused() -> None:
    costs = []
    for hogs in (10, 100):
        scene = Scene(topics={"t": 1})
        for _ in range(hogs):
            hog = scene.client()
            hog.send(fetch_of(hog, max_wait_ms=500, min_bytes=1), 12)
            hog.send_bytes(frames(ONE, 4000))
            assert scene.cluster.connections[hog.number].paused
        other, data = scene.client(), frames(ONE, 1)
        other.send_bytes(data)
        costs.append(steps(lambda: scene.cluster.handle(Received(other.number, data), 0.0)))  # noqa: B023
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
        CreateTopicsRequest(
            topics=[
                CreatableTopic(name=f"n{at}", num_partitions=1, replication_factor=1)
                for at in range(MANY)
            ],
            validate_only=True,
        ),
        7,
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


def crowded() -> tuple[Scene, int, int, Calls]:
    """A cluster of many topics, two connections and nothing in work."""
    scene = Scene(settings={"auto.create.topics.enable": "false"})
    scene.cluster.creation.ensure_offsets_topic(0.0)
    for at in range(MANY):
        scene.cluster.topics.create(f"t{at}", [[1]], {})
    return scene, scene.client().number, scene.client().number, Calls(scene)


@pytest.mark.parametrize(("large", "version"), LARGE)
def test_others_have_their_turn_amid_a_large_request(large: Message, version: int) -> None:
    scene, hog, other, turns = crowded()
    turns.receive(hog, frames(large, 1, version) + frames(ONE, 1))
    for number in range(1, 5):
        turns.receive(other, frames(ONE, 1))
        assert turns.order == [other] * number, "a part of the large one at a time"
    turns.finish()
    assert turns.order == [other] * 4 + [hog] * 2
    assert turns.got[hog] == [0, 0]
    assert not scene.cluster.serving.pending


@pytest.mark.parametrize(("large", "version"), LARGE)
def test_nothing_is_left_of_a_large_largewhose_client_leaves(large: Message, version: int) -> None:
    scene, hog, other, turns = crowded()
    turns.receive(hog, frames(large, 1, version))
    turns.advance()
    scene.handle(Disconnected(hog))
    assert not scene.cluster.serving.pending
    assert not scene.cluster.serving._work_of
    turns.receive(other, frames(ONE, 1))
    assert turns.order == [other]

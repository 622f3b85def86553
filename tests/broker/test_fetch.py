"""Fetch: waiting, limits, sessions, epochs."""

from __future__ import annotations

import pytest

from kafkawire import ErrorCode
from kafkawire.broker.replication.sessions import LAST_EPOCH, Session
from kafkawire.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from kafkawire.messages.fetch_response import FetchResponse
from kafkawire.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafkawire.messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse

from .fetches import LARGE, fetch_of, fetched, only
from .scene import Client, Scene, metadata
from .test_log import batch, offset_at, produce

E = ErrorCode
LATEST = 12


@pytest.fixture
def scene() -> Scene:
    return Scene(topics={"t": 1, "u": 2})


# -- waiting


def test_a_fetch_waits_for_records(scene: Scene) -> None:
    reader, writer = scene.client(), scene.client()
    reader.send(fetch_of(reader, max_wait_ms=500, min_bytes=1), LATEST)
    scene.advance(0.4)
    assert reader.is_waiting()
    produce(writer, batch(b"a"))
    assert only(reader.receive(FetchResponse)).records == fetched(writer) != b""


def test_a_fetch_waits_no_longer_than_it_says(scene: Scene) -> None:
    reader = scene.client()
    reader.send(fetch_of(reader, max_wait_ms=500, min_bytes=1), LATEST)
    scene.advance(0.499)
    assert reader.is_waiting()
    scene.advance(0.002)
    assert only(reader.receive(FetchResponse)).records == b""


def test_min_bytes_are_counted(scene: Scene) -> None:
    reader, writer = scene.client(), scene.client()
    one = batch(b"a" * 100)
    reader.send(fetch_of(reader, max_wait_ms=5000, min_bytes=3 * len(one)), LATEST)
    for _ in range(2):
        produce(writer, one)
        assert reader.is_waiting()
    produce(writer, one)
    assert len(only(reader.receive(FetchResponse)).records or b"") == 3 * len(one)


def test_errors_are_not_waited_with(scene: Scene) -> None:
    reader = scene.client()
    for request, error in (
        (fetch_of(reader, offset=1, max_wait_ms=9999, min_bytes=1), E.OFFSET_OUT_OF_RANGE),
        (fetch_of(reader, "absent", max_wait_ms=9999, min_bytes=1), E.UNKNOWN_TOPIC_OR_PARTITION),
        (
            fetch_of(reader, partition=9, max_wait_ms=9999, min_bytes=1),
            E.UNKNOWN_TOPIC_OR_PARTITION,
        ),
    ):
        assert only(reader.exchange(request, LATEST, FetchResponse)).error_code == error
    request = fetch_of(reader, "absent", 13, max_wait_ms=9999, min_bytes=1)
    assert only(reader.exchange(request, 13, FetchResponse)).error_code == E.UNKNOWN_TOPIC_ID


def test_a_client_that_goes_away_is_not_waited_for(scene: Scene) -> None:
    reader = scene.client()
    reader.send(fetch_of(reader, max_wait_ms=5000, min_bytes=1), LATEST)
    broker = scene.cluster.brokers[1]
    assert len(broker.replicas.fetch_purgatory) == 1
    reader.disconnect()
    assert len(broker.replicas.fetch_purgatory) == 0
    assert not scene.cluster.channel.pending
    scene.advance(6)


def test_requests_behind_a_delayed_one_wait_for_it(scene: Scene) -> None:
    reader, writer = scene.client(), scene.client()
    reader.send(fetch_of(reader, max_wait_ms=5000, min_bytes=1), LATEST)
    reader.send(fetch_of(reader, max_wait_ms=0), LATEST)
    assert reader.frame() is None
    produce(writer, batch(b"a"))
    assert (
        only(reader.receive(FetchResponse)).records == only(reader.receive(FetchResponse)).records
    )


# -- limits


def test_limits_are_soft_from_version_3_on(scene: Scene) -> None:
    client = scene.client()
    sent = batch(b"a" * 1000)
    for _ in range(3):
        produce(client, sent)

    def sizes(version: int, **limits: int) -> int:
        request = fetch_of(client, version=version, **limits)  # type: ignore[arg-type]
        return len(only(client.exchange(request, version, FetchResponse)).records or b"")

    assert sizes(LATEST, partition_max_bytes=1) == len(sent), "the first batch comes whole"
    assert sizes(LATEST, partition_max_bytes=2 * len(sent) + 1) == 2 * len(sent)
    assert sizes(LATEST, max_bytes=1) == len(sent)
    assert sizes(2, partition_max_bytes=100) == 100, "cut, as it was"


def test_max_bytes_covers_all_partitions(scene: Scene) -> None:
    client = scene.client()
    sent = batch(b"a" * 1000)
    produce(client, sent)
    produce(client, sent, topic="u")
    request = fetch_of(client, max_bytes=len(sent) + 10)
    other = FetchTopic(
        topic="u", partitions=[FetchPartition(partition=0, partition_max_bytes=LARGE)]
    )
    request.topics.append(other)
    response = client.exchange(request, LATEST, FetchResponse)
    assert [len(t.partitions[0].records or b"") for t in response.responses] == [len(sent), 0]


# -- sessions (KIP-227)


def incremental(
    session_id: int, epoch: int, *topics: FetchTopic, forget: tuple[str, int] | None = None
) -> FetchRequest:
    forgotten = [] if forget is None else [ForgottenTopic(topic=forget[0], partitions=[forget[1]])]
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        max_bytes=LARGE,
        topics=list(topics),
        forgotten_topics_data=forgotten,
    )


def fetch_topic(topic: str, partition: int = 0, offset: int = 0) -> FetchTopic:
    requested = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=LARGE)
    return FetchTopic(topic=topic, partitions=[requested])


def partitions_of(response: FetchResponse) -> list[tuple[str, int]]:
    return [(t.topic, p.partition_index) for t in response.responses for p in t.partitions]


def opened(client: Client) -> int:
    request = incremental(0, 0, fetch_topic("t"), fetch_topic("u"), fetch_topic("u", 1))
    response = client.exchange(request, LATEST, FetchResponse)
    assert partitions_of(response) == [("t", 0), ("u", 0), ("u", 1)]
    assert response.session_id != 0
    return response.session_id


def test_a_session_returns_only_changed_partitions(scene: Scene) -> None:
    client, writer = scene.client(), scene.client()
    session = opened(client)
    assert partitions_of(client.exchange(incremental(session, 1), LATEST, FetchResponse)) == []
    produce(writer, batch(b"a"), topic="u")
    assert partitions_of(client.exchange(incremental(session, 2), LATEST, FetchResponse)) == [
        ("u", 0)
    ]
    # it is there still: the client has not moved its offset
    assert partitions_of(client.exchange(incremental(session, 3), LATEST, FetchResponse)) == [
        ("u", 0)
    ]
    moved = incremental(session, 4, fetch_topic("u", 0, 1))
    assert partitions_of(client.exchange(moved, LATEST, FetchResponse)) == []


def test_a_session_forgets_topics(scene: Scene) -> None:
    client, writer = scene.client(), scene.client()
    session = opened(client)
    client.exchange(incremental(session, 1, forget=("u", 0)), LATEST, FetchResponse)
    produce(writer, batch(b"a"), topic="u")
    assert partitions_of(client.exchange(incremental(session, 2), LATEST, FetchResponse)) == []


def test_a_session_reads_partitions_round_robin(scene: Scene) -> None:
    client, writer = scene.client(), scene.client()
    session = opened(client)
    for topic in ("t", "u"):
        produce(writer, batch(b"a" * 100), topic=topic)
    first = []
    for epoch in (1, 2, 3, 4):
        request = incremental(session, epoch)
        request.max_bytes = 1
        response = client.exchange(request, LATEST, FetchResponse)
        with_records = [
            (t.topic, p.partition_index)
            for t in response.responses
            for p in t.partitions
            if p.records
        ]
        first += with_records
    assert first == [("t", 0), ("u", 0)] * 2


def test_a_session_tells_that_there_is_more_also_where_it_has_no_room_for_it(scene: Scene) -> None:
    client, writer = scene.client(), scene.client()
    session = opened(client)
    for topic in ("t", "u"):
        produce(writer, batch(b"a"), topic=topic)
    request = incremental(session, 1)
    request.max_bytes = 1
    response = client.exchange(request, LATEST, FetchResponse)
    found = [(bool(p.records), p.high_watermark) for t in response.responses for p in t.partitions]
    assert (partitions_of(response), found) == ([("t", 0), ("u", 0)], [(True, 1), (False, 1)])


def test_a_session_returns_a_partition_when_its_error_is_over(scene: Scene) -> None:
    client = scene.client()
    session = opened(client)
    for epoch in (1, 2):
        response = client.exchange(
            incremental(session, epoch, fetch_topic("t", 0, 9)), LATEST, FetchResponse
        )
        assert partitions_of(response) == [("t", 0)]
        assert only(response).error_code == E.OFFSET_OUT_OF_RANGE
    response = client.exchange(incremental(session, 3, fetch_topic("t")), LATEST, FetchResponse)
    assert partitions_of(response) == [("t", 0)]
    assert only(response).error_code == E.NONE
    assert partitions_of(client.exchange(incremental(session, 4), LATEST, FetchResponse)) == []


def test_the_epochs_of_a_session_begin_again_behind_the_last() -> None:
    session = Session(1, False, 0.0, epoch=LAST_EPOCH - 1)
    session.advance()
    assert session.epoch == LAST_EPOCH == 0x7FFFFFFF
    session.advance()
    assert session.epoch == 1, "0 would begin a session"


@pytest.mark.parametrize(
    ("session", "epoch", "error"),
    [(1, 5, E.FETCH_SESSION_ID_NOT_FOUND), (0, 2, E.INVALID_FETCH_SESSION_EPOCH)],
)
def test_an_unexpected_session_epoch_is_an_error(
    scene: Scene, session: int, epoch: int, error: ErrorCode
) -> None:
    client = scene.client()
    known = opened(client)
    response = client.exchange(incremental(known + session, epoch), LATEST, FetchResponse)
    assert (response.error_code, response.session_id, response.responses) == (error, 0, [])


def test_a_session_does_not_change_between_names_and_ids(scene: Scene) -> None:
    client = scene.client()
    response = client.exchange(incremental(opened(client), 1), 13, FetchResponse)
    assert response.error_code == E.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_session_ends_when_it_is_closed(scene: Scene) -> None:
    client = scene.client()
    session = opened(client)
    request = incremental(session, -1, fetch_topic("t"))
    assert client.exchange(request, LATEST, FetchResponse).session_id == 0
    response = client.exchange(incremental(session, 1), LATEST, FetchResponse)
    assert response.error_code == E.FETCH_SESSION_ID_NOT_FOUND


def test_there_are_only_so_many_sessions() -> None:
    settings = {"max.incremental.fetch.session.cache.slots": "2"}
    scene = Scene(topics={"t": 1, "u": 2}, settings=settings)
    client = scene.client()
    first, own = opened(client), opened(client)
    request = incremental(0, 0, fetch_topic("t"))
    assert client.exchange(request, LATEST, FetchResponse).session_id == 0, "no slot is free"
    anew = incremental(own, 0, fetch_topic("t"))
    assert client.exchange(anew, LATEST, FetchResponse).session_id != 0, "in place of its own"
    scene.advance(121)
    assert client.exchange(request, LATEST, FetchResponse).session_id != 0, "the idle one made room"
    response = client.exchange(incremental(first, 1), LATEST, FetchResponse)
    assert response.error_code == E.FETCH_SESSION_ID_NOT_FOUND


# -- leaders and their epochs (KIP-320)


def led(brokers: int = 3) -> Scene:
    scene = Scene(brokers)
    scene.create_topic("t", 1, brokers)
    return scene


def end_of(client: Client, epoch: int, current: int = -1) -> tuple[int, int, int]:
    requested = OffsetForLeaderPartition(
        partition=0, current_leader_epoch=current, leader_epoch=epoch
    )
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic="t", partitions=[requested])]
    )
    response = client.exchange(request, 4, OffsetForLeaderEpochResponse).topics[0].partitions[0]
    return response.error_code, response.leader_epoch, response.end_offset


def test_leaders_are_spread() -> None:
    scene = Scene(3, topics={"t": 6})
    response = metadata(scene.client(), "t").topics[0]
    assert sorted(p.leader_id for p in response.partitions) == [1, 1, 2, 2, 3, 3]


def test_another_leader_has_another_epoch_and_the_old_one_says_so() -> None:
    scene = led()
    first = scene.leader_of("t")
    client = scene.client(first)
    produce(client, batch(b"a"))
    second = first % 3 + 1
    scene.move_leader("t", 0, second)
    response = produce(client, batch(b"b"), 10)
    assert response.error_code == E.NOT_LEADER_OR_FOLLOWER
    assert (response.current_leader.leader_id, response.current_leader.leader_epoch) == (second, 1)
    request = fetch_of(client, version=16)
    data = client.exchange(request, 16, FetchResponse)
    assert only(data).error_code == E.NOT_LEADER_OR_FOLLOWER
    assert only(data).current_leader.leader_id == second
    assert [each.node_id for each in data.node_endpoints] == [second]
    moved = scene.client(second)
    assert produce(moved, batch(b"b")).base_offset == 1
    for epoch, error in ((0, E.FENCED_LEADER_EPOCH), (1, E.NONE), (2, E.UNKNOWN_LEADER_EPOCH)):
        request = fetch_of(moved, current_leader_epoch=epoch)
        assert only(moved.exchange(request, LATEST, FetchResponse)).error_code == error
    assert [end_of(moved, epoch)[1:] for epoch in (0, 1, 2)] == [(0, 1), (1, 2), (-1, -1)]


def test_a_fetch_delayed_at_an_old_leader_completes_with_an_error() -> None:
    scene = led()
    first = scene.leader_of("t")
    reader = scene.client(first)
    reader.send(fetch_of(reader, max_wait_ms=60_000, min_bytes=1), LATEST)
    scene.move_leader("t", 0, first % 3 + 1)
    assert only(reader.receive(FetchResponse)).error_code == E.NOT_LEADER_OR_FOLLOWER


def test_what_an_unclean_leader_lost_is_seen_by_its_epoch() -> None:
    scene = led()
    first = scene.leader_of("t")
    client = scene.client(first)
    for _ in range(4):
        produce(client, batch(b"a"))
    second = first % 3 + 1
    scene.move_leader("t", 0, second, truncate_to=2)
    moved = scene.client(second)
    assert end_of(moved, 0) == (E.NONE, 0, 2)
    data = only(
        moved.exchange(fetch_of(moved, offset=4, last_fetched_epoch=0), LATEST, FetchResponse)
    )
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 2)
    assert data.records == b""
    assert produce(moved, batch(b"b")).base_offset == 2


def test_a_broker_that_stops_gives_its_partitions_away_and_they_outlive_it() -> None:
    scene = led(2)
    first = scene.leader_of("t")
    other = 3 - first
    client = scene.client(first)
    produce(client, batch(b"a"))
    scene.stop_broker(first)
    assert client.closed == "the broker stopped"
    there = scene.client(other)
    response = metadata(there, "t")
    assert [each.node_id for each in response.brokers] == [other]
    partition = response.topics[0].partitions[0]
    assert (partition.leader_id, partition.isr_nodes) == (other, [other])
    assert partition.offline_replicas == [first]
    assert offset_at(there, -1).offset == 1
    scene.stop_broker(other)
    scene.start_broker(first)
    back = scene.client(first)
    assert metadata(back, "t").topics[0].partitions[0].leader_id == first
    assert scene.client(other).closed == "the broker is down"


def test_a_partition_on_one_broker_is_not_led_while_that_is_down() -> None:
    scene = Scene(2)
    scene.create_topic("t", 1, 1)
    first = scene.leader_of("t")
    scene.stop_broker(first)
    other = scene.client(3 - first)
    partition = metadata(other, "t").topics[0].partitions[0]
    assert (partition.error_code, partition.leader_id) == (E.LEADER_NOT_AVAILABLE, -1)
    assert produce(other, batch(b"a")).error_code == E.NOT_LEADER_OR_FOLLOWER
    scene.start_broker(first)
    assert scene.leader_of("t") == first
    assert produce(scene.client(first), batch(b"a")).error_code == E.NONE
    assert fetched(scene.client(first)) != b""

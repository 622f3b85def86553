"""Incremental fetch sessions (KIP-227)."""

from __future__ import annotations

import pytest

from kafkawire import ErrorCode
from kafkawire.broker.fetch_sessions import LAST_EPOCH, Session
from kafkawire.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from kafkawire.messages.fetch_response import FetchResponse
from tests.broker.fetches import LARGE, only
from tests.broker.harness import Client, Harness
from tests.broker.log.test_log import batch, produce

E = ErrorCode
LATEST = 12


@pytest.fixture
def harness() -> Harness:
    return Harness(topics={"t": 1, "u": 2})


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


def test_a_session_returns_only_changed_partitions(harness: Harness) -> None:
    client, writer = harness.client(), harness.client()
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


def test_a_session_forgets_topics(harness: Harness) -> None:
    client, writer = harness.client(), harness.client()
    session = opened(client)
    client.exchange(incremental(session, 1, forget=("u", 0)), LATEST, FetchResponse)
    produce(writer, batch(b"a"), topic="u")
    assert partitions_of(client.exchange(incremental(session, 2), LATEST, FetchResponse)) == []


def test_a_session_reads_partitions_round_robin(harness: Harness) -> None:
    client, writer = harness.client(), harness.client()
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


def test_a_session_reports_more_data_even_without_room_for_it(harness: Harness) -> None:
    client, writer = harness.client(), harness.client()
    session = opened(client)
    for topic in ("t", "u"):
        produce(writer, batch(b"a"), topic=topic)
    request = incremental(session, 1)
    request.max_bytes = 1
    response = client.exchange(request, LATEST, FetchResponse)
    found = [(bool(p.records), p.high_watermark) for t in response.responses for p in t.partitions]
    assert (partitions_of(response), found) == ([("t", 0), ("u", 0)], [(True, 1), (False, 1)])


def test_a_session_returns_a_partition_when_its_error_is_over(harness: Harness) -> None:
    client = harness.client()
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
    harness: Harness, session: int, epoch: int, error: ErrorCode
) -> None:
    client = harness.client()
    known = opened(client)
    response = client.exchange(incremental(known + session, epoch), LATEST, FetchResponse)
    assert (response.error_code, response.session_id, response.responses) == (error, 0, [])


def test_a_session_does_not_change_between_names_and_ids(harness: Harness) -> None:
    client = harness.client()
    response = client.exchange(incremental(opened(client), 1), 13, FetchResponse)
    assert response.error_code == E.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_session_ends_when_it_is_closed(harness: Harness) -> None:
    client = harness.client()
    session = opened(client)
    request = incremental(session, -1, fetch_topic("t"))
    assert client.exchange(request, LATEST, FetchResponse).session_id == 0
    response = client.exchange(incremental(session, 1), LATEST, FetchResponse)
    assert response.error_code == E.FETCH_SESSION_ID_NOT_FOUND


def test_there_are_only_so_many_sessions() -> None:
    settings = {"max.incremental.fetch.session.cache.slots": "2"}
    harness = Harness(topics={"t": 1, "u": 2}, settings=settings)
    client = harness.client()
    first, own = opened(client), opened(client)
    request = incremental(0, 0, fetch_topic("t"))
    assert client.exchange(request, LATEST, FetchResponse).session_id == 0, "no slot is free"
    anew = incremental(own, 0, fetch_topic("t"))
    assert client.exchange(anew, LATEST, FetchResponse).session_id != 0, "in place of its own"
    harness.advance(121)
    assert client.exchange(request, LATEST, FetchResponse).session_id != 0, "the idle one made room"
    response = client.exchange(incremental(first, 1), LATEST, FetchResponse)
    assert response.error_code == E.FETCH_SESSION_ID_NOT_FOUND

"""Fetch: waiting and limits."""

from __future__ import annotations

import pytest

from kafkawire import ErrorCode
from kafkawire.broker.effects import Reply
from kafkawire.messages.fetch_request import (
    FetchPartition,
    FetchTopic,
)
from kafkawire.messages.fetch_response import FetchResponse
from tests.broker.fetches import LARGE, fetch_of, fetched, only
from tests.broker.harness import Harness
from tests.broker.log.test_log import batch, produce

E = ErrorCode
LATEST = 12


@pytest.fixture
def harness() -> Harness:
    return Harness(topics={"t": 1, "u": 2})


# -- waiting


def test_a_fetch_waits_for_records(harness: Harness) -> None:
    reader, writer = harness.client(), harness.client()
    reader.send(fetch_of(reader, max_wait_ms=500, min_bytes=1), LATEST)
    harness.advance(0.4)
    assert reader.is_waiting()
    produce(writer, batch(b"a"))
    assert only(reader.receive(FetchResponse)).records == fetched(writer) != b""


def test_a_fetch_waits_no_longer_than_it_says(harness: Harness) -> None:
    reader = harness.client()
    reader.send(fetch_of(reader, max_wait_ms=500, min_bytes=1), LATEST)
    harness.advance(0.499)
    assert reader.is_waiting()
    harness.advance(0.002)
    assert only(reader.receive(FetchResponse)).records == b""


def test_min_bytes_are_counted(harness: Harness) -> None:
    reader, writer = harness.client(), harness.client()
    one = batch(b"a" * 100)
    reader.send(fetch_of(reader, max_wait_ms=5000, min_bytes=3 * len(one)), LATEST)
    for _ in range(2):
        produce(writer, one)
        assert reader.is_waiting()
    produce(writer, one)
    assert len(only(reader.receive(FetchResponse)).records or b"") == 3 * len(one)


def test_errors_are_not_waited_with(harness: Harness) -> None:
    reader = harness.client()
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


def test_a_client_that_goes_away_is_not_waited_for(harness: Harness) -> None:
    reader = harness.client()
    broker = harness.front().machines.node.parts.broker
    assert broker is not None
    purgatory = broker.replicas.fetches.purgatory
    reader.send(fetch_of(reader, max_wait_ms=5000, min_bytes=1), LATEST)
    assert len(purgatory) == 1
    reader.disconnect()
    assert len(purgatory) == 0
    assert not harness.broker().channel.pending
    harness.advance(6)


def test_requests_behind_a_delayed_one_wait_for_it(harness: Harness) -> None:
    reader, writer = harness.client(), harness.client()
    reader.send(fetch_of(reader, max_wait_ms=5000, min_bytes=1), LATEST)
    reader.send(fetch_of(reader, max_wait_ms=0), LATEST)
    assert reader.frame() is None
    produce(writer, batch(b"a"))
    assert (
        only(reader.receive(FetchResponse)).records == only(reader.receive(FetchResponse)).records
    )


# -- limits


def test_limits_are_soft_from_version_3_on(harness: Harness) -> None:
    client = harness.client()
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


def test_max_bytes_covers_all_partitions(harness: Harness) -> None:
    client = harness.client()
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


def test_large_records_are_not_joined_with_their_frame(harness: Harness) -> None:
    reader, writer = harness.client(), harness.client()
    produce(writer, batch(b"a" * 100_000))
    reader.send(fetch_of(reader), LATEST)
    (reply,) = [each for each in harness.effects[-2:] if isinstance(each, Reply)]
    records = only(reader.receive(FetchResponse)).records
    assert records is not None
    assert records in reply.buffers
    assert [len(each) < 1000 for each in reply.buffers] == [True, False, True]

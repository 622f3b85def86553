"""The fetcher: which broker gets a fetch, when, and how every error is handled."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest

from kafkawire.client.cluster import Broker, Partition, Topic
from kafkawire.client.consumer import (
    Consumer,
    ConsumerConfig,
    Reset,
    ResetPolicy,
    TopicPartition,
    events,
)
from kafkawire.client.consumer.fetch.errors import FetchError, fetch_error
from kafkawire.client.consumer.offsets.partition_state import FetchState, Position
from kafkawire.client.requests import (
    MetadataChanged,
    NoResponse,
    Reason,
    RequestMetadataUpdate,
    ResponseReceived,
    SendRequest,
    UpdateLeader,
)
from kafkawire.messages.api_key import ApiKey
from kafkawire.messages.fetch_request import FetchRequest
from kafkawire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from kafkawire.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafkawire.protocol.error_code import ErrorCode
from kafkawire.records import BatchBuilder

from .test_subscription import View

E = ErrorCode
ID = b"i" * 16
A, B, C = (TopicPartition("orders", n) for n in range(3))
LEADERS = {A: 1, B: 1, C: 2}


def view() -> View:
    """Return a cluster: broker 1 leads two partitions, broker 2 one, broker 3 follows."""
    partitions = {p.partition: Partition(*p, leader, 5) for p, leader in LEADERS.items()}
    brokers = {node: Broker(node, f"broker{node}", 9092) for node in (1, 2, 3)}
    return View({"orders": Topic("orders", ID, partitions=partitions)}, brokers)


def batch(offset: int, count: int) -> bytes:
    builder = BatchBuilder(base_offset=offset)
    for _ in range(count):
        builder.append(None, b"v")
    return builder.build()


class Reader:
    """A consumer of assigned partitions; the test responds as the brokers."""

    def __init__(self, *partitions: TopicPartition) -> None:
        self.view = view()
        self.now = 0.0
        self.requests: dict[int, SendRequest] = {}
        self.effects: list[object] = []
        self.consumer = Consumer(
            ConsumerConfig(client_rack="here"),
            self.view,
            rng=Random(0).random,
            clock_ms=lambda: 0,
        )
        self.send(events.Assign(partitions))
        for each in partitions:
            self.send(events.Seek(each, 0))
        self.effects.clear()

    def send(self, event: events.ConsumerEvent) -> None:
        self._collect(self.consumer.handle(event, self.now))

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self._collect(self.consumer.advance(self.now))

    def _collect(self, effects: Iterable[object]) -> None:
        for each in effects:
            if isinstance(each, SendRequest) and each.api is ApiKey.FETCH:
                assert isinstance(each.to, int)
                assert each.to not in self.requests, "two fetches in flight to one broker"
                self.requests[each.to] = each
            else:
                self.effects.append(each)

    def requested(self, node: int) -> dict[int, int]:
        """Return partition -> fetch offset of the fetch in flight."""
        message = self.requests[node].body.build(6)  # versions without sessions list all partitions
        assert isinstance(message, FetchRequest)
        return {p.partition: p.fetch_offset for topic in message.topics for p in topic.partitions}

    def respond(self, node: int, *data: PartitionData, endpoints: bool = False) -> None:
        topic = FetchableTopicResponse(topic_id=ID, partitions=list(data))
        known = [NodeEndpoint(node_id=9, host="broker9", port=9)] if endpoints else []
        response = FetchResponse(session_id=7, responses=[topic], node_endpoints=known)
        self.send(ResponseReceived(self.requests.pop(node), 17, response, node))

    def poll(self, max_records: int | None = None) -> list[tuple[int, int]]:
        """Poll and stop polling; returns partitions and offsets of the records."""
        self.effects.clear()
        self.send(events.Poll(max_records))
        self.send(events.StopPolling())
        found = [each for each in self.effects if isinstance(each, events.Deliver)]
        return [(r.partition, r.offset) for each in found for r in each.records]


def test_a_fetch_has_all_partitions_of_the_broker() -> None:
    reader = Reader(A, B, C)
    assert reader.requested(1) == {0: 0}  # what was known first is requested first
    assert reader.requested(2) == {2: 0}
    reader.respond(1)
    assert reader.requested(1) == {0: 0, 1: 0}


def test_paused_and_buffered_partitions_are_not_fetched() -> None:
    reader = Reader(A, B, C)
    reader.respond(1, PartitionData(partition_index=0, records=batch(0, 3)))
    assert reader.requested(1) == {1: 0}  # something of A is waiting
    reader.send(events.Pause((B,)))
    reader.respond(1)
    assert 1 not in reader.requests
    assert reader.poll() == [(0, 0), (0, 1), (0, 2)]
    assert reader.requested(1) == {0: 3}  # sent ahead, before the next poll
    reader.send(events.Resume((B,)))
    reader.respond(1)
    assert reader.requested(1) == {0: 3, 1: 0}


def test_no_waiting_fetch_while_records_are_buffered() -> None:
    """Else what is here would be used up, and nothing fetched, until the broker's wait is over."""
    reader = Reader(A, B)
    reader.respond(1)
    full = PartitionData(partition_index=0, high_watermark=9, records=batch(0, 3))
    at_its_end = PartitionData(partition_index=1, high_watermark=0)
    reader.respond(1, full, at_its_end)
    assert not reader.requests  # of B there is nothing to fetch, and of A something here
    assert reader.poll() == [(0, 0), (0, 1), (0, 2)]
    assert reader.requested(1) == {0: 3, 1: 0}
    more = PartitionData(partition_index=0, high_watermark=9, records=batch(3, 3))
    reader.respond(1, more, PartitionData(partition_index=1, high_watermark=7))
    assert reader.requested(1) == {1: 0}  # of B there is


def test_records_for_an_outdated_position_are_dropped() -> None:
    reader = Reader(A)
    reader.send(events.Seek(A, 40))
    reader.respond(1, PartitionData(partition_index=0, records=batch(0, 3)))
    assert reader.poll() == []
    assert reader.requested(1) == {0: 40}
    reader.respond(1, PartitionData(partition_index=0, records=batch(40, 2)))
    reader.send(events.Seek(A, 10))  # also what waits already
    assert reader.poll() == []
    assert reader.requested(1) == {0: 10}
    reader.send(events.Seek(A, 5))  # and what lies behind where the user went back to
    reader.respond(1, PartitionData(partition_index=0, records=batch(10, 3)))
    assert reader.poll() == []
    assert reader.requested(1) == {0: 5}


@pytest.mark.parametrize("code", [each for each in ErrorCode if each != E.NONE] + [12_345])
def test_every_error_of_a_partition(code: int) -> None:
    reader = Reader(A)
    reader.respond(1, PartitionData(partition_index=0, error_code=code))
    effects = list(reader.effects)
    assert 1 not in reader.requests  # never at once again
    match fetch_error(code):
        case FetchError.REFRESH_METADATA:
            assert RequestMetadataUpdate(frozenset({"orders"})) in effects
        case FetchError.RETRY:
            assert not effects
        case FetchError.OUT_OF_RANGE:
            assert any(isinstance(e, SendRequest) and e.api is ApiKey.LIST_OFFSETS for e in effects)
            return
        case FetchError.FAIL:
            reader.pass_time(10.0)
            assert 1 not in reader.requests
            reader.poll()
            (raised,) = [each for each in reader.effects if isinstance(each, events.Raise)]
            assert getattr(raised.error, "code", None) == code
    reader.pass_time(10.0)
    assert reader.requested(1) == {0: 0}


def test_out_of_range_of_an_outdated_position_is_ignored() -> None:
    reader = Reader(A)
    reader.send(events.Seek(A, 40))  # while 0 is requested for
    reader.respond(1, PartitionData(partition_index=0, error_code=E.OFFSET_OUT_OF_RANGE))
    assert reader.consumer.positions[A].fetch_state is FetchState.FETCHING
    reader.pass_time(1.0)
    assert reader.requested(1) == {0: 40}


def test_the_current_leader_of_a_response_is_used() -> None:
    reader = Reader(A)
    leader = LeaderIdAndEpoch(leader_id=9, leader_epoch=6)
    data = PartitionData(
        partition_index=0, error_code=E.NOT_LEADER_OR_FOLLOWER, current_leader=leader
    )
    reader.respond(1, data, endpoints=True)
    assert UpdateLeader("orders", 0, 9, 6, (Broker(9, "broker9", 9),)) in reader.effects


def test_the_preferred_read_replica_is_used_until_it_lags() -> None:
    reader = Reader(A)
    reader.respond(1, PartitionData(partition_index=0, preferred_read_replica=3))
    assert reader.requested(3) == {0: 0}
    assert 1 not in reader.requests
    reader.respond(3, PartitionData(partition_index=0, error_code=E.OFFSET_OUT_OF_RANGE))
    assert reader.consumer.positions[A].fetch_state is FetchState.FETCHING  # the leader may have it
    reader.pass_time(1.0)
    assert reader.requested(1) == {0: 0}


def test_a_partition_that_is_gone_is_not_fetched_from_its_preferred_read_replica() -> None:
    reader = Reader(A)
    reader.respond(1, PartitionData(partition_index=0, preferred_read_replica=3))
    reader.view.topics.clear()
    reader.respond(3, PartitionData(partition_index=0))
    reader.pass_time(1.0)
    assert not reader.requests
    assert RequestMetadataUpdate(frozenset({"orders"})) in reader.effects


def test_a_fetch_without_response_is_retried() -> None:
    reader = Reader(A)
    reader.send(NoResponse(reader.requests.pop(1), Reason.DISCONNECTED, True))
    assert 1 not in reader.requests
    due = reader.consumer.next_deadline()
    assert due is not None
    reader.pass_time(due)
    assert reader.requested(1) == {0: 0}


def test_a_new_leader_is_asked_as_soon_as_it_is_known() -> None:
    reader = Reader(A)
    partitions = dict(reader.view.topics["orders"].partitions)
    partitions[0] = Partition("orders", 0, -1, 6)
    reader.view.topics["orders"] = Topic("orders", ID, partitions=partitions)
    reader.send(MetadataChanged(frozenset({"orders"})))
    reader.respond(1)
    assert not reader.requests
    assert RequestMetadataUpdate(frozenset({"orders"})) in reader.effects
    reader.effects.clear()
    reader.send(MetadataChanged(frozenset({"orders"})))
    assert not reader.requests
    assert not reader.effects, "new metadata without a leader is not requested again at once"
    partitions[0] = Partition("orders", 0, 2, 7)
    reader.send(MetadataChanged(frozenset({"orders"})))
    assert reader.requested(2) == {0: 0}


def test_a_lookup_is_sent_when_the_leader_is_known() -> None:
    reader = Reader(A, B)
    topics, known = reader.view.topics, reader.view.topics.pop("orders")
    reader.effects.clear()
    reader.send(events.SeekTo((A, B), ResetPolicy(Reset.EARLIEST)))
    assert [type(each) for each in reader.effects] == [RequestMetadataUpdate]
    reader.effects.clear()
    reader.send(MetadataChanged(frozenset()))
    assert not reader.effects, "its leader is unknown: metadata is requested after a backoff"
    topics["orders"] = Topic("orders", ID, partitions={0: Partition("orders", 0, 1, 5)})
    reader.send(MetadataChanged(frozenset({"orders"})))
    requested = [each for each in reader.effects if isinstance(each, SendRequest)]
    assert [(each.to, each.api) for each in requested] == [(1, ApiKey.LIST_OFFSETS)]
    assert reader.effects[1:] == [RequestMetadataUpdate(frozenset({"orders"}))], (
        "B has no leader yet"
    )
    reader.effects.clear()
    topics["orders"] = known
    reader.send(MetadataChanged(frozenset({"orders"})))
    assert [(each.to, each.api) for each in reader.effects if isinstance(each, SendRequest)] == [
        (1, ApiKey.LIST_OFFSETS)
    ]


@pytest.mark.parametrize("code", [E.FETCH_SESSION_ID_NOT_FOUND, E.INVALID_FETCH_SESSION_EPOCH])
def test_a_session_error_starts_a_full_fetch_at_once(code: ErrorCode) -> None:
    reader = Reader(A)
    reader.respond(1)
    reader.send(ResponseReceived(reader.requests.pop(1), 17, FetchResponse(error_code=code), 1))
    message = reader.requests[1].body.build(17)
    assert isinstance(message, FetchRequest)
    assert message.session_epoch == 0
    assert message.session_id == (0 if code == E.FETCH_SESSION_ID_NOT_FOUND else 7)
    assert len(message.topics) == 1


RETRIABLE = [E.NOT_LEADER_OR_FOLLOWER, E.UNKNOWN_TOPIC_OR_PARTITION, E.OFFSET_NOT_AVAILABLE, None]


@pytest.mark.parametrize("code", RETRIABLE)
def test_retriable_lookup_errors_are_retried_with_new_metadata(
    code: ErrorCode | None,
) -> None:
    """Of None the broker says nothing: its respond leaves the partition out."""
    reader = Reader(A)
    reader.effects.clear()
    reader.send(events.SeekTo((A,), ResetPolicy(Reset.EARLIEST)))
    [requested] = [each for each in reader.effects if isinstance(each, SendRequest)]
    reader.effects.clear()
    rows = [] if code is None else [ListOffsetsPartitionResponse(error_code=code)]
    topic = ListOffsetsTopicResponse(name="orders", partitions=rows)
    reader.send(ResponseReceived(requested, 9, ListOffsetsResponse(topics=[topic]), 1))
    assert RequestMetadataUpdate(frozenset({"orders"})) in reader.effects
    assert not any(isinstance(each, SendRequest) for each in reader.effects), "not at once"
    partitions = dict(reader.view.topics["orders"].partitions)
    partitions[0] = Partition("orders", 0, 2, 6)
    reader.view.topics["orders"] = Topic("orders", ID, partitions=partitions)
    reader.effects.clear()
    reader.send(MetadataChanged(frozenset({"orders"})))
    reader.pass_time(1.0)
    [again] = [each for each in reader.effects if isinstance(each, SendRequest)]
    assert (again.to, again.api) == (2, ApiKey.LIST_OFFSETS)
    found = ListOffsetsPartitionResponse(offset=30, leader_epoch=6)
    topic = ListOffsetsTopicResponse(name="orders", partitions=[found])
    reader.send(ResponseReceived(again, 9, ListOffsetsResponse(topics=[topic]), 2))
    reader.send(NoResponse(reader.requests.pop(1), Reason.DISCONNECTED, True))
    assert reader.requested(2) == {0: 30}


def test_a_lookup_without_response_is_retried() -> None:
    reader = Reader(A)
    reader.effects.clear()
    reader.send(events.SeekTo((A,), ResetPolicy(Reset.EARLIEST)))
    [requested] = [each for each in reader.effects if isinstance(each, SendRequest)]
    reader.effects.clear()
    reader.send(NoResponse(requested, Reason.DISCONNECTED, True))
    assert reader.effects == [RequestMetadataUpdate(frozenset({"orders"}))]
    reader.send(MetadataChanged(frozenset({"orders"})))
    assert not any(isinstance(each, SendRequest) for each in reader.effects), (
        "the same leader: not at once"
    )
    reader.pass_time(1.0)
    assert [each.to for each in reader.effects if isinstance(each, SendRequest)] == [1]


def reader_of_two_batches() -> Reader:
    """Return a reader of a partition with records 0 to 9, of which it has 0 to 4."""
    reader = Reader(A)
    reader.respond(
        1, PartitionData(partition_index=0, records=batch(0, 2) + batch(2, 3), high_watermark=10)
    )
    return reader


def test_the_next_fetch_is_sent_while_records_of_the_last_one_are_read() -> None:
    reader = reader_of_two_batches()
    assert not reader.requests, "the user reads nothing yet"
    assert reader.poll(1) == [(0, 0)]
    assert reader.requested(1) == {0: 5}
    reader.respond(1, PartitionData(partition_index=0, records=batch(5, 2), high_watermark=10))
    assert not reader.requests, "one fetch ahead, not more"
    assert reader.poll(3) == [(0, 1), (0, 2), (0, 3)]
    assert not reader.requests
    assert reader.poll(2) == [(0, 4), (0, 5)]
    assert reader.requested(1) == {0: 7}
    assert reader.poll() == [(0, 6)]
    assert reader.consumer.positions[A].position == Position(7)


def test_nothing_is_fetched_ahead_at_the_end_of_a_partition() -> None:
    reader = Reader(A)
    reader.respond(1, PartitionData(partition_index=0, records=batch(0, 3), high_watermark=3))
    assert reader.poll(1) == [(0, 0)]
    assert not reader.requests
    assert reader.poll(2) == [(0, 1), (0, 2)]
    assert reader.requested(1) == {0: 3}


def test_a_seek_drops_what_was_fetched_ahead() -> None:
    reader = reader_of_two_batches()
    assert len(reader.poll(4)) == 4
    reader.respond(1, PartitionData(partition_index=0, records=batch(5, 2), high_watermark=10))
    reader.send(events.Seek(A, 1))
    assert reader.poll() == []
    assert reader.requested(1) == {0: 1}
    reader.respond(1, PartitionData(partition_index=0, records=batch(0, 5), high_watermark=10))
    assert reader.poll(4) == [(0, 1), (0, 2), (0, 3), (0, 4)]
    assert reader.requested(1) == {0: 5}


def test_a_response_ahead_of_a_position_that_was_moved_is_dropped() -> None:
    reader = reader_of_two_batches()
    assert len(reader.poll(4)) == 4
    reader.send(events.Seek(A, 1))
    reader.respond(1, PartitionData(partition_index=0, records=batch(5, 2), high_watermark=10))
    assert reader.poll() == []
    assert reader.requested(1) == {0: 1}


def test_what_was_fetched_ahead_is_kept_while_its_partition_is_paused() -> None:
    reader = reader_of_two_batches()
    assert len(reader.poll(4)) == 4
    reader.respond(1, PartitionData(partition_index=0, records=batch(5, 2), high_watermark=7))
    reader.send(events.Pause((A,)))
    assert reader.poll() == []
    reader.send(events.Resume((A,)))
    assert not reader.requests
    assert reader.poll() == [(0, 4), (0, 5), (0, 6)]


@pytest.mark.parametrize("back", [1, 2])
def test_records_that_are_returned_come_before_those_fetched_ahead(back: int) -> None:
    reader = reader_of_two_batches()
    assert len(reader.poll(4)) == 4
    reader.respond(1, PartitionData(partition_index=0, records=batch(5, 3), high_watermark=10))
    reader.effects.clear()
    reader.send(events.Poll(3))
    [found] = [each.records for each in reader.effects if isinstance(each, events.Deliver)]
    assert [each.offset for each in found] == [4, 5, 6]
    reader.send(events.ReturnRecords(found[-back:]))
    assert reader.poll() == [(0, offset) for offset in range(7 - back, 8)]


def test_records_that_are_returned_do_not_drop_the_fetch_in_flight() -> None:
    reader = reader_of_two_batches()
    reader.send(events.Poll(5))
    [found] = [each.records for each in reader.effects if isinstance(each, events.Deliver)]
    assert reader.requested(1) == {0: 5}
    reader.send(events.ReturnRecords(found[3:]))
    reader.respond(1, PartitionData(partition_index=0, records=batch(5, 2), high_watermark=7))
    assert reader.poll() == [(0, 3), (0, 4), (0, 5), (0, 6)]


def test_an_error_ahead_of_the_position_waits_for_the_records_before_it() -> None:
    reader = reader_of_two_batches()
    assert len(reader.poll(4)) == 4
    code = E.TOPIC_AUTHORIZATION_FAILED
    reader.respond(1, PartitionData(partition_index=0, error_code=code))
    assert not any(isinstance(each, events.Raise) for each in reader.effects)
    assert not reader.requests, "not at once"
    assert reader.poll() == [(0, 4)]
    reader.pass_time(1.0)
    assert reader.requested(1) == {0: 5}
    reader.respond(1, PartitionData(partition_index=0, error_code=code))
    reader.poll()
    assert any(isinstance(each, events.Raise) for each in reader.effects)


def test_partitions_take_turns_though_they_are_fetched_ahead() -> None:
    reader = Reader(A, B)
    reader.respond(1, PartitionData(partition_index=0, records=batch(0, 2), high_watermark=9))
    reader.respond(1, PartitionData(partition_index=1, records=batch(0, 1), high_watermark=1))
    assert reader.poll(1) == [(0, 0)]
    assert reader.requested(1) == {0: 2}
    reader.respond(1, PartitionData(partition_index=0, records=batch(2, 1), high_watermark=9))
    assert reader.poll() == [(0, 1), (1, 0), (0, 2)]

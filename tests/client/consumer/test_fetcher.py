"""Fetching, question by question: who is asked, when, and what every error leads to."""

from __future__ import annotations

from random import Random

import pytest

from kafkawire.client.consumer import (
    Consumer,
    ConsumerConfig,
    Reset,
    ResetPolicy,
    TopicPartition,
    events,
)
from kafkawire.client.consumer.fetch.errors import FetchError, fetch_error
from kafkawire.client.consumer.offsets.partition_state import FetchState
from kafkawire.client.network.cluster import Broker, Partition, Topic
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
    """Two partitions led by broker 1, one by broker 2; broker 3 follows."""
    partitions = {p.partition: Partition(*p, leader, 5) for p, leader in LEADERS.items()}
    brokers = {node: Broker(node, f"broker{node}", 9092) for node in (1, 2, 3)}
    return View({"orders": Topic("orders", ID, partitions=partitions)}, brokers)


def batch(offset: int, count: int) -> bytes:
    builder = BatchBuilder(base_offset=offset)
    for _ in range(count):
        builder.append(None, b"v")
    return builder.build()


class Reader:
    """A consumer of assigned partitions, with the brokers played by the test."""

    def __init__(self, *partitions: TopicPartition) -> None:
        self.view = view()
        self.now = 0.0
        self.asks: dict[int, SendRequest] = {}
        self.said: list[object] = []
        self.it = Consumer(
            ConsumerConfig(client_rack="here"),
            self.view,
            rng=Random(0).random,
            clock_ms=lambda: 0,
        )
        self.tell(events.Assign(partitions))
        for each in partitions:
            self.tell(events.Seek(each, 0))
        self.said.clear()

    def tell(self, event: object) -> None:
        self.hear(self.it.handle(event, self.now))

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.hear(self.it.advance(self.now))

    def hear(self, effects: list[object]) -> None:
        for each in effects:
            if isinstance(each, SendRequest) and each.api is ApiKey.FETCH:
                assert isinstance(each.to, int)
                assert each.to not in self.asks, "two fetches in flight to one broker"
                self.asks[each.to] = each
            else:
                self.said.append(each)

    def asked(self, node: int) -> dict[int, int]:
        """Partition -> offset of all that the fetch in flight is about."""
        message = self.asks[node].body.build(6)  # a version without sessions says everything
        assert isinstance(message, FetchRequest)
        return {p.partition: p.fetch_offset for topic in message.topics for p in topic.partitions}

    def answer(self, node: int, *data: PartitionData, endpoints: bool = False) -> None:
        topic = FetchableTopicResponse(topic_id=ID, partitions=list(data))
        known = [NodeEndpoint(node_id=9, host="broker9", port=9)] if endpoints else []
        response = FetchResponse(session_id=7, responses=[topic], node_endpoints=known)
        self.tell(ResponseReceived(self.asks.pop(node), 17, response, node))

    def take(self) -> list[tuple[int, int]]:
        """Poll, and stop; what came."""
        self.said.clear()
        self.tell(events.Poll())
        self.tell(events.StopPolling())
        found = [each for each in self.said if isinstance(each, events.Deliver)]
        return [(r.partition, r.offset) for each in found for r in each.records]


def test_all_that_a_broker_leads_goes_into_one_fetch() -> None:
    reader = Reader(A, B, C)
    assert reader.asked(1) == {0: 0}  # what was known first is asked first
    assert reader.asked(2) == {2: 0}
    reader.answer(1)
    assert reader.asked(1) == {0: 0, 1: 0}


def test_only_what_can_be_used_is_fetched() -> None:
    reader = Reader(A, B, C)
    reader.answer(1, PartitionData(partition_index=0, records=batch(0, 3)))
    assert reader.asked(1) == {1: 0}  # something of A is waiting
    reader.tell(events.Pause((B,)))
    reader.answer(1)
    assert 1 not in reader.asks
    assert reader.take() == [(0, 0), (0, 1), (0, 2)]
    assert reader.asked(1) == {0: 3}  # sent ahead, before the next poll
    reader.tell(events.Resume((B,)))
    reader.answer(1)
    assert reader.asked(1) == {0: 3, 1: 0}


def test_a_broker_is_not_made_to_wait_for_data_while_some_of_it_is_here() -> None:
    """Else what is here would be used up, and nothing fetched, until the broker's wait is over."""
    reader = Reader(A, B)
    reader.answer(1)
    full = PartitionData(partition_index=0, high_watermark=9, records=batch(0, 3))
    at_its_end = PartitionData(partition_index=1, high_watermark=0)
    reader.answer(1, full, at_its_end)
    assert not reader.asks  # of B there is nothing to fetch, and of A something here
    assert reader.take() == [(0, 0), (0, 1), (0, 2)]
    assert reader.asked(1) == {0: 3, 1: 0}
    more = PartitionData(partition_index=0, high_watermark=9, records=batch(3, 3))
    reader.answer(1, more, PartitionData(partition_index=1, high_watermark=7))
    assert reader.asked(1) == {1: 0}  # of B there is


def test_what_comes_for_another_position_is_dropped() -> None:
    reader = Reader(A)
    reader.tell(events.Seek(A, 40))
    reader.answer(1, PartitionData(partition_index=0, records=batch(0, 3)))
    assert reader.take() == []
    assert reader.asked(1) == {0: 40}
    reader.answer(1, PartitionData(partition_index=0, records=batch(40, 2)))
    reader.tell(events.Seek(A, 10))  # also what waits already
    assert reader.take() == []
    assert reader.asked(1) == {0: 10}
    reader.tell(events.Seek(A, 5))  # and what lies behind where the user went back to
    reader.answer(1, PartitionData(partition_index=0, records=batch(10, 3)))
    assert reader.take() == []
    assert reader.asked(1) == {0: 5}


@pytest.mark.parametrize("code", [each for each in ErrorCode if each != E.NONE] + [12_345])
def test_every_error_of_a_partition(code: int) -> None:
    reader = Reader(A)
    reader.answer(1, PartitionData(partition_index=0, error_code=code))
    said = list(reader.said)
    assert 1 not in reader.asks  # never at once again
    match fetch_error(code):
        case FetchError.REFRESH_METADATA:
            assert RequestMetadataUpdate(frozenset({"orders"})) in said
        case FetchError.RETRY:
            assert not said
        case FetchError.OUT_OF_RANGE:
            assert any(isinstance(e, SendRequest) and e.api is ApiKey.LIST_OFFSETS for e in said)
            return
        case FetchError.FAIL:
            reader.pass_time(10.0)
            assert 1 not in reader.asks
            reader.take()
            (raised,) = [each for each in reader.said if isinstance(each, events.Raise)]
            assert getattr(raised.error, "code", None) == code
    reader.pass_time(10.0)
    assert reader.asked(1) == {0: 0}


def test_an_offset_that_the_user_has_left_may_be_out_of_range() -> None:
    reader = Reader(A)
    reader.tell(events.Seek(A, 40))  # while 0 is asked for
    reader.answer(1, PartitionData(partition_index=0, error_code=E.OFFSET_OUT_OF_RANGE))
    assert reader.it.positions[A].fetch_state is FetchState.FETCHING
    reader.pass_time(1.0)
    assert reader.asked(1) == {0: 40}


def test_a_leader_that_is_named_is_learnt() -> None:
    reader = Reader(A)
    leader = LeaderIdAndEpoch(leader_id=9, leader_epoch=6)
    data = PartitionData(
        partition_index=0, error_code=E.NOT_LEADER_OR_FOLLOWER, current_leader=leader
    )
    reader.answer(1, data, endpoints=True)
    assert UpdateLeader("orders", 0, 9, 6, (Broker(9, "broker9", 9),)) in reader.said


def test_a_follower_that_is_named_is_read_from_until_it_lags() -> None:
    reader = Reader(A)
    reader.answer(1, PartitionData(partition_index=0, preferred_read_replica=3))
    assert reader.asked(3) == {0: 0}
    assert 1 not in reader.asks
    reader.answer(3, PartitionData(partition_index=0, error_code=E.OFFSET_OUT_OF_RANGE))
    assert reader.it.positions[A].fetch_state is FetchState.FETCHING  # the leader may have it
    reader.pass_time(1.0)
    assert reader.asked(1) == {0: 0}


def test_a_lost_answer_is_asked_for_again_after_a_while() -> None:
    reader = Reader(A)
    reader.tell(NoResponse(reader.asks.pop(1), Reason.DISCONNECTED, True))
    assert 1 not in reader.asks
    due = reader.it.next_deadline()
    assert due is not None
    reader.pass_time(due)
    assert reader.asked(1) == {0: 0}


def test_a_new_leader_is_asked_as_soon_as_it_is_known() -> None:
    reader = Reader(A)
    partitions = dict(reader.view.topics["orders"].partitions)
    partitions[0] = Partition("orders", 0, -1, 6)
    reader.view.topics["orders"] = Topic("orders", ID, partitions=partitions)
    reader.tell(MetadataChanged(frozenset({"orders"})))
    reader.answer(1)
    assert not reader.asks
    assert RequestMetadataUpdate(frozenset({"orders"})) in reader.said
    reader.said.clear()
    reader.tell(MetadataChanged(frozenset({"orders"})))
    assert not reader.asks
    assert not reader.said, "news without a leader is no reason to ask for more of it at once"
    partitions[0] = Partition("orders", 0, 2, 7)
    reader.tell(MetadataChanged(frozenset({"orders"})))
    assert reader.asked(2) == {0: 0}


def test_where_a_log_begins_is_asked_as_soon_as_its_leader_is_known() -> None:
    reader = Reader(A, B)
    topics, known = reader.view.topics, reader.view.topics.pop("orders")
    reader.said.clear()
    reader.tell(events.SeekTo((A, B), ResetPolicy(Reset.EARLIEST)))
    assert [type(each) for each in reader.said] == [RequestMetadataUpdate]
    reader.said.clear()
    reader.tell(MetadataChanged(frozenset()))
    assert not reader.said, "nothing is known of its leader: that is asked for again after a while"
    topics["orders"] = Topic("orders", ID, partitions={0: Partition("orders", 0, 1, 5)})
    reader.tell(MetadataChanged(frozenset({"orders"})))
    asked = [each for each in reader.said if isinstance(each, SendRequest)]
    assert [(each.to, each.api) for each in asked] == [(1, ApiKey.LIST_OFFSETS)]
    assert reader.said[1:] == [RequestMetadataUpdate(frozenset({"orders"}))], "B has no leader yet"
    reader.said.clear()
    topics["orders"] = known
    reader.tell(MetadataChanged(frozenset({"orders"})))
    assert [(each.to, each.api) for each in reader.said if isinstance(each, SendRequest)] == [
        (1, ApiKey.LIST_OFFSETS)
    ]


@pytest.mark.parametrize("code", [E.FETCH_SESSION_ID_NOT_FOUND, E.INVALID_FETCH_SESSION_EPOCH])
def test_a_session_that_is_refused_begins_anew_at_once(code: ErrorCode) -> None:
    reader = Reader(A)
    reader.answer(1)
    reader.tell(ResponseReceived(reader.asks.pop(1), 17, FetchResponse(error_code=code), 1))
    message = reader.asks[1].body.build(17)
    assert isinstance(message, FetchRequest)
    assert message.session_epoch == 0
    assert message.session_id == (0 if code == E.FETCH_SESSION_ID_NOT_FOUND else 7)
    assert len(message.topics) == 1


LATE = [E.NOT_LEADER_OR_FOLLOWER, E.UNKNOWN_TOPIC_OR_PARTITION, E.OFFSET_NOT_AVAILABLE, None]


@pytest.mark.parametrize("code", LATE)
def test_a_leader_that_cannot_say_yet_is_asked_again_with_a_new_picture(
    code: ErrorCode | None,
) -> None:
    """Of None the broker says nothing: its answer leaves the partition out."""
    reader = Reader(A)
    reader.said.clear()
    reader.tell(events.SeekTo((A,), ResetPolicy(Reset.EARLIEST)))
    [asked] = [each for each in reader.said if isinstance(each, SendRequest)]
    reader.said.clear()
    rows = [] if code is None else [ListOffsetsPartitionResponse(error_code=code)]
    topic = ListOffsetsTopicResponse(name="orders", partitions=rows)
    reader.tell(ResponseReceived(asked, 9, ListOffsetsResponse(topics=[topic]), 1))
    assert RequestMetadataUpdate(frozenset({"orders"})) in reader.said
    assert not any(isinstance(each, SendRequest) for each in reader.said), "not at once"
    partitions = dict(reader.view.topics["orders"].partitions)
    partitions[0] = Partition("orders", 0, 2, 6)
    reader.view.topics["orders"] = Topic("orders", ID, partitions=partitions)
    reader.said.clear()
    reader.tell(MetadataChanged(frozenset({"orders"})))
    reader.pass_time(1.0)
    [again] = [each for each in reader.said if isinstance(each, SendRequest)]
    assert (again.to, again.api) == (2, ApiKey.LIST_OFFSETS)
    found = ListOffsetsPartitionResponse(offset=30, leader_epoch=6)
    topic = ListOffsetsTopicResponse(name="orders", partitions=[found])
    reader.tell(ResponseReceived(again, 9, ListOffsetsResponse(topics=[topic]), 2))
    reader.tell(NoResponse(reader.asks.pop(1), Reason.DISCONNECTED, True))
    assert reader.asked(2) == {0: 30}


def test_a_leader_that_says_nothing_is_asked_again_after_a_while() -> None:
    reader = Reader(A)
    reader.said.clear()
    reader.tell(events.SeekTo((A,), ResetPolicy(Reset.EARLIEST)))
    [asked] = [each for each in reader.said if isinstance(each, SendRequest)]
    reader.said.clear()
    reader.tell(NoResponse(asked, Reason.DISCONNECTED, True))
    assert reader.said == [RequestMetadataUpdate(frozenset({"orders"}))]
    reader.tell(MetadataChanged(frozenset({"orders"})))
    assert not any(isinstance(each, SendRequest) for each in reader.said), (
        "the same leader: not at once"
    )
    reader.pass_time(1.0)
    assert [each.to for each in reader.said if isinstance(each, SendRequest)] == [1]

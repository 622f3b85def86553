"""What a capture teaches beyond single messages: exchanges, names of topic ids, fetch sessions."""

from __future__ import annotations

from typing import Any

import pytest

import kafkawire
from kafkawire.capture.exchanges.exchanges import Ended, Exchange, exchanges
from kafkawire.capture.exchanges.fetch_sessions import FetchSessions
from kafkawire.capture.exchanges.topic_ids import ZERO, TopicNames
from kafkawire.capture.rows import Located, Row, Status
from kafkawire.messages import REGISTRY
from kafkawire.protocol.json_form import uuid_text
from tests.capture.written import message

ORDERS, PAYMENTS = bytes(range(16)), bytes(range(16, 32))
ENDS = "10.0.0.1:50000", "10.0.0.2:9092"


def request_row(packet: int, correlation_id: int, connection: int = 0, **more: Any) -> Located:
    row = Row(packet, packet, "request", 10, Status.OK, correlation_id=correlation_id, api_key=3)
    return Located(connection, *ENDS, row._replace(**more))


def response_row(
    packet: int, request_packet: int | None, correlation_id: int, connection: int = 0
) -> Located:
    row = Row(packet, packet, "response", 10, Status.OK, correlation_id=correlation_id, api_key=3)
    return Located(connection, *ENDS, row._replace(request_packet=request_packet))


def ended(connection: int) -> Ended:
    return Ended(connection, *ENDS, 1, 1, 1, 1, False)


def paired(*traffic: Located | Ended) -> list[tuple[int | None, int | None]]:
    return [
        (e.request and e.request.packet, e.response and e.response.packet)
        for e in exchanges(traffic)
    ]


# -- exchanges


def test_pipelined_requests_and_their_answers() -> None:
    assert paired(
        request_row(1, 7), request_row(2, 8), response_row(3, 1, 7), response_row(4, 2, 8)
    ) == [
        (1, 3),
        (2, 4),
    ]


def test_an_answer_leaves_older_requests_alone() -> None:
    assert paired(request_row(1, 7), request_row(2, 8), response_row(3, 2, 8)) == [
        (1, None),
        (2, 3),
    ]


def test_the_same_correlation_id_twice() -> None:
    assert paired(
        request_row(1, 7), response_row(2, 1, 7), request_row(3, 7), response_row(4, 3, 7)
    ) == [
        (1, 2),
        (3, 4),
    ]


def test_one_packet_may_complete_two_requests() -> None:
    assert paired(
        request_row(1, 7), request_row(1, 8), response_row(2, 1, 7), response_row(2, 1, 8)
    ) == [
        (1, 2),
        (1, 2),
    ]


def test_a_response_alone() -> None:
    assert paired(response_row(3, None, 9)) == [(None, 3)]


def test_what_is_open_goes_out_when_its_connection_ends_and_not_before() -> None:
    assert paired(
        request_row(1, 1), request_row(2, 1, connection=1), ended(0), response_row(3, 2, 1, 1)
    ) == [
        (1, None),
        (2, 3),
    ]


def test_what_is_open_at_the_end_of_the_capture_goes_out() -> None:
    assert paired(request_row(1, 1), request_row(2, 2)) == [(1, None), (2, None)]


def test_what_waits_is_bounded_in_number_and_in_bytes() -> None:
    many = list(exchanges(request_row(n, n) for n in range(1, 5001)))
    assert len(many) == 5000
    pairs = exchanges(
        [request_row(n, n, length=1 << 22) for n in range(1, 6)] + [response_row(9, 1, 1)]
    )
    assert [(e.request and e.request.packet, e.response and e.response.packet) for e in pairs] == [
        (1, None),
        (2, None),
        (3, None),
        (None, 9),
        (4, None),
        (5, None),
    ]


def test_rows_that_are_no_messages_belong_to_no_exchange() -> None:
    gap = Located(0, *ENDS, Row(2, 2, "request", 5, Status.GAP))
    token = Located(0, *ENDS, Row(3, 3, "request", 5, Status.SASL_TOKEN))
    cut = Located(0, *ENDS, Row(4, 4, "request", 5, Status.TRUNCATED))
    assert paired(gap, token, cut) == []


# -- topic ids


def test_a_name_is_learnt_from_metadata_and_fills_in_what_was_said_before() -> None:
    names = TopicNames()
    before = names.topic(None, ORDERS)
    assert before.name is None
    assert names.unknown == [ORDERS]
    topics = [{"name": "orders", "topicId": uuid_text(ORDERS)}]
    names.learn(message("MetadataResponse", 12, topics=topics), 12)
    assert before.name == "orders"
    assert names.topic("", ORDERS) is before
    assert names.unknown == []


LEARNT_FROM = [
    ("MetadataResponse", 10, {"topics": [{"name": "t", "topicId": uuid_text(ORDERS)}]}),
    ("CreateTopicsResponse", 7, {"topics": [{"name": "t", "topicId": uuid_text(ORDERS)}]}),
    ("DeleteTopicsResponse", 6, {"responses": [{"name": "t", "topicId": uuid_text(ORDERS)}]}),
    (
        "DescribeTopicPartitionsResponse",
        0,
        {"topics": [{"name": "t", "topicId": uuid_text(ORDERS)}]},
    ),
    (
        "ConsumerGroupDescribeResponse",
        0,
        {
            "groups": [
                {
                    "members": [
                        {
                            "assignment": {
                                "topicPartitions": [
                                    {"topicId": uuid_text(ORDERS), "topicName": "t"}
                                ]
                            }
                        }
                    ]
                }
            ]
        },
    ),
    (
        "AlterShareGroupOffsetsResponse",
        0,
        {"responses": [{"topicName": "t", "topicId": uuid_text(ORDERS)}]},
    ),
    (
        "UpdateMetadataRequest",
        7,
        {"topicStates": [{"topicName": "t", "topicId": uuid_text(ORDERS)}]},
    ),
]


@pytest.mark.parametrize(("name", "version", "fields"), LEARNT_FROM, ids=lambda v: str(v)[:30])
def test_where_names_are_learnt(name: str, version: int, fields: dict[str, Any]) -> None:
    names = TopicNames()
    names.learn(message(name, version, **fields), version)
    assert names.topic(None, ORDERS).name == "t"


def test_nothing_is_learnt_of_the_zero_id_or_an_empty_name() -> None:
    names = TopicNames()
    topics = [{"name": "orders"}, {"name": None, "topicId": uuid_text(ORDERS)}]
    names.learn(message("MetadataResponse", 12, topics=topics), 12)
    assert names.topic(None, ORDERS).name is None
    assert names.topic("orders", ZERO).id is None


def test_a_version_without_ids_teaches_nothing_and_is_no_error() -> None:
    names = TopicNames()
    for info in REGISTRY:
        if info.api_key is not None and info.type in ("request", "response"):
            for version in range(info.first, info.last + 1):
                names.learn(REGISTRY.load(info.name)(), version)
    assert names.unknown == []


# -- fetch sessions


def fetch(
    names: FetchSessions,
    session_id: int,
    epoch: int,
    lists: dict[str, list[int]],
    forgets: dict[str, list[int]] | None = None,
    response_id: int | None = 0,
    error: int = 0,
) -> tuple[list[tuple[str | None, int, bool]], bool]:
    """Expand a Fetch (v12); return all requested partitions."""
    topics = [
        {"topic": topic, "partitions": [{"partition": one, "fetchOffset": 5} for one in partitions]}
        for topic, partitions in lists.items()
    ]
    forgotten = [{"topic": topic, "partitions": them} for topic, them in (forgets or {}).items()]
    asks = message(
        "FetchRequest", 12, sessionId=session_id, sessionEpoch=epoch, topics=topics,
        forgottenTopicsData=forgotten,
    )  # fmt: skip
    request = Row(1, 1, "request", 1, Status.OK, api_key=1, body_version=12, message=asks)
    response = None
    if response_id is not None:
        body = message("FetchResponse", 12, sessionId=response_id, errorCode=error)
        response = request._replace(direction="response", message=body)
    found = names.expand(Exchange(0, *ENDS, request, response))
    assert found is not None
    partitions = [
        (one.topic.name, one.partition, key in found.listed) for key, one in found.requested.items()
    ]
    return partitions, found.complete


def test_a_session_grows_changes_and_forgets() -> None:
    sessions = FetchSessions(TopicNames())
    opened = fetch(sessions, 0, 0, {"a": [0, 1], "b": [0]}, response_id=77)
    assert opened == ([("a", 0, True), ("a", 1, True), ("b", 0, True)], True)
    nothing = fetch(sessions, 77, 1, {}, response_id=77)
    assert nothing == ([("a", 0, False), ("a", 1, False), ("b", 0, False)], True)
    changed = fetch(sessions, 77, 2, {"a": [1], "c": [4]}, {"b": [0]}, response_id=77)
    assert changed == ([("a", 0, False), ("a", 1, True), ("c", 4, True)], True)
    assert fetch(sessions, 77, 3, {}, response_id=77)[0] == [
        ("a", 0, False),
        ("a", 1, False),
        ("c", 4, False),
    ]


def test_a_request_that_lists_what_it_forgets_asks_for_it() -> None:
    sessions = FetchSessions(TopicNames())
    fetch(sessions, 0, 0, {"a": [0]}, response_id=5)
    assert fetch(sessions, 5, 1, {"a": [0]}, {"a": [0]}, response_id=5)[0] == [("a", 0, True)]


def test_a_session_that_began_before_the_capture_is_incomplete() -> None:
    sessions = FetchSessions(TopicNames())
    assert fetch(sessions, 9, 40, {"a": [2]}, response_id=9) == ([("a", 2, True)], False)
    assert fetch(sessions, 9, 41, {}, response_id=9) == ([("a", 2, False)], False)


def test_without_a_session_only_what_is_listed_counts() -> None:
    sessions = FetchSessions(TopicNames())
    fetch(sessions, 0, 0, {"a": [0]}, response_id=5)
    assert fetch(sessions, 5, -1, {"b": [1]}) == ([("b", 1, True)], True)
    assert fetch(sessions, 5, 1, {}, response_id=5) == ([], False)


def test_a_session_that_the_broker_does_not_know_is_gone() -> None:
    sessions = FetchSessions(TopicNames())
    fetch(sessions, 0, 0, {"a": [0]}, response_id=5)
    code = int(kafkawire.ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    assert fetch(sessions, 5, 1, {}, response_id=0, error=code)[0] == [("a", 0, False)]
    assert fetch(sessions, 5, 2, {}, response_id=5) == ([], False)


def test_a_broker_that_opens_no_session() -> None:
    sessions = FetchSessions(TopicNames())
    fetch(sessions, 0, 0, {"a": [0]}, response_id=0)
    assert fetch(sessions, 0, 0, {"b": [0]}, response_id=0) == ([("b", 0, True)], True)


def test_a_fetch_without_an_answer_still_changes_its_session() -> None:
    sessions = FetchSessions(TopicNames())
    fetch(sessions, 0, 0, {"a": [0]}, response_id=5)
    fetch(sessions, 5, 1, {"b": [0]}, response_id=None)
    assert fetch(sessions, 5, 2, {}, response_id=5)[0] == [("a", 0, False), ("b", 0, False)]

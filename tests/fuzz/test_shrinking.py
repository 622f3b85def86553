"""Shrinking leaves what shows a problem, and nothing else that can be left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkawire.fuzz.cases import Case, Form
from kafkawire.fuzz.faults import Fault, Kind
from kafkawire.fuzz.shrinking import simpler
from kafkawire.messages.api_key import ApiKey
from kafkawire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic

from .plans import plan


def smallest(case: Case, shows: Callable[[Case], bool]) -> Case:
    """Shrink a case as long as it shows something."""
    while (smaller := next(filter(shows, simpler(case)), None)) is not None:
        case = smaller
    return case


def test_the_field_that_matters_is_left() -> None:
    partitions = [FetchPartition(partition=each, fetch_offset=3) for each in range(4)]
    topics = [FetchTopic(topic=f"t{each}", partitions=partitions) for each in range(3)]
    request = FetchRequest(topics=topics, max_bytes=7, rack_id="rack" * 20, session_id=5)
    case = Case(0, Form.BOUNDARY, ApiKey.FETCH, 12, request, None, -1, "client")

    def shows(each: Case) -> bool:
        message: Any = each.message
        return any(p.partition == 2 for topic in message.topics for p in topic.partitions)

    left = smallest(case, shows)
    [topic] = left.message.topics  # type: ignore[attr-defined]
    assert topic == FetchTopic(partitions=[FetchPartition(partition=2)])
    assert left.message == FetchRequest(topics=[topic])
    assert (left.correlation_id, left.client_id) == (1, "")
    assert case.message == request, "the case itself stays as it is"


def test_a_fault_is_left_out_unless_it_matters() -> None:
    case = next(
        each
        for each in map(plan(1, ApiKey.DESCRIBE_GROUPS).case, range(500))
        if each.fault is not None and each.fault.kind is Kind.TRAILING
    )
    assert smallest(case, lambda _: True).fault is None
    assert smallest(case, lambda each: each.fault is not None).fault == Fault(
        Kind.TRAILING, number=1
    )


def test_random_bytes_become_few() -> None:
    fault = Fault(Kind.BYTES, data=b"a" * 500 + b"!" + b"b" * 500)
    case = Case(0, Form.BROKEN, ApiKey.FETCH, 12, FetchRequest(), fault)
    left = smallest(case, lambda each: each.fault is not None and b"!" in each.fault.data)
    assert left.fault == fault._replace(data=b"!")


def test_names_of_what_a_request_changes_stay() -> None:
    request = CreateTopicsRequest(topics=[CreatableTopic(name="fuzz-topic", num_partitions=3)])
    case = Case(0, Form.VALID, ApiKey.CREATE_TOPICS, 5, request)
    for each in simpler(case):
        message: Any = each.message
        assert [topic.name for topic in message.topics] in ([], ["fuzz-topic"])

"""What became of produced records: refused by an error code, or without a response."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from kafkawire.protocol import ErrorCode
from tests.cli.reports import report, text
from tests.conftest import FIXTURES
from tests.reports.diagnosis.stories import Story, batch_of

THREE: Final = batch_of([1, 2, 3])
ACKS: Final[dict[str, Any]] = {"acks": -1, "timeoutMs": 100}


def produced(capture: Path) -> dict[str, tuple[int, int, int]]:
    """Return the records of each topic: produced, refused, unanswered."""
    topics = report("topics", capture)["topics"]
    assert report("summary", capture)["topics"] == topics
    amounts = {topic["topic"]: topic["produced"] for topic in topics}
    return {
        name: (one["records"], one["refused"], one["unanswered"]) for name, one in amounts.items()
    }


def topic_data(name: str, *partitions: int) -> dict[str, Any]:
    data = [{"index": partition, "records": THREE} for partition in partitions]
    return {"name": name, "partitionData": data}


def responses(name: str, codes: dict[int, int]) -> dict[str, Any]:
    results = [
        {"index": partition, "errorCode": code, "baseOffset": 0}
        for partition, code in codes.items()
    ]
    return {"name": name, "partitionResponses": results}


def heading(capture: Path, verb: str = "topics") -> str:
    lines = text(verb, capture).splitlines()
    return lines[lines.index("Topics") + 1]


def test_records_are_refused_by_partition_and_topic(tmp_path: Path) -> None:
    refused = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    response = [responses("orders", {0: 0, 1: refused}), responses("returns", {0: refused})]
    story = Story().exchange(
        "Produce",
        8,
        topicData=[topic_data("orders", 0, 1), topic_data("returns", 0)],
        response={"responses": response},
        **ACKS,
    )
    path = story.produce(THREE).save(tmp_path / "a.pcap")
    assert produced(path) == {"orders": (9, 3, 0), "returns": (3, 3, 0)}
    assert "refused" in heading(path)
    assert "no response" not in heading(path)


def test_records_without_a_response_are_not_refused(tmp_path: Path) -> None:
    story = Story().produce(THREE)
    story.request("Produce", 8, topicData=[topic_data("orders", 0)], **ACKS)
    path = story.save(tmp_path / "a.pcap")
    assert produced(path) == {"orders": (6, 0, 3)}
    assert "no response" in heading(path)
    assert "refused" not in heading(path)


def test_a_partition_that_the_response_leaves_out_has_none(tmp_path: Path) -> None:
    story = Story().exchange(
        "Produce",
        8,
        topicData=[topic_data("orders", 0, 1)],
        response={"responses": [responses("orders", {1: 0})]},
        **ACKS,
    )
    assert produced(story.save(tmp_path / "a.pcap")) == {"orders": (6, 0, 3)}


def test_requests_with_acks_0_expect_no_response(tmp_path: Path) -> None:
    data = [topic_data("orders", 0)]
    path = Story().request("Produce", 8, acks=0, topicData=data).save(tmp_path / "a.pcap")
    assert produced(path) == {"orders": (3, 0, 0)}
    assert not {"refused", "response"} & set(heading(path).split())


@pytest.mark.parametrize(
    ("incident", "counted"),
    [
        ("rejected-records", {"addresses": (5, 5, 0)}),
        ("produce-retries", {"withdrawals": (45, 0, 15)}),
    ],
)
def test_incidents(incident: str, counted: dict[str, tuple[int, int, int]]) -> None:
    path = FIXTURES / "incidents" / f"{incident}.pcap.gz"
    assert produced(path) == counted
    assert heading(path, "summary") == heading(path)

"""The rule about requests after which a broker closes the connection."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capture.wire import ACK, FIN
from tests.capture.written import BROKER, CLIENT

from .stories import Story, rules

RULE = "rejected-requests"


def rejecting(
    times: int = 3, *, version: int = 0, every: float = 0.5, first: int = BROKER
) -> Story:
    """Each JoinGroup is followed by the FIN of the broker, or of another side."""
    story = Story().exchange("Metadata", 5, 99)
    for connection in range(times):
        story.request("JoinGroup", version, connection, groupId="billing")
        story.wait(0.01).segment(connection, first, FIN | ACK, b"")
        story.segment(connection, 1 - first, FIN | ACK, b"")
        story.wait(every)
    return story


def test_a_version_that_the_broker_no_longer_has(tmp_path: Path) -> None:
    by_rule = rules(rejecting(), tmp_path)
    assert next(iter(by_rule)) == RULE
    one = by_rule[RULE]
    assert (one["severity"], one["count"]) == ("critical", 3)
    assert one["what"] == "3 connections closed by the broker on JoinGroup v0"
    assert one["cause"].startswith("Kafka 4.0 and later do not support JoinGroup v0")
    assert one["subject"] == {"client": "tester", "broker": "10.0.0.2:9092", "api": "JoinGroup"}


def test_a_request_that_the_broker_cannot_read(tmp_path: Path) -> None:
    one = rules(rejecting(version=5), tmp_path)[RULE]
    assert (one["severity"], one["confidence"]) == ("warning", "medium")
    assert one["settings"] == [{"key": "socket.request.max.bytes", "value": None}]
    assert rules(rejecting(20, version=5), tmp_path)[RULE]["severity"] == "critical"


@pytest.mark.parametrize(
    "story",
    [
        rejecting(2, version=5),
        rejecting(5, version=5, first=CLIENT),
        rejecting(5, version=5, every=0),  # a broker shuts down
        rejecting(5, version=5).exchange("JoinGroup", 5, 98, groupId="billing"),
    ],
    ids=["few", "the client closes", "all at once", "the version works"],
)
def test_connections_that_end_otherwise(story: Story, tmp_path: Path) -> None:
    assert RULE not in rules(story, tmp_path)


def test_a_broker_that_waits_before_it_closes(tmp_path: Path) -> None:
    story = Story().exchange("Metadata", 5, 99)
    for connection in range(4):
        story.request("JoinGroup", 5, connection, groupId="billing").wait(2)
        story.segment(connection, BROKER, FIN | ACK, b"")
        story.segment(connection, CLIENT, FIN | ACK, b"")
    assert RULE not in rules(story, tmp_path)


def test_requests_that_are_larger_than_those_with_responses(tmp_path: Path) -> None:
    story = rejecting(0)
    for connection, group in enumerate(["g"] + ["g" * 200] * 3):
        story.request("JoinGroup", 5, connection, groupId=group)
        if connection:
            story.segment(connection, BROKER, FIN | ACK, b"")
            story.segment(connection, CLIENT, FIN | ACK, b"").wait(0.5)
        else:
            story.respond("JoinGroup", 5, connection)
    assert rules(story, tmp_path)[RULE]["count"] == 3

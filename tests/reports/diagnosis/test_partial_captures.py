"""Captures that lack a direction or the ends of packets: what they cannot show is no finding."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import Final

import pytest

from tests.capture.wire import ACK, FIN, SYN
from tests.capture.written import BROKER, CLIENT, HOSTS

from .stories import Story, rules

SOURCE_ADDRESS: Final = slice(26, 30)
"""Of IPv4 in Ethernet."""
SNAPLEN: Final = 100
"""Bytes of a packet; the headers take 58."""


def of_clients(story: Story) -> Story:
    """Leave the packets of clients, as the filter `dst port 9092` does."""
    client = ip_address(HOSTS[CLIENT]).packed
    story.packets = [one for one in story.packets if one.data[SOURCE_ADDRESS] == client]
    return story


def test_a_few_requests_of_which_the_broker_was_not_captured(tmp_path: Path) -> None:
    """Data on a connection without the SYN of the broker: its packets must be elsewhere."""
    story = of_clients(Story().exchange("Metadata", 5).exchange("ListGroups", 4))
    by_rule = rules(story, tmp_path)
    assert list(by_rule) == ["one-way-captures"]
    assert by_rule["one-way-captures"]["what"].startswith("2 requests, and nothing of the other")


def test_clients_that_close_while_the_broker_is_not_captured(tmp_path: Path) -> None:
    """These are no timeouts: the responses may have come."""
    story = Story()
    for connection in range(3):
        story.exchange("OffsetCommit", 5, connection).wait(1)
        story.segment(connection, CLIENT, FIN | ACK, b"")
    assert list(rules(of_clients(story), tmp_path)) == ["one-way-captures"]


def test_connections_that_open_while_the_broker_is_not_captured(tmp_path: Path) -> None:
    story = Story().exchange("Metadata", 5)
    for connection in range(1, 5):
        story.start(connection)
        story.segment(connection, CLIENT, SYN, b"")
        story.segment(connection, BROKER, SYN | ACK, b"")
        story.segment(connection, CLIENT, FIN | ACK, b"").wait(1)
    assert list(rules(of_clients(story), tmp_path)) == ["one-way-captures"]


@pytest.mark.parametrize("answered", [True, False])
def test_requests_that_are_cut_off_before_how_long_they_may_wait(
    answered: bool, tmp_path: Path
) -> None:
    """A Produce of which the capture has the header may wait for its followers, for seconds."""
    story = Story()
    for _ in range(3):
        story.exchange("ListGroups", 4)
    story.request("Produce", 8, client_id="t" * 60, acks=-1, timeoutMs=30_000, topicData=[])
    story.wait(8)
    if answered:
        story.respond("Produce", 8)
    story.close()
    story.packets = [
        one._replace(data=one.data[:SNAPLEN], original=len(one.data)) for one in story.packets
    ]
    assert list(rules(story, tmp_path)) in ([], ["capture-loss"])

"""The cluster as it is known: what newer news replaces, and what older news does not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire.client.cluster import Broker
from kafkawire.client.network.metadata import RELIABLE_EPOCHS_FROM, TOPIC_IDS_FROM, Metadata
from kafkawire.client.requests import UpdateLeader
from kafkawire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafkawire.protocol.error_code import ErrorCode

NEWEST = 13
ORDERS = frozenset({"orders"})
FIRST, SECOND = b"1" * 16, b"2" * 16


def response_of(
    leaders: Mapping[int, tuple[int, int]],
    topic_id: bytes = FIRST,
    error: int = ErrorCode.NONE,
    brokers: int = 2,
) -> MetadataResponse:
    """A response about `orders`; leaders: partition -> leader, leader epoch."""
    partitions = [
        MetadataResponsePartition(partition_index=index, leader_id=leader, leader_epoch=epoch)
        for index, (leader, epoch) in leaders.items()
    ]
    topic = MetadataResponseTopic(
        name="orders", topic_id=topic_id, partitions=partitions, error_code=error
    )
    nodes = [
        MetadataResponseBroker(node_id=node, host=f"broker{node}", port=9092)
        for node in range(1, brokers + 1)
    ]
    return MetadataResponse(brokers=nodes, topics=[topic])


def led(metadata: Metadata, index: int = 0) -> tuple[int, int]:
    found = metadata.partition("orders", index)
    assert found is not None
    return found.leader, found.leader_epoch


@given(st.lists(st.tuples(st.integers(1, 2), st.integers(0, 6)), min_size=1, max_size=12))
def test_the_newest_leader_epoch_stands_whatever_comes_when(news: list[tuple[int, int]]) -> None:
    metadata = Metadata()
    newest = news[0]
    for leader, epoch in news:
        metadata.update(response_of({0: (leader, epoch)}), NEWEST, ORDERS)
        newest = (leader, epoch) if epoch >= newest[1] else newest
        assert led(metadata) == newest


def test_an_old_brokers_epochs_are_not_believed() -> None:
    metadata = Metadata()
    metadata.update(response_of({0: (1, 7)}), RELIABLE_EPOCHS_FROM - 1, ORDERS)
    assert led(metadata) == (1, -1)
    metadata.update(response_of({0: (2, 3)}), RELIABLE_EPOCHS_FROM - 1, ORDERS)
    assert led(metadata) == (2, -1), "without epochs the last word stands"


def test_another_topic_by_the_same_name_begins_anew() -> None:
    metadata = Metadata()
    metadata.update(response_of({0: (1, 9), 1: (1, 9)}), NEWEST, ORDERS)
    assert metadata.topic_name(FIRST) == "orders"
    assert metadata.update(response_of({0: (2, 0)}, SECOND), NEWEST, ORDERS) == ORDERS
    assert led(metadata) == (2, 0)
    assert metadata.partition("orders", 1) is None
    assert (metadata.topic_name(FIRST), metadata.topic_name(SECOND)) == (None, "orders")


def test_a_version_without_ids_makes_no_other_topic() -> None:
    metadata = Metadata()
    metadata.update(response_of({0: (1, 9)}), NEWEST, ORDERS)
    metadata.update(response_of({0: (2, 8)}, bytes(16)), TOPIC_IDS_FROM - 1, ORDERS)
    assert led(metadata) == (1, 9)


def test_a_leader_that_is_missing_for_a_moment_takes_nothing_else_along() -> None:
    metadata = Metadata()
    metadata.update(response_of({0: (1, 9)}), NEWEST, ORDERS)
    metadata.update(response_of({}, error=ErrorCode.LEADER_NOT_AVAILABLE), NEWEST, ORDERS)
    assert led(metadata) == (1, 9)


def test_what_was_asked_about_and_not_told_is_gone() -> None:
    metadata = Metadata()
    metadata.update(response_of({0: (1, 9)}), NEWEST, ORDERS)
    nothing = MetadataResponse(brokers=response_of({}).brokers)
    assert metadata.update(nothing, NEWEST, frozenset({"others"})) == frozenset()
    assert led(metadata) == (1, 9)
    assert metadata.update(nothing, NEWEST, None) == ORDERS
    assert metadata.topics == {}


@pytest.mark.parametrize(
    ("leader", "epoch", "endpoints", "expected"),
    [
        (2, 10, (), (2, 10)),
        (2, 9, (), (1, 9)),  # nothing new
        (2, 8, (), (1, 9)),  # older
        (3, 10, (), (1, 9)),  # nobody knows where that broker is
        (3, 10, (Broker(3, "broker3", 9092),), (3, 10)),
    ],
)
def test_a_hint_is_taken_if_it_is_newer_and_leads_somewhere(
    leader: int, epoch: int, endpoints: tuple[Broker, ...], expected: tuple[int, int]
) -> None:
    metadata = Metadata()
    metadata.update(response_of({0: (1, 9), 1: (1, 4)}), NEWEST, ORDERS)
    news = UpdateLeader("orders", 0, leader, epoch, endpoints)
    assert metadata.update_leader(news) == (expected != (1, 9))
    assert led(metadata) == expected
    assert led(metadata, 1) == (1, 4)

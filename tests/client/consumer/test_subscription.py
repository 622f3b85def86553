"""Subscriptions: one way at a time, replaced by the same way, refused by another."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from kafkawire.client.consumer import TopicPartition
from kafkawire.client.consumer.subscription import LEGAL, Mode, Subscription
from kafkawire.client.network.cluster import Broker, Partition, Topic
from kafkawire.errors import LocalProtocolError

DO: dict[Mode, Callable[[Subscription], None]] = {
    Mode.NONE: Subscription.unsubscribe,
    Mode.NAMES: lambda it: it.subscribe(["orders"]),
    Mode.PATTERN: lambda it: it.subscribe(re.compile("o.*")),
    Mode.ASSIGNED: lambda it: it.assign([TopicPartition("orders", 1)]),
}


@dataclass
class View:
    """A cluster as it might be known."""

    topics: dict[str, Topic] = field(default_factory=dict)
    brokers: dict[int, Broker] = field(default_factory=dict)
    controller_id: int = -1
    cluster_id: str | None = None
    last_error: str = ""

    def partition(self, topic: str, index: int) -> Partition | None:
        return self.topics[topic].partitions.get(index) if topic in self.topics else None

    def topic_name(self, topic_id: bytes) -> str | None:
        return next((each.name for each in self.topics.values() if each.topic_id == topic_id), None)


@pytest.mark.parametrize("after", Mode)
@pytest.mark.parametrize("before", Mode)
def test_every_pair_of_modes(before: Mode, after: Mode) -> None:
    it = Subscription()
    DO[before](it)
    if after in LEGAL[before]:
        DO[after](it)
        assert it.mode is after
        return
    kept = it.mode, it.topics, it.pattern, it.assigned
    with pytest.raises(LocalProtocolError, match="unsubscribe"):
        DO[after](it)
    assert (it.mode, it.topics, it.pattern, it.assigned) == kept


def test_the_same_way_replaces() -> None:
    it = Subscription()
    it.subscribe(["a", "b"])
    it.subscribe(["c"])
    assert it.topics == {"c"}
    it.unsubscribe()
    it.assign([TopicPartition("a", 0), TopicPartition("a", 1)])
    it.assign([TopicPartition("b", 0)])
    assert it.assigned == {TopicPartition("b", 0)}
    assert it.tracked == frozenset({"b"})


def test_nothing_is_unsubscribing() -> None:
    it = Subscription()
    it.subscribe(["a"])
    it.subscribe([])
    assert (it.mode, it.topics) == (Mode.NONE, frozenset())
    it.assign([TopicPartition("a", 0)])
    it.assign([])
    assert it.mode is Mode.NONE


def test_a_name_is_no_list() -> None:
    with pytest.raises(LocalProtocolError, match="list"):
        Subscription().subscribe("orders")


def test_a_pattern_matches_whole_names_but_never_kafkas_own() -> None:
    it = Subscription()
    it.subscribe(re.compile("o.*s|_.*"))
    topics = [Topic("orders"), Topic("orders-2"), Topic("__consumer_offsets", is_internal=True)]
    view = View({each.name: each for each in topics})
    assert it.tracked is None
    assert it.match(view)
    assert it.topics == {"orders"}
    assert not it.match(view)
    view.topics["ovens"] = Topic("ovens")
    assert it.match(view)
    assert it.topics == {"orders", "ovens"}
    view.topics["orders"] = Topic("orders", error=29)
    assert it.match(view)
    assert it.topics == {"ovens"}

"""Subscriptions: one way at a time, replaced by the same way, refused by another."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from kafkawire.client.cluster import Broker, Partition, Topic
from kafkawire.client.consumer import SubscriptionPattern, TopicPartition
from kafkawire.client.consumer.subscription import LEGAL, Mode, Subscription
from kafkawire.errors import LocalProtocolError

DO: dict[Mode, Callable[[Subscription], None]] = {
    Mode.NONE: Subscription.unsubscribe,
    Mode.NAMES: lambda subscription: subscription.subscribe(["orders"]),
    Mode.PATTERN: lambda subscription: subscription.subscribe(re.compile("o.*")),
    Mode.BROKER_PATTERN: lambda subscription: subscription.subscribe(SubscriptionPattern("o.*")),
    Mode.ASSIGNED: lambda subscription: subscription.assign([TopicPartition("orders", 1)]),
}


@dataclass
class View:
    """A cluster as subscription might be known."""

    topics: dict[str, Topic] = field(default_factory=dict)
    brokers: dict[int, Broker] = field(default_factory=dict)
    controller_id: int = -1
    cluster_id: str | None = None
    finalized_features: dict[str, int] = field(default_factory=dict)
    last_error: str = ""

    def partition(self, topic: str, index: int) -> Partition | None:
        return self.topics[topic].partitions.get(index) if topic in self.topics else None

    def topic_name(self, topic_id: bytes) -> str | None:
        return next((each.name for each in self.topics.values() if each.topic_id == topic_id), None)


@pytest.mark.parametrize("after", Mode)
@pytest.mark.parametrize("before", Mode)
def test_every_pair_of_modes(before: Mode, after: Mode) -> None:
    subscription = Subscription()
    DO[before](subscription)
    if after in LEGAL[before]:
        DO[after](subscription)
        assert subscription.mode is after
        return
    before_call = (
        subscription.mode,
        subscription.topics,
        subscription.pattern,
        subscription.assigned,
    )
    with pytest.raises(LocalProtocolError, match="unsubscribe"):
        DO[after](subscription)
    assert (
        subscription.mode,
        subscription.topics,
        subscription.pattern,
        subscription.assigned,
    ) == before_call


def test_the_same_way_replaces() -> None:
    subscription = Subscription()
    subscription.subscribe(["a", "b"])
    subscription.subscribe(["c"])
    assert subscription.topics == {"c"}
    subscription.unsubscribe()
    subscription.assign([TopicPartition("a", 0), TopicPartition("a", 1)])
    subscription.assign([TopicPartition("b", 0)])
    assert subscription.assigned == {TopicPartition("b", 0)}
    assert subscription.tracked == frozenset({"b"})


def test_nothing_is_unsubscribing() -> None:
    subscription = Subscription()
    subscription.subscribe(["a"])
    subscription.subscribe([])
    assert (subscription.mode, subscription.topics) == (Mode.NONE, frozenset())
    subscription.assign([TopicPartition("a", 0)])
    subscription.assign([])
    assert subscription.mode is Mode.NONE


def test_topics_must_be_a_list() -> None:
    with pytest.raises(LocalProtocolError, match="list"):
        Subscription().subscribe("orders")


def test_a_pattern_matches_whole_names_but_no_internal_topics() -> None:
    subscription = Subscription()
    subscription.subscribe(re.compile("o.*s|_.*"))
    topics = [Topic("orders"), Topic("orders-2"), Topic("__consumer_offsets", is_internal=True)]
    view = View({each.name: each for each in topics})
    assert subscription.tracked is None
    assert subscription.match(view)
    assert subscription.topics == {"orders"}
    assert not subscription.match(view)
    view.topics["ovens"] = Topic("ovens")
    assert subscription.match(view)
    assert subscription.topics == {"orders", "ovens"}
    view.topics["orders"] = Topic("orders", error=29)
    assert subscription.match(view)
    assert subscription.topics == {"ovens"}

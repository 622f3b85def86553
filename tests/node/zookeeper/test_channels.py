"""The requests of one broker to another: their order, lost connections, timeouts, limits."""

from __future__ import annotations

import pytest

from kafkawire.broker import Fault
from kafkawire.broker.apis import between_brokers
from kafkawire.messages.leader_and_isr_request import LeaderAndIsrRequest
from kafkawire.messages.update_metadata_request import UpdateMetadataRequest
from kafkawire.node.zookeeper import controller as module

from .links import Links, Sent


def correlation_ids(sent: list[Sent], node_id: int) -> list[int]:
    return [each.correlation_id for each in sent if each.node_id == node_id]


def topics_of(sent: list[Sent], node_id: int) -> list[str]:
    """Return the topics of LeaderAndIsr requests to a broker, in order."""
    return [
        topic.topic_name
        for each in sent
        if each.node_id == node_id and isinstance(each.body, LeaderAndIsrRequest)
        for topic in each.body.topic_states
    ]


@pytest.mark.parametrize("release", ["2.8", "4.3", "all"])
def test_a_newer_release_has_no_zookeeper(release: str) -> None:
    with pytest.raises(ValueError, match="no ZooKeeper in release"):
        between_brokers(release)


def test_one_broker_is_its_own_controller() -> None:
    links = Links(brokers=1)
    links.create("t", [[1]])
    sent = links.take()
    assert [type(each.body) for each in sent] == [
        UpdateMetadataRequest,
        LeaderAndIsrRequest,
        UpdateMetadataRequest,
    ]
    links.shut_down(1)
    assert links.cluster.registry.controller_id is None
    links.start(1)
    assert links.cluster.registry.controller_id == 1
    assert set(topics_of(links.take(), 1)) == {"t"}


def test_requests_that_a_lost_connection_took_are_sent_again_in_order() -> None:
    links = Links()
    last = max(correlation_ids(links.take(), 2))
    links.cluster.faults.append(Fault("LeaderAndIsr", nth=1, action="disconnect"))
    links.create("a", [[2]])
    links.create("b", [[2]])
    assert topics_of(links.take(), 2) == []
    links.advance(0.09)
    assert topics_of(links.take(), 2) == []
    links.advance(0.02)
    sent = links.take()
    assert topics_of(sent, 2) == ["a", "b"]
    numbers = [*range(last + 2, last + 6)]
    assert correlation_ids(sent, 2) == numbers, "a new one for the request sent again"


def test_a_broker_that_is_unreachable_is_tried_again() -> None:
    links = Links()
    links.stop(2)
    links.unreachable.add(2)
    links.start(2)
    links.take()
    links.create("a", [[2]])
    links.advance(1.0)
    assert topics_of(links.take(), 2) == []
    links.unreachable.clear()
    links.advance(0.2)
    assert topics_of(links.take(), 2) == ["a"]


def test_a_response_that_does_not_come_in_time_ends_the_connection() -> None:
    links = Links(settings={"controller.socket.timeout.ms": "2000"})
    links.take()
    links.cluster.faults.append(Fault("LeaderAndIsr", nth=1, action="drop"))
    links.create("a", [[2]])
    links.take()
    links.advance(1.9)
    assert links.take() == []
    links.advance(0.3)
    assert topics_of(links.take(), 2) == ["a"]


@pytest.mark.parametrize("at", range(12))
def test_a_corrupt_response_is_not_taken_for_another(at: int) -> None:
    links = Links(settings={"controller.socket.timeout.ms": "2000"})
    links.take()
    links.cluster.faults.append(Fault("UpdateMetadata", nth=1, action="corrupt", at=at))
    links.create("a", [[1], [2], [3]])
    links.create("b", [[1], [2], [3]])
    links.advance(10.0)
    assert {node: topics_of(links.processed(), node)[-1:] for node in (1, 2, 3)} == {
        1: ["b"],
        2: ["b"],
        3: ["b"],
    }


@pytest.mark.parametrize("at", range(4, 8))
def test_a_response_with_another_correlation_id_ends_the_connection(at: int) -> None:
    links = Links(brokers=1)
    links.take()
    links.cluster.faults.append(Fault("LeaderAndIsr", nth=1, action="corrupt", at=at))
    links.create("a", [[1]])
    links.advance(0.2)
    assert topics_of(links.take(), 1) == ["a", "a"], "it was sent again"


def test_a_broker_that_does_not_respond_costs_bounded_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_QUEUED", 8)
    links = Links()
    links.unreachable.add(2)
    links.stop(2)
    links.start(2)
    for number in range(20):
        links.create(f"t{number}", [[2]])
    links.take()
    links.unreachable.clear()
    links.advance(0.2)
    sent = links.take()
    assert len([each for each in sent if each.node_id == 2]) <= 10
    assert sorted(set(topics_of(sent, 2))) == sorted(f"t{number}" for number in range(20))

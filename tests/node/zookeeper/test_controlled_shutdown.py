"""A broker that stops in order: its attempts, and what remains with it."""

from __future__ import annotations

import pytest

from kafkawire.broker import Fault
from kafkawire.messages.controlled_shutdown_request import ControlledShutdownRequest
from kafkawire.node.local_cluster import ShutDown

from .links import Links


def attempts(links: Links) -> list[tuple[str | None, int]]:
    """Return the ControlledShutdowns processed: sender and receiver."""
    return [
        (each.client_id, each.node_id)
        for each in links.take()
        if isinstance(each.body, ControlledShutdownRequest)
    ]


def is_up(links: Links, node_id: int) -> bool:
    return node_id in links.cluster.running


def test_leaders_move_before_the_broker_stops() -> None:
    links = Links()
    links.create("t", [[2, 3], [3, 2]])
    links.handle(ShutDown(2))
    states = links.partitions("t")
    assert [(each.leader, each.isr, each.leader_epoch) for each in states] == [
        (3, (3,), 1),
        (3, (3,), 1),
    ]
    links.shut_down(2)
    links.start(2)
    states = links.partitions("t")
    assert [(each.leader, sorted(each.isr)) for each in states] == [(3, [2, 3]), (3, [2, 3])]


def test_a_partition_without_another_replica_does_not_remain() -> None:
    links = Links()
    links.create("t", [[2]])
    links.shut_down(2)
    assert attempts(links) == [("2", 1)]
    assert links.cluster.registry.partitions["t", 0].leader_id == -1


def test_a_partition_whose_others_are_out_of_sync_remains() -> None:
    links = Links()
    links.create("t", [[2, 3]])
    links.stop(3)
    links.handle(ShutDown(2))
    assert (is_up(links, 2), attempts(links)) == (True, [("2", 1)])
    links.advance(4.9)
    assert (is_up(links, 2), attempts(links)) == (True, [])
    links.advance(0.2)
    assert attempts(links) == [("2", 1)]
    links.advance(5.0)
    assert (is_up(links, 2), attempts(links)) == (True, [("2", 1)])
    assert links.partitions("t")[0].leader == 2
    links.advance(6.0)
    assert not is_up(links, 2), "it stops after the third attempt all the same"


def test_a_partition_moves_when_its_other_replica_is_back() -> None:
    links = Links()
    links.create("t", [[2, 3]])
    links.stop(3)
    links.handle(ShutDown(2))
    links.start(3)
    links.advance(5.0)
    assert not is_up(links, 2)
    assert links.partitions("t")[0].leader == 3


def test_it_may_be_disabled() -> None:
    links = Links(settings={"controlled.shutdown.enable": "false"})
    links.create("t", [[2, 3]])
    links.shut_down(2)
    assert attempts(links) == []
    assert links.cluster.registry.partitions["t", 0].leader_id == 3


@pytest.mark.parametrize("action", ["drop", "disconnect"])
def test_a_controller_that_does_not_respond_is_not_waited_for(action: str) -> None:
    links = Links(settings={"controller.socket.timeout.ms": "1000"})
    links.cluster.faults.append(Fault("ControlledShutdown", action=action))
    links.handle(ShutDown(2))
    links.advance(0.5)
    assert is_up(links, 2)
    links.advance(3.1)
    assert not is_up(links, 2)


def test_the_next_attempt_is_at_the_controller_of_then() -> None:
    links = Links(settings={"controller.socket.timeout.ms": "3000"})
    links.cluster.faults.append(Fault("ControlledShutdown", nth=1, action="drop"))
    links.handle(ShutDown(3))
    links.stop(1)
    links.take()
    links.advance(3.1)
    assert (is_up(links, 3), attempts(links)) == (False, [("3", 2)])

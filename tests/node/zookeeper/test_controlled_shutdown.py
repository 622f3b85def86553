"""A broker that stops in order: its attempts, and what remains with it."""

from __future__ import annotations

import pytest

from kafkawire.broker import Fault
from kafkawire.messages.controlled_shutdown_request import ControlledShutdownRequest
from kafkawire.messages.controlled_shutdown_response import ControlledShutdownResponse
from kafkawire.node.local_cluster import Killed, NodeStarted, ShutDown

from .links import Links
from .mutants import MUTANTS


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


def remaining(links: Links) -> list[list[tuple[str, int]]]:
    """Return the partitions that remain, by attempt."""
    responses = [
        each.response
        for each in links.reports
        if isinstance(each.response, ControlledShutdownResponse)
    ]
    links.reports.clear()
    assert not any(each.error_code for each in responses)
    return [
        [(each.topic_name, each.partition_index) for each in response.remaining_partitions]
        for response in responses
    ]


def others_move_at_once() -> None:
    """Partition 0 waits for its other replica, 1 and 2 move, `u` has no other replica."""
    links = Links()
    links.create("t", [[2, 3], [2, 1], [1, 2]])
    links.create("u", [[2]])
    links.stop(3)
    links.reports.clear()
    links.handle(ShutDown(2))

    def states() -> list[tuple[int, tuple[int, ...]]]:
        partitions = links.partitions("t") + links.partitions("u")
        return [(each.leader, each.isr) for each in partitions]

    moved = [(2, (2,)), (1, (1,)), (1, (1,)), (2, (2,))]
    assert states() == moved
    assert remaining(links) == [[("t", 0)]]
    for state in links.cluster.registry.of_topic("t")[1:]:
        assert links.control(1).leader_epochs[state.key] == state.leader_epoch
    links.advance(5.1)
    assert (states(), remaining(links)) == (moved, [[("t", 0)]])
    links.handle(NodeStarted(3))
    links.advance(4.0)
    assert states()[0] == (2, (2, 3)), "it leads until the next attempt"
    assert states()[1:] == moved[1:], "its replicas do not enter ISRs again"
    links.until(lambda: not is_up(links, 2))
    assert remaining(links) == [[]]
    links.until(lambda: 2 not in links.cluster.registry.alive)
    assert states() == [(3, (3,)), (1, (1,)), (1, (1,)), (-1, (2,))]
    written = [each.leader_id for each in links.cluster.registry.partitions.values()]
    assert written == [3, 1, 1, -1]


def test_other_leaders_move_at_once_and_the_rest_remains() -> None:
    others_move_at_once()


def test_a_leader_that_stays_serves_until_it_stops() -> None:
    """Its broker is not fenced between attempts, whatever becomes of other brokers."""
    links = Links()
    links.create("t", [[2, 3], [2, 3]])
    links.stop(3)
    links.handle(ShutDown(2))
    for _ in range(3):
        links.advance(1.0)
        assert is_up(links, 2)
        assert [(each.leader, each.isr) for each in links.partitions("t")] == [(2, (2,))] * 2
    links.start(3)
    links.handle(Killed(3))
    links.until(lambda: 3 not in links.cluster.registry.alive)
    assert [each.leader for each in links.partitions("t")] == [2, 2]
    links.advance(15.0)
    assert not is_up(links, 2)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_rule_that_is_removed_is_missed(name: str) -> None:
    with MUTANTS[name](), pytest.raises(AssertionError):
        others_move_at_once()

"""Connections that wait until they are accepted: limits of a broker and of its listeners."""

from __future__ import annotations

from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.protocol import ErrorCode as E
from kafkawire.raft import Endpoint

from .front_harness import BROKER, NodeClient, NodeHarness
from .test_front_configs import BROKER as RESOURCE
from .test_front_configs import altered

BETWEEN = Endpoint("BETWEEN", "node", 9094)
"""The listener between brokers."""
MAX = "max.connections"
RATE = "max.connection.creation.rate"
IN_WINDOWS = 10
"""Connections at once that are one in a second, over the windows."""
LEAST_RECENTLY_USED = f"{MAX}: the least recently used connection"


def two_listeners(**settings: str) -> NodeHarness:
    """Start a node; underscores in settings stand for dots."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return NodeHarness(named, listeners=(BETWEEN, BROKER))


def is_served(client: NodeClient) -> bool:
    """Send a request; return whether there is a response at once. Others come later."""
    client.send(MetadataRequest(topics=[]), 9)
    return is_answered(client)


def is_answered(client: NodeClient) -> bool:
    return isinstance(client.response(), MetadataResponse)


def test_a_connection_waits_until_another_one_closes() -> None:
    harness = NodeHarness({MAX: "2"})
    clients = first, second, third, fourth = [harness.client() for _ in range(4)]
    assert [is_served(each) for each in clients] == [True, True, False, False]
    harness.advance(60.0)
    assert not is_answered(third)
    first.disconnect()
    harness.advance(0.0)
    assert is_answered(third)
    assert not is_answered(fourth), "one slot, and the first of those that wait has it"
    second.disconnect()
    harness.advance(0.0)
    assert is_answered(fourth)
    assert [each.closed for each in (second, third, fourth)] == [None] * 3


def test_a_connection_that_the_broker_closes_leaves_its_slot() -> None:
    harness = NodeHarness({MAX: "1", "connections.max.idle.ms": "5000"})
    first, second = harness.client(), harness.client()
    assert not is_served(second)
    harness.advance(6.0)
    assert first.closed is not None
    assert is_answered(second)
    assert second.closed is None, "it is idle since it was accepted"


def test_those_that_end_while_they_wait_take_no_slot() -> None:
    harness = NodeHarness({MAX: "1"})
    first, second, third = (harness.client() for _ in range(3))
    second.disconnect()
    assert not is_served(third)
    first.disconnect()
    harness.advance(0.0)
    assert is_answered(third)


def test_the_limit_of_an_address_closes_those_that_have_a_slot() -> None:
    harness = NodeHarness({MAX: "2", "max.connections.per.ip": "1"})
    first, second = harness.client(), harness.client()
    assert is_served(first)
    assert second.closed == "too many connections from 127.0.0.1: max.connections.per.ip is 1"


def test_a_higher_limit_lets_those_that_wait_in() -> None:
    harness = NodeHarness({MAX: "1"})
    operator, other = harness.client(), harness.client()
    assert not is_served(other)
    assert altered(harness, (RESOURCE, "", MAX, "20"), client=operator) == [E.NONE]
    assert is_answered(other)


def test_a_lower_limit_closes_the_least_recently_used() -> None:
    harness = NodeHarness()
    clients = [harness.client() for _ in range(3)]
    for each in reversed(clients):
        harness.advance(1.0)
        assert is_served(each)
    assert altered(harness, (RESOURCE, "", MAX, "2")) == [E.NONE]
    assert [each.closed for each in clients] == [None, LEAST_RECENTLY_USED, LEAST_RECENTLY_USED]


def test_the_listener_between_brokers_does_not_wait_for_others() -> None:
    harness = two_listeners(max_connections="2")
    first, second = harness.client(), harness.client()
    harness.advance(1.0)
    assert is_served(first)
    node = harness.client(listener=BETWEEN.name)
    assert is_served(node)
    assert (first.closed, second.closed) == (None, LEAST_RECENTLY_USED)
    second.disconnect()
    nodes = [harness.client(listener=BETWEEN.name) for _ in range(3)]
    assert all(map(is_served, nodes))
    assert first.closed == LEAST_RECENTLY_USED
    assert not is_served(harness.client()), "more are open than may be"


def test_a_listener_has_its_own_limit() -> None:
    harness = two_listeners(listener_name_between_max_connections="1", max_connections="3")
    nodes = [harness.client(listener=BETWEEN.name) for _ in range(2)]
    clients = [harness.client() for _ in range(3)]
    assert [is_served(each) for each in (*nodes, *clients)] == [True, False, True, True, False]
    nodes[0].disconnect()
    harness.advance(0.0)
    assert is_answered(nodes[1])
    assert not is_answered(clients[2]), "the slot of the one is that of the other"


# -- rates


def test_connections_beyond_the_rate_are_accepted_later() -> None:
    harness = NodeHarness({RATE: "1"})
    clients = [harness.client() for _ in range(IN_WINDOWS)]
    first, second = harness.client(), harness.client()
    assert all(map(is_served, clients))
    assert [is_served(each) for each in (first, second)] == [False, False]
    harness.advance(0.9)
    assert not is_answered(first)
    harness.advance(0.2)
    assert [is_answered(each) for each in (first, second)] == [True, False], "a window at most"
    harness.advance(1.0)
    assert is_answered(second), "one after the other"
    harness.advance(30.0)
    assert is_served(harness.client())


def test_a_delayed_connection_needs_a_slot_as_well() -> None:
    harness = NodeHarness({RATE: "1", MAX: str(IN_WINDOWS)})
    clients = [harness.client() for _ in range(IN_WINDOWS)]
    delayed = harness.client()
    assert not is_served(delayed)
    clients[0].disconnect()
    harness.advance(0.5)
    assert not is_answered(delayed), "a slot is not enough"
    clients.append(harness.client())
    harness.advance(0.6)
    assert is_answered(delayed)
    assert not is_served(clients[-1])
    harness.advance(5.0)
    assert not is_answered(clients[-1]), "time is not enough"
    clients[1].disconnect()
    harness.advance(0.0)
    assert is_answered(clients[-1])


def test_a_listener_has_its_own_rate() -> None:
    harness = two_listeners(listener_name_plaintext_max_connection_creation_rate="1")
    nodes = [harness.client(listener=BETWEEN.name) for _ in range(2 * IN_WINDOWS)]
    assert all(map(is_served, nodes))
    clients = [harness.client() for _ in range(IN_WINDOWS + 1)]
    assert [is_served(each) for each in clients] == [True] * IN_WINDOWS + [False]


def test_the_rate_of_the_broker_is_not_that_of_the_listener_between_brokers() -> None:
    harness = two_listeners(max_connection_creation_rate="1")
    nodes = [harness.client(listener=BETWEEN.name) for _ in range(2 * IN_WINDOWS)]
    assert all(map(is_served, nodes))
    clients = [harness.client() for _ in range(IN_WINDOWS + 1)]
    assert [is_served(each) for each in clients] == [True] * IN_WINDOWS + [False]


def test_the_rate_of_the_broker_is_that_of_controllers_as_well() -> None:
    harness = NodeHarness({RATE: "1"})
    clients = [harness.client(listener="CONTROLLER") for _ in range(IN_WINDOWS - 1)]
    clients += harness.client(), harness.client()
    for each in clients:
        each.send(ApiVersionsRequest(), 0)
    assert [bool(each.received) for each in clients] == [True] * IN_WINDOWS + [False]


def test_a_rate_of_0_delays_each_by_a_window() -> None:
    harness = NodeHarness({RATE: "0"})
    client = harness.client()
    assert not is_served(client)
    harness.advance(1.0)
    assert is_answered(client)

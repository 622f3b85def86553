"""The network: who gets a request; and each request ends once, whatever happens on the wire."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from random import Random

import pytest

from kafkawire.broker import Action, Fault
from kafkawire.client.client import Client
from kafkawire.client.cluster import Broker
from kafkawire.client.config import Setting
from kafkawire.client.network.backoff import Backoff
from kafkawire.client.network.broker_connection import (
    BrokerConnection,
    BrokerConnectionKey,
    Purpose,
    QueuedRequest,
    Randomness,
)
from kafkawire.client.network.broker_connections import least_loaded
from kafkawire.client.network.connection import Connection
from kafkawire.client.network.connection_states import ConnectionClosed
from kafkawire.client.network.negotiated_versions import Range, Versions
from kafkawire.client.network.network import CloseNetwork, Network, NetworkEffect
from kafkawire.client.network.transport import (
    BytesReceived,
    Close,
    Connect,
    ConnectionLost,
    ConnectionMade,
)
from kafkawire.client.requests import (
    CONTROLLER,
    LEAST_LOADED,
    ClusterFailed,
    Coordinator,
    CoordinatorKind,
    Destination,
    ForgetCoordinator,
    MetadataChanged,
    NoResponse,
    Reason,
    RequestMetadataUpdate,
    ResponseReceived,
    Same,
    SendRequest,
    TrackTopics,
)
from kafkawire.messages.api_key import ApiKey
from kafkawire.messages.describe_groups_request import DescribeGroupsRequest
from kafkawire.messages.heartbeat_request import HeartbeatRequest
from kafkawire.messages.heartbeat_response import HeartbeatResponse
from kafkawire.messages.list_groups_request import ListGroupsRequest
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.protocol.error_code import ErrorCode
from tests.fuzzing import replayable

from .clients import network, settings
from .peers import frames, respond, versions
from .seeds import chunk
from .simulation import NetworkConditions, Simulation
from .test_connection import TABLE

GROUP = Coordinator(CoordinatorKind.GROUP, "g")


class Owner:
    """A machine that passes its user's Asks on, and keeps what comes back."""

    def __init__(self) -> None:
        self.received: list[object] = []

    def handle(self, event: object, now: float) -> Sequence[object]:  # noqa: ARG002
        if isinstance(event, SendRequest | TrackTopics | RequestMetadataUpdate | ForgetCoordinator):
            return [event]
        self.received.append(event)
        return []

    def next_deadline(self) -> float | None:
        return None

    def advance(self, now: float) -> Sequence[object]:  # noqa: ARG002
        return []

    @property
    def ends(self) -> list[ResponseReceived | NoResponse]:
        return [each for each in self.received if isinstance(each, ResponseReceived | NoResponse)]


NEVER = 1 << 30
"""The number of a request that is never reached."""


def request_for(key: object, to: Destination, timeout_s: float = 5.0) -> SendRequest:
    """Ask something that any broker, a certain one or a coordinator can answer."""
    if isinstance(to, Coordinator):
        group = DescribeGroupsRequest(groups=[to.name])
        return SendRequest("o", str(key), to, ApiKey.DESCRIBE_GROUPS, Same(group, 0, 5), timeout_s)
    return SendRequest(
        "o", str(key), to, ApiKey.LIST_GROUPS, Same(ListGroupsRequest(), 0, 3), timeout_s
    )


def lived_in(
    seed: int, conditions: NetworkConditions | None = None, brokers: int = 3
) -> tuple[Simulation, Owner]:
    """A simulation with one client that asks."""
    simulation = Simulation(seed, brokers=brokers, conditions=conditions)
    owner = Owner()
    client = Client(network(Random(seed), simulation.bootstrap), {"o": owner})
    simulation.add("c", client)
    return simulation, owner


def response_to(owner: Owner, key: object) -> ResponseReceived:
    (found,) = [each for each in owner.ends if each.request.key == str(key)]
    assert isinstance(found, ResponseReceived), found
    return found


# Who gets it.


def line(
    node: int,
    in_flight: int | None,
    *,
    failures: int = 0,
    backoff: Backoff = Backoff(1.0, 1.0),  # noqa: B008 - a value
) -> BrokerConnection:
    """A line with that many requests in flight, None for one without a connection."""
    made = BrokerConnection(
        BrokerConnectionKey(node, Purpose.DATA),
        Broker(node, "h", 1),
        settings().connection,
        backoff,
        100.0,
        Randomness(lambda: 0.5, lambda: "n"),
    )
    if in_flight is None:
        if failures:
            list(made.connect(0.0))
            list(made.handle(ConnectionLost(1, "refused"), 0.0))
        return made
    list(made.connect(0.0))
    connection = made.connection
    assert connection is not None
    (request,) = frames(list(made.handle(ConnectionMade(1), 0.0)))
    list(made.handle(BytesReceived(1, respond(request, versions(TABLE))), 0.0))
    for key in range(in_flight):
        body = Same(MetadataRequest(), 0, 0)
        connection.versions = Versions({ApiKey.METADATA: Range(0, 0)})
        made.put(QueuedRequest(SendRequest("o", key, node, ApiKey.METADATA, body, 9.0), 9.0))
        list(made.pump(0.0))
    assert len(connection.in_flight) == in_flight
    return made


def open_line(made: BrokerConnection, now: float) -> Connection:
    """Connect a line; of everything it asks the broker has Heartbeat."""
    list(made.connect(now))
    connection = made.connection
    assert connection is not None
    (request,) = frames(list(made.handle(ConnectionMade(connection.number), now)))
    opened = BytesReceived(connection.number, respond(request, versions(TABLE)))
    list(made.handle(opened, now))
    return connection


def heartbeat(key: object) -> QueuedRequest:
    body = Same(HeartbeatRequest(), 0, 4)
    return QueuedRequest(SendRequest("o", str(key), 1, ApiKey.HEARTBEAT, body, 900.0), 900.0)


def test_a_broker_that_throttles_is_left_alone_for_so_long() -> None:
    """KIP-219: it has response_to, and will not read before that."""
    made = line(1, None)
    connection = open_line(made, 0.0)
    made.put(heartbeat("a"))
    (request,) = frames(list(made.pump(0.0)))
    response = HeartbeatResponse(throttle_time_ms=2_000)
    list(made.handle(BytesReceived(connection.number, respond(request, response)), 1.0))
    made.put(heartbeat("b"))
    assert not made.ready(2.9)
    assert list(made.pump(2.9)) == []
    assert made.next_deadline() == 3.0
    assert len(frames(list(made.pump(3.0)))) == 1


def test_a_connection_that_is_not_used_is_ended_before_the_broker_does_it() -> None:
    made = line(1, None)
    connection = open_line(made, 0.0)
    made.put(heartbeat("a"))
    (request,) = frames(list(made.pump(50.0)))
    list(made.advance(149.0))
    assert made.connection is connection, "an answer is still to come"
    list(made.handle(BytesReceived(connection.number, respond(request, HeartbeatResponse())), 60.0))
    assert made.next_deadline() == 160.0
    list(made.advance(159.9))
    assert made.connection is connection
    assert Close(connection.number) in list(made.advance(160.0))
    assert made.connection is None
    assert made.may_connect(160.0), "that was no failure"


def test_the_wait_before_connecting_again_grows_until_it_succeeds() -> None:
    made, now, waits = line(1, None, backoff=Backoff(1.0, 4.0)), 0.0, list[float]()
    for fails in (True, True, True, True, False, True, True):
        if fails:
            list(made.connect(now))
        else:
            open_line(made, now)
        connection = made.connection
        assert connection is not None
        list(made.handle(ConnectionLost(connection.number, "gone"), now))
        assert not made.may_connect(made.not_before - 0.01)
        waits.append(made.not_before - now)
        now = made.not_before
    assert waits == pytest.approx([1.0, 2.0, 4.0, 4.0, 1.0, 2.0, 4.0])


@pytest.mark.parametrize("start", [0.0, 0.3, 0.6, 0.99])
def test_the_least_loaded_node(start: float) -> None:
    """The rule of the issue, one clause after the other, from every start."""
    idle, one, two = line(1, 0), line(2, 1), line(3, 2)
    unconnected, failed = line(4, None), line(5, None, failures=1)
    assert failed.not_before > 0.5

    def chosen(*lines: BrokerConnection) -> BrokerConnection | None:
        return least_loaded(lines, 0.5, lambda: start)

    assert chosen(two, one, idle, unconnected, failed) is idle
    assert chosen(two, one, unconnected, failed) is one
    assert chosen(two, unconnected, failed) is two
    assert chosen(unconnected, failed) is unconnected
    assert chosen(failed) is None
    assert chosen() is None


def test_equals_are_chosen_evenly_from_the_start_that_is_drawn() -> None:
    lines = [line(node, 0) for node in range(4)]
    random = Random(7)
    seen = Counter(least_loaded(lines, 0.0, random.random) for _ in range(4000))
    assert all(850 < seen[each] < 1150 for each in lines)


def test_bootstrap_then_the_brokers_of_the_cluster() -> None:
    simulation, owner = lived_in(1)
    simulation.send_event("c", request_for("a", LEAST_LOADED))
    simulation.run(lambda: len(owner.ends) == 1)
    simulation.send_event("c", request_for("b", 2))
    simulation.send_event("c", request_for("c", CONTROLLER))
    simulation.send_event("c", request_for("d", GROUP))
    simulation.run(lambda: len(owner.ends) == 4)
    assert response_to(owner, "b").node == 2
    view = simulation._clients["c"].network.view
    assert response_to(owner, "c").node == view.controller_id
    assert {node: (each.host, each.port) for node, each in view.brokers.items()} == {
        node: (f"broker{node}", 9092) for node in (1, 2, 3)
    }


def test_a_node_that_is_not_known_is_said_so_at_once() -> None:
    simulation, owner = lived_in(1)
    simulation.pass_time(1.0)
    simulation.send_event("c", request_for("a", 99))
    (end,) = owner.ends
    assert isinstance(end, NoResponse)
    assert (end.reason, end.retriable) == (Reason.UNKNOWN_NODE, True)


def test_a_bootstrap_address_that_is_dead_is_passed_over() -> None:
    simulation, owner = lived_in(5, brokers=3)
    simulation.stop(1)
    simulation.stop(3)
    simulation.send_event("c", request_for("a", LEAST_LOADED))
    simulation.run(lambda: len(owner.ends) == 1)
    assert isinstance(owner.ends[0], ResponseReceived)


def test_when_all_known_brokers_fail_the_first_addresses_are_tried_again() -> None:
    """KIP-899: all brokers went away, one came back."""
    simulation, owner = lived_in(2)
    simulation.pass_time(1.0)
    for node in (1, 2, 3):
        simulation.stop(node)
    simulation.pass_time(5.0)
    simulation.start(2)
    simulation.send_event("c", request_for("a", LEAST_LOADED))
    simulation.run(lambda: len(owner.ends) == 1)
    assert isinstance(owner.ends[0], ResponseReceived)


def test_one_look_up_for_all_who_wait_and_again_when_it_was_wrong() -> None:
    simulation, owner = lived_in(3)
    simulation.pass_time(1.0)
    look_ups = Fault("FindCoordinator", nth=NEVER)  # counts, and never strikes
    simulation.brokers.faults.append(look_ups)
    for key in range(5):
        simulation.send_event("c", request_for(key, GROUP))
    simulation.run(lambda: len(owner.ends) == 5)
    assert look_ups.seen == 1
    simulation.send_event("c", request_for("later", GROUP))
    simulation.run(lambda: len(owner.ends) == 6)
    assert look_ups.seen == 1, "what is known is not looked up"
    simulation.send_event("c", ForgetCoordinator(GROUP))
    simulation.send_event("c", request_for("again", GROUP))
    simulation.run(lambda: len(owner.ends) == 7)
    assert look_ups.seen == 2
    simulation.stop(response_to(owner, "again").node)
    simulation.pass_time(1.0)
    simulation.send_event("c", request_for("elsewhere", GROUP))
    simulation.run(lambda: len(owner.ends) == 8)
    assert look_ups.seen >= 3, "a coordinator that went is forgotten"
    assert isinstance(owner.ends[-1], ResponseReceived)


def test_a_coordinator_that_is_not_available_is_looked_for_until_it_is() -> None:
    simulation, owner = lived_in(4)
    unavailable = ErrorCode.COORDINATOR_NOT_AVAILABLE
    simulation.brokers.faults.append(
        Fault("FindCoordinator", action=Action.ERROR, error=unavailable)
    )
    simulation.send_event("c", request_for("a", GROUP, timeout_s=60.0))
    simulation.pass_time(3.0)
    assert not owner.ends
    simulation.brokers.faults.clear()
    simulation.run(lambda: len(owner.ends) == 1)
    assert isinstance(owner.ends[0], ResponseReceived)


def test_a_fatal_coordinator_error_is_not_retried() -> None:
    simulation, owner = lived_in(4)
    refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
    simulation.brokers.faults.append(Fault("FindCoordinator", action=Action.ERROR, error=refused))
    simulation.send_event("c", request_for("a", GROUP))
    simulation.run(lambda: len(owner.ends) == 1)
    (end,) = owner.ends
    assert isinstance(end, NoResponse)
    assert (end.reason, end.code, end.retriable) == (Reason.COORDINATOR_ERROR, refused, False)


# Metadata.


def test_new_topics_are_requested_at_once_and_errors_after_a_backoff() -> None:
    simulation, owner = lived_in(6)
    simulation.pass_time(1.0)
    simulation.send_event("c", TrackTopics("o", frozenset({"t"})))
    began = simulation.now
    simulation.run(
        lambda: any(isinstance(each, MetadataChanged) and each.topics for each in owner.received)
    )
    assert simulation.now - began < 0.1
    assert MetadataChanged(frozenset({"t"})) in owner.received


@pytest.mark.parametrize("topics", [frozenset({"t", "u"}), None])
def test_topics_that_are_wanted_while_connecting_are_in_the_first_request(
    topics: frozenset[str] | None,
) -> None:
    simulation, owner = lived_in(6)
    simulation.create("t", [[1]])
    requests = Fault("Metadata", nth=NEVER)
    simulation.brokers.faults.append(requests)
    simulation.send_event("c", TrackTopics("o", frozenset({"t"})))
    simulation.send_event("c", TrackTopics("o", topics))
    simulation.run(lambda: any(isinstance(each, MetadataChanged) for each in owner.received))
    simulation.pass_time(1.0)
    first = next(each for each in owner.received if isinstance(each, MetadataChanged))
    assert first.topics == frozenset(topics or {"t"})
    assert requests.seen == 1


def test_metadata_is_refreshed_by_age() -> None:
    simulation, owner = lived_in(7)
    simulation.pass_time(1.0)
    before = sum(isinstance(each, MetadataChanged) for each in owner.received)
    simulation.pass_time(301.0)
    after = sum(isinstance(each, MetadataChanged) for each in owner.received)
    assert after - before == 1


def test_wishes_while_a_refresh_is_under_way_lead_to_one_more() -> None:
    simulation, _ = lived_in(8)
    simulation.pass_time(1.0)
    refreshes = Fault("Metadata", nth=NEVER)
    simulation.brokers.faults.append(refreshes)
    for _ in range(20):
        simulation.send_event("c", RequestMetadataUpdate())
        simulation.pass_time(0.005)
    simulation.pass_time(2.0)
    assert 2 <= refreshes.seen <= 3


# Each request ends once.


@pytest.mark.fuzz
@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(4))
def test_each_request_ends_once_by_its_deadline(part: int) -> None:
    for seed in chunk(part, 4):
        with replayable(seed):
            storm(seed)


def storm(seed: int) -> None:
    draws = Random(seed)
    conditions = NetworkConditions(
        draws.choice((0.001, 0.05, 0.5)), 0.3, draws.choice((0.0, 0.01, 0.1))
    )
    simulation, owner = lived_in(seed, conditions)
    actions = [Action.DROP, Action.TRUNCATE, Action.CORRUPT, Action.DELAY, Action.DISCONNECT]
    simulation.brokers.faults += [
        Fault(None, probability=0.04, action=action) for action in draws.sample(actions, 3)
    ]
    targets: list[Destination] = [LEAST_LOADED, CONTROLLER, GROUP, 1, 2, 3, 9]
    late: dict[str, float] = {}
    for key in range(draws.choice((3, 30))):
        requested = request_for(key, draws.choice(targets), draws.choice((0.01, 1.0, 5.0)))

        def send(requested: SendRequest = requested) -> None:
            late[str(requested.key)] = simulation.now + requested.timeout_s
            simulation.send_event("c", requested)

        simulation.at(draws.random() * 6, send)
    for _ in range(draws.randrange(4)):
        node, when = draws.choice((1, 2, 3)), draws.random() * 6
        simulation.at(when, partial(simulation.stop, node))
        simulation.at(when + draws.random() * 2, partial(simulation.start, node))
    closes = draws.random() < 0.3
    if closes:
        simulation.at(draws.random() * 6, lambda: simulation.to_network("c", CloseNetwork()))
    simulation.pass_time(12.0)
    assert Counter(str(each.request.key) for each in owner.ends) == Counter(late.keys())
    if closes:
        assert simulation._clients["c"].next_deadline() is None
        ends = [each for each in owner.ends if isinstance(each, NoResponse)]
        assert not any(pipe.open for pipe in simulation._pipes.values()), ends


def test_a_deadline_is_kept_when_nobody_can_be_reached() -> None:
    simulation, owner = lived_in(9)
    for node in (1, 2, 3):
        simulation.stop(node)
    simulation.send_event("c", request_for("a", LEAST_LOADED, 2.0))
    simulation.send_event("c", request_for("b", GROUP, 3.0))
    simulation.pass_time(1.9)
    assert not owner.ends
    simulation.pass_time(0.2)
    assert [each.request.key for each in owner.ends] == ["a"]
    simulation.pass_time(1.0)
    assert [each.request.key for each in owner.ends] == ["a", "b"]
    assert all(
        isinstance(each, NoResponse) and each.reason is Reason.TIMED_OUT for each in owner.ends
    )


def test_a_timeout_reports_why_the_last_connection_closed() -> None:
    """As of a broker that closes on ApiVersions, in whichever version it is requested."""
    made = network(Random(1), [("broker1", 9092)])
    now, requested = 0.0, set()
    ends: list[NoResponse] = []
    effects = made.handle(request_for("a", LEAST_LOADED, 5.0), now)
    while not ends:
        for each in effects:
            if isinstance(each, Connect):
                (request,) = frames(made.handle(ConnectionMade(each.connection), now))
                requested.add(request.api_version)
                made.handle(ConnectionLost(each.connection, "the broker closed"), now)
            elif isinstance(each, NoResponse):
                ends.append(each)
        due = made.next_deadline()
        assert ends or due is not None
        now = now if due is None else max(now, due)
        effects = made.advance(now)
    assert requested == {0, 4}
    [ended] = ends
    assert ended.reason is Reason.TIMED_OUT
    assert "broker1:9092: the broker closed: no response to ApiVersions" in ended.detail


def test_news_of_a_connection_that_was_given_up_is_ignored() -> None:
    made = network(Random(1), [("broker1", 9092)])
    (connect,) = made.advance(0.0)
    assert isinstance(connect, Connect)
    made.advance(10.0)  # the setup timeout
    for event in (
        ConnectionMade(connect.connection),
        BytesReceived(connect.connection, b"x"),
        ConnectionLost(connect.connection, "late"),
    ):
        effects = made.handle(event, 10.0)
        assert not any(isinstance(each, ConnectionClosed | Connect) for each in effects)


def test_a_queue_is_sent_in_order_and_fails_together() -> None:
    simulation, owner = lived_in(10, NetworkConditions(0.001, 0.0, 0.0))
    simulation.pass_time(1.0)
    for key in range(40):
        simulation.send_event("c", request_for(key, 2))
    simulation.run(lambda: len(owner.ends) == 40)
    assert [each.request.key for each in owner.ends] == [str(key) for key in range(40)]
    for key in range(40, 60):
        simulation.send_event("c", request_for(key, 2))
    simulation.stop(2)
    simulation.run(lambda: len(owner.ends) == 60)
    failed = owner.ends[40:]
    assert all(isinstance(each, NoResponse) and each.retriable for each in failed)
    assert [each.request.key for each in failed] == [str(key) for key in range(40, 60)]


def test_a_network_knows_its_events() -> None:
    made: Network = network(Random(1), [("broker1", 9092)])
    with pytest.raises(Exception, match="str"):
        made.handle("what", 0.0)  # type: ignore[arg-type]


# -- bootstrap servers that are down


TRIED: dict[str, Setting] = {"bootstrap.timeout.ms": 1_000}


def down(machine: Network, until: float) -> tuple[float, list[NetworkEffect]]:
    """Refuse every connection until a time; return the time, and all effects."""
    now, effects = 0.0, list(machine.handle(request_for(1, LEAST_LOADED), 0.0))
    seen: list[NetworkEffect] = []
    while effects or now < until:
        seen += effects
        attempts = [each for each in effects if isinstance(each, Connect)]
        effects = []
        for each in attempts:
            effects += machine.handle(ConnectionLost(each.connection, "refused"), now)
        if not attempts:
            now = min(machine.next_deadline() or until, until)
            effects += machine.advance(now)
            if now >= until:
                return now, seen + effects
    return now, seen


def test_requests_fail_once_the_bootstrap_servers_were_tried() -> None:
    machine = network(Random(1), [("a", 1), ("b", 1)], TRIED)
    _, effects = down(machine, 1.5)
    (end,) = (each for each in effects if isinstance(each, NoResponse))
    assert not end.retriable
    assert "refused" in end.detail
    assert any(isinstance(each, ClusterFailed) for each in effects)
    assert sum(isinstance(each, Connect) for each in effects) > 2  # tried more than once


def test_requests_fail_once_each_bootstrap_server_was_tried_often_enough() -> None:
    limits: dict[str, Setting] = {"bootstrap.timeout.ms": 60_000, "bootstrap.attempts": 3}
    machine = network(Random(1), [("a", 1), ("b", 1)], limits)
    _, effects = down(machine, 2.0)
    (end,) = (each for each in effects if isinstance(each, NoResponse))
    assert "refused" in end.detail
    failed = next(at for at, each in enumerate(effects) if isinstance(each, ClusterFailed))
    attempts = [each for each in effects[:failed] if isinstance(each, Connect)]
    assert min(Counter(each.host for each in attempts).values()) == 3


def test_without_a_limit_they_wait_for_their_own_timeout() -> None:
    _, effects = down(network(Random(1), [("a", 1)]), 4.0)
    assert not any(isinstance(each, NoResponse | ClusterFailed) for each in effects)


def test_a_host_that_does_not_answer_is_given_up_as_well() -> None:
    machine = network(Random(1), [("a", 1)], TRIED)
    machine.handle(request_for(1, LEAST_LOADED), 0.0)
    assert machine.next_deadline() == pytest.approx(1.0)
    (end,) = (each for each in machine.advance(1.0) if isinstance(each, NoResponse))
    assert "no broker reachable" in end.detail


@pytest.mark.parametrize("others", [(), (("b", 1),)])
def test_a_broker_that_is_slow_is_not_given_up(others: tuple[tuple[str, int], ...]) -> None:
    """Whether or not others are down."""
    machine = network(Random(1), [*others, ("a", 1)], TRIED)
    effects = machine.handle(request_for(1, LEAST_LOADED), 0.0)
    for _ in others:
        (refused,) = (each for each in effects if isinstance(each, Connect))
        effects = machine.handle(ConnectionLost(refused.connection, "refused"), 0.0)
    (connect,) = (each for each in effects if isinstance(each, Connect))
    (opening,) = frames(machine.handle(ConnectionMade(connect.connection), 0.1))
    answer = respond(opening, versions(TABLE | {ApiKey.METADATA: (0, 12)}))
    machine.handle(BytesReceived(connect.connection, answer), 0.2)
    assert not any(isinstance(each, NoResponse | ClusterFailed) for each in machine.advance(1.0))

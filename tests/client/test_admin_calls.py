"""Calls of an admin client: repeated while that may help, done once; and over SASL."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest

from kafkawire.broker import Action, Fault
from kafkawire.broker.groups.coordinators import partition_for
from kafkawire.client.admin.calls import (
    RETRIABLE_ERRORS,
    AdminCalls,
    Call,
    CallCompleted,
    CallFailed,
    LeaderOf,
)
from kafkawire.client.client import Client
from kafkawire.client.config import Setting
from kafkawire.client.network.backoff import Backoff
from kafkawire.client.requests import (
    CONTROLLER,
    LEAST_LOADED,
    ClusterFailed,
    Coordinator,
    CoordinatorKind,
    Destination,
    Reason,
    Same,
)
from kafkawire.errors import LocalProtocolError
from kafkawire.messages.api_key import ApiKey
from kafkawire.messages.describe_groups_request import DescribeGroupsRequest
from kafkawire.messages.list_groups_request import ListGroupsRequest
from kafkawire.messages.list_groups_response import ListGroupsResponse
from kafkawire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkawire.messages.list_offsets_response import ListOffsetsResponse
from kafkawire.primitives import Message
from kafkawire.protocol.error_code import ErrorCode

from .brokers import OFFSETS_PARTITIONS
from .clients import network
from .simulation import NetworkConditions, Simulation


def simulation(
    config: dict[str, Setting] | None = None,
    settings: dict[str, str] | None = None,
    conditions: NetworkConditions | None = None,
    passwords: dict[str, str] | None = None,
) -> Simulation:
    """A simulation with a client that asks questions."""
    made = Simulation(3, conditions=conditions, settings=settings, passwords=passwords)
    net = network(Random(3), made.bootstrap, config)
    asking = AdminCalls(
        net.view, owner="a", attempt_s=2.0, backoff=Backoff(0.1, 0.5), rng=Random(4).random
    )
    made.add("a", Client(net, {"a": asking}))
    return made


def codes(message: Message) -> Iterable[int]:
    match message:
        case ListGroupsResponse():
            return [message.error_code]
        case ListOffsetsResponse():
            return [row.error_code for topic in message.topics for row in topic.partitions]
        case _:
            return []


def groups(token: object, to: Destination = LEAST_LOADED, timeout_s: float = 10.0) -> Call:
    body = Same(ListGroupsRequest(), 0, 3)
    return Call(str(token), to, ApiKey.LIST_GROUPS, body, codes, timeout_s)


def latest(token: object, topic: str, timeout_s: float = 10.0) -> Call:
    row = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[row])]
    )
    to = LeaderOf(topic, 0)
    return Call(str(token), to, ApiKey.LIST_OFFSETS, Same(request, 1, 7), codes, timeout_s)


def replies(made: Simulation) -> list[CallCompleted | CallFailed]:
    return [each for each in made.news["a"] if isinstance(each, CallCompleted | CallFailed)]


@pytest.mark.parametrize("code", sorted(RETRIABLE_ERRORS))
def test_retriable_errors_are_retried(code: ErrorCode) -> None:
    made = simulation()
    fault = Fault("ListGroups", action=Action.ERROR, error=code)
    made.brokers.faults.append(fault)
    made.send_event("a", groups("q", CONTROLLER))
    made.pass_time(3.0)
    assert fault.hit > 3
    assert not replies(made)
    made.brokers.faults.clear()
    made.run(lambda: len(replies(made)) == 1)
    (reply,) = replies(made)
    assert isinstance(reply, CallCompleted)
    assert list(codes(reply.message)) == [0]


def test_other_errors_complete_the_call() -> None:
    made = simulation()
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    fault = Fault("ListGroups", action=Action.ERROR, error=code)
    made.brokers.faults.append(fault)
    made.send_event("a", groups("q"))
    made.run(lambda: len(replies(made)) == 1)
    (reply,) = replies(made)
    assert isinstance(reply, CallCompleted)
    assert list(codes(reply.message)) == [code]
    assert fault.hit == 1


def test_a_persistent_error_completes_the_call() -> None:
    made = simulation()
    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    made.brokers.faults.append(Fault("ListGroups", action=Action.ERROR, error=code))
    made.send_event("a", groups("q", timeout_s=2.0))
    began = made.now
    made.run(lambda: len(replies(made)) == 1)
    assert made.now - began <= 2.0
    (reply,) = replies(made)
    assert isinstance(reply, CallCompleted)
    assert list(codes(reply.message)) == [code]


def test_the_leader_is_called_and_followed() -> None:
    made = simulation()
    made.create("t", [[1, 2, 3]])
    made.send_event("a", latest("first", "t"))
    made.run(lambda: len(replies(made)) == 1)
    made.move("t", 0, 3)
    made.run(lambda: made.brokers.leads(3, "t", 0))
    made.send_event("a", latest("second", "t"))
    made.run(lambda: len(replies(made)) == 2)
    assert all(
        isinstance(each, CallCompleted) and not sum(codes(each.message)) for each in replies(made)
    )


def test_no_leader() -> None:
    made = simulation(settings={"auto.create.topics.enable": "false"})
    made.send_event("a", latest("q", "nowhere", timeout_s=3.0))
    made.run(lambda: len(replies(made)) == 1)
    (reply,) = replies(made)
    assert isinstance(reply, CallFailed)
    assert reply.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "nowhere-0" in reply.detail
    assert made.now <= 3.0


def test_a_coordinator_that_moved_is_looked_up_again() -> None:
    made = simulation()
    group = DescribeGroupsRequest(groups=["g"])

    def described(message: Message) -> Iterable[int]:
        return [row.error_code for row in message.groups]  # type: ignore[attr-defined]

    def call(token: str) -> None:
        to = Coordinator(CoordinatorKind.GROUP, "g")
        body = Same(group, 0, 5)
        made.send_event("a", Call(token, to, ApiKey.DESCRIBE_GROUPS, body, described, 10.0))
        made.run(lambda: len(replies(made)) == int(token))

    call("1")
    where = partition_for("g", OFFSETS_PARTITIONS)
    partition = made.brokers.partition("__consumer_offsets", where)
    assert partition is not None
    other = 1 + partition.leader % 3
    made.move("__consumer_offsets", where, other)
    made.run(lambda: made.brokers.leads(other, "__consumer_offsets", where))
    call("2")
    assert all(isinstance(each, CallCompleted) for each in replies(made))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("password", ["secret", "guess"])
def test_sasl_on_a_wire_that_splits_every_frame(mechanism: str, password: str) -> None:
    made = simulation(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": "alice",
            "sasl.password": password,
        },
        {"sasl.enabled.mechanisms": mechanism},
        NetworkConditions(0.01, 0.9),
        {"alice": "secret"},
    )
    made.send_event("a", groups("q"))
    made.run(lambda: len(replies(made)) == 1)
    (reply,) = replies(made)
    if password == "secret":
        assert isinstance(reply, CallCompleted)
    else:
        assert isinstance(reply, CallFailed)
        assert reply.reason is Reason.AUTHENTICATION_FAILED
        assert made.now < 1.0, "nobody waits for what will not be"


def test_an_unknown_event_is_rejected() -> None:
    made = simulation()
    made.send_event("a", ClusterFailed(Reason.NO_VERSION, "old"))
    with pytest.raises(LocalProtocolError, match="float"):
        made.send_event("a", 1.0)

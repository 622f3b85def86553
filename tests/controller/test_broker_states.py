"""The registration of a broker goes through exactly the states of its table."""

from __future__ import annotations

from itertools import product

import pytest

from kafkawire.controller import (
    NEXT,
    Append,
    BecameLeader,
    BrokerState,
    Effect,
    RequestReceived,
    Trigger,
)
from kafkawire.controller.broker_states import RECORDED, diagram, state_of
from kafkawire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kafkawire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kafkawire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kafkawire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.unregister_broker_request import UnregisterBrokerRequest
from kafkawire.messages.unregister_broker_response import UnregisterBrokerResponse
from tests.conftest import ROOT

from .harness import Harness

S, T = BrokerState, Trigger
ID = 1


def in_state(state: BrokerState) -> Harness:
    """Bring broker 1 into a state; broker 2 is unfenced and leads nothing."""
    harness = Harness()
    harness.start(2)
    if state is S.UNREGISTERED:
        return harness
    harness.register(ID)
    if state is S.FENCED:
        return harness
    harness.heartbeat(ID)
    if state is S.UNFENCED:
        return harness
    if state is S.CONTROLLED_SHUTDOWN:
        lead(harness)
    harness.heartbeat(ID, want_shut_down=True)
    return harness


def lead(harness: Harness) -> None:
    """Create topics until broker 1 leads a partition."""
    number = 0
    while not harness.controller.image.indexes.leaders.has(ID):
        topic = CreatableTopic(name=f"t{number}", num_partitions=1, replication_factor=2)
        harness.exchange(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse, 7)
        number += 1


def trigger(harness: Harness, what: Trigger) -> BrokerState:
    """Let something happen; return the state that the broker is informed of, or has."""
    if what is T.REGISTERS:
        harness.now += 20.0  # its session is over, its fencing not yet decided
        harness.register(ID, incarnation=2)
    elif what is T.UNREGISTERS:
        harness.exchange(UnregisterBrokerRequest(broker_id=ID), UnregisterBrokerResponse)
    elif what is T.SESSION_EXPIRED:
        harness.advance(20.0)
    elif what is T.LEADERS_MOVED:
        harness.heartbeat(2)
        return reported(harness.heartbeat(ID, want_shut_down=True), harness)
    else:
        if what is T.WANTS_SHUTDOWN_LEADING:
            lead(harness)
        shut = what in (T.WANTS_SHUTDOWN, T.WANTS_SHUTDOWN_LEADING)
        fence = what is T.WANTS_FENCE
        return reported(harness.heartbeat(ID, want_shut_down=shut, want_fence=fence), harness)
    return state(harness)


def reported(response: BrokerHeartbeatResponse, harness: Harness) -> BrokerState:
    assert response.error_code == 0
    assert response.is_fenced == (state(harness) is S.FENCED)
    return S.SHUTDOWN_NOW if response.should_shut_down else state(harness)


def state(harness: Harness) -> BrokerState:
    return state_of(harness.controller.newest.brokers.get(ID))


LEGAL = [
    (before, what, after) for before, triggers in NEXT.items() for what, after in triggers.items()
]


@pytest.mark.parametrize(("before", "what", "after"), LEGAL)
def test_each_transition_of_the_table(
    before: BrokerState, what: Trigger, after: BrokerState
) -> None:
    harness = in_state(before)
    assert state(harness) is RECORDED.get(before, before)
    assert trigger(harness, what) is after
    assert state(harness) is RECORDED.get(after, after)


def test_every_state_can_be_left_and_reached() -> None:
    assert set(NEXT) == set(BrokerState)
    assert {after for row in NEXT.values() for after in row.values()} == set(BrokerState)
    assert {what for row in NEXT.values() for what in row} == set(Trigger)


@pytest.mark.parametrize(
    ("before", "fence"),
    list(product([S.FENCED, S.UNFENCED, S.CONTROLLED_SHUTDOWN], [False, True])),
)
def test_an_unknown_epoch_changes_nothing(before: BrokerState, fence: bool) -> None:
    harness = in_state(before)
    written = len(harness.log)
    body = BrokerHeartbeatRequest(
        broker_id=ID, broker_epoch=0, current_metadata_offset=10**6, want_fence=fence
    )
    assert harness.exchange(body, BrokerHeartbeatResponse, 2).error_code == 77
    assert len(harness.log) == written


def test_the_page_has_the_diagram_of_the_table() -> None:
    page = (ROOT / "docs/internals/cluster.md").read_text("utf-8")
    assert "```mermaid\n" + "\n".join(diagram()) + "\n```" in page


def test_a_new_controller_ends_a_shutdown_that_another_began() -> None:
    harness = in_state(S.CONTROLLED_SHUTDOWN)
    last = len(harness.log) - 1
    harness.controller.handle(BecameLeader(2, last + 2), harness.now)  # after a control record

    def heartbeat(broker_id: int, shut: bool) -> list[Effect]:
        """Send a heartbeat of a broker that has read all records."""
        body = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=harness.controller.image.brokers[broker_id].epoch,
            current_metadata_offset=last,
            want_shut_down=shut,
        )
        return harness.controller.handle(RequestReceived(0, body, 2), harness.now)

    heartbeat(2, False)
    [append] = [each for each in heartbeat(ID, True) if isinstance(each, Append)]
    [record] = append.records
    assert isinstance(record.message, BrokerRegistrationChangeRecord)
    assert record.message.fenced == 1

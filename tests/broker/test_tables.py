"""The tables of groups: total, legal, and no way around them."""

from __future__ import annotations

import json
import re
from itertools import product
from typing import get_type_hints

import pytest

from kafkawire import REGISTRY, ApiKey, Message
from kafkawire.broker import events
from kafkawire.broker.apis import APIS, BETWEEN_BROKERS, Listener, served_on
from kafkawire.broker.deadlines import Deadlines
from kafkawire.broker.groups.classic_groups.group import _DUE, _REQUESTS, Group
from kafkawire.broker.groups.classic_groups.states import ADMISSION, LEGAL, GroupState, Kind
from kafkawire.broker.groups.requests import (
    Deadline,
    GroupRequest,
    JoinDue,
    PendingExpired,
    SessionExpired,
    SyncDue,
)
from kafkawire.broker.handlers import HANDLERS
from kafkawire.broker.request import HandlerResult
from kafkawire.broker.security import server as sasl
from kafkawire.node.front import broker_front
from kafkawire.node.front.listeners import ConnectionDeadline
from kafkawire.protocol import ErrorCode

from ..conftest import ROOT

E, S, K = ErrorCode, GroupState, Kind

LISTENERS = {
    "broker": Listener.BROKER,
    "controller": Listener.CONTROLLER,
    "zkBroker": Listener.ZK_BROKER,
}
EXPECTED = {
    K.JOIN: "ok ok ok ok dead",
    K.SYNC: "unknown moving ok ok dead",
    K.HEARTBEAT: "unknown moving ok ok dead",
    K.LEAVE: "ok ok ok ok dead",
    K.COMMIT: "ok ok moving ok dead",
    K.DELETE: "ok members members members absent",
    K.DELETE_OFFSETS: "ok ok ok ok absent",
}
WORDS = {
    "ok": E.NONE,
    "unknown": E.UNKNOWN_MEMBER_ID,
    "moving": E.REBALANCE_IN_PROGRESS,
    "members": E.NON_EMPTY_GROUP,
    "dead": E.COORDINATOR_NOT_AVAILABLE,
    "absent": E.GROUP_ID_NOT_FOUND,
}


def test_every_state_handles_every_kind_of_request() -> None:
    assert set(ADMISSION) == set(GroupState)
    for state in GroupState:
        assert set(ADMISSION[state]) == set(Kind)
    reported = {kind: [ADMISSION[state][kind] for state in GroupState] for kind in Kind}
    assert reported == {kind: [WORDS[w] for w in row.split()] for kind, row in EXPECTED.items()}


def in_state(state: GroupState) -> Group:
    group = Group("g", new_member_id=lambda name: name)
    group.state = state
    return group


@pytest.mark.parametrize(("here", "there"), list(product(GroupState, repeat=2)))
def test_a_state_changes_only_as_is_legal(here: GroupState, there: GroupState) -> None:
    group = in_state(here)
    if there in LEGAL[here]:
        group.move_to(there, 5.0)
        assert (group.state, group.changed_at) == (there, 5.0)
    else:
        with pytest.raises(AssertionError, match="not a legal transition"):
            group.move_to(there, 5.0)
        assert group.state is here


def test_every_state_is_reached_and_dead_is_the_end() -> None:
    reached = {state for targets in LEGAL.values() for state in targets}
    assert reached == set(GroupState)
    assert LEGAL[S.DEAD] == frozenset()


def test_every_request_and_every_deadline_has_a_handler() -> None:
    assert set(_REQUESTS) == set(GroupRequest.__args__)
    assert set(_DUE) == set(Deadline.__args__)


@pytest.mark.parametrize(("here", "there"), list(product(sasl.State, repeat=2)))
def test_authentication_goes_only_as_is_legal(here: sasl.State, there: sasl.State) -> None:
    auth = sasl.Authentication((), sasl.Users({}, bytes), str, here)
    if there in sasl.LEGAL[here]:
        auth._move_to(there)
        assert auth.state is there
    else:
        with pytest.raises(Exception, match="not a legal transition"):
            auth._move_to(there)


def test_every_deadline_of_a_broker_has_a_handler() -> None:
    of_connections = set(ConnectionDeadline.__args__)
    assert not of_connections & set(broker_front._DUE)
    assert of_connections | set(broker_front._DUE) == set(events.Deadline.__args__)


@pytest.mark.parametrize("key", sorted(served_on(Listener.BROKER) | BETWEEN_BROKERS))
def test_a_handler_takes_the_requests_and_returns_the_responses_of_its_api(key: ApiKey) -> None:
    request, response = REGISTRY.request(key), REGISTRY.response(key)
    assert request is not None
    assert response is not None
    request_class, response_class = REGISTRY.load(request.name), REGISTRY.load(response.name)
    handler = HANDLERS[key]
    handled = get_type_hints(handler.handle)
    body = handled.get("body", handled.get("_body"))
    if body is not Message:  # who handles it, or hands it on, does so for one API
        assert body == request_class
        assert response.name in str(handled["return"]) or handled["return"] == HandlerResult
    assert isinstance(handler.error_response(request_class(), E.NOT_CONTROLLER), response_class)


@pytest.mark.parametrize("key", APIS)
def test_an_api_is_served_only_where_kafka_serves_it(key: ApiKey) -> None:
    info = REGISTRY.request(key)
    assert info is not None
    schema = (ROOT / "schemas" / f"{info.name}.json").read_text("utf-8")
    listeners = re.search(r'"listeners": (\[.*?\])', schema)
    assert listeners is not None
    kafkas = {LISTENERS[name] for name in json.loads(listeners[1])}
    assert set(APIS[key].listeners) <= kafkas


def test_only_these_need_no_permission() -> None:
    """A token is renewed and expired by who owns or may renew it."""
    tokens = {ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN}
    telemetry = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
    without = {key for key, api in APIS.items() if not api.permissions}
    assert without == sasl.BEFORE_AUTHENTICATION | telemetry | tokens


def test_deadlines_of_different_kinds_are_different_keys() -> None:
    keys = [
        SessionExpired("m"),
        PendingExpired("m"),
        JoinDue(),
        SyncDue(),
        events.IdleConnection(1),
        events.ReplyDue(1),
        events.OffsetsDue(),
        events.GroupDue(1, "g"),
        events.OffsetsLoaded(1),
        events.CommitExpired(1),
    ]
    assert len(set(keys)) == len(keys)


def test_deadlines_come_in_order_and_once() -> None:
    deadlines: Deadlines[str] = Deadlines()
    for at, key in enumerate("abcdefgh"):
        deadlines.set(key, 10.0 - at)
    for _ in range(200):  # replaced over and over: only the last counts
        deadlines.set("a", 3.5)
    deadlines.cancel("h")
    deadlines.set("g", None)
    assert deadlines.next() == 3.5
    assert [deadlines.pop_due(6.0) for _ in range(4)] == ["a", "f", "e", None]
    assert [deadlines.pop_due(99.0) for _ in range(4)] == ["d", "c", "b", None]
    assert deadlines.next() is None
    assert len(deadlines) == 0

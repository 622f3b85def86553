"""Fault injection: each action, when it applies, and that a seed repeats it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kafkawire import ErrorCode
from kafkawire.broker import Action, Fault
from kafkawire.messages.api_key import ApiKey
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.metadata_response import MetadataResponse

from .harness import Client, Harness, metadata
from .log.test_log import batch, offset_at, produce, produce_request

E = ErrorCode


def with_fault(**fault: object) -> tuple[Harness, Client, Fault]:
    harness = Harness(topics={"t": 1})
    made = Fault(**fault)  # type: ignore[arg-type]
    harness.faults.append(made)
    return harness, harness.client(), made


def send_metadata(client: Client) -> None:
    client.send(MetadataRequest(topics=None), 9)


def test_an_error_is_returned_and_the_request_not_carried_out() -> None:
    _, client, fault = with_fault(match="Produce", error=E.NOT_LEADER_OR_FOLLOWER)
    assert produce(client, batch(b"a")).error_code == E.NOT_LEADER_OR_FOLLOWER
    assert offset_at(client, -1).offset == 0
    assert (fault.seen, fault.hit) == (1, 1)


def test_only_the_nth_request_fails() -> None:
    _, client, fault = with_fault(match="Produce", nth=2, error=E.NOT_LEADER_OR_FOLLOWER)
    reported = [produce(client, batch(b"a")).error_code for _ in range(4)]
    assert reported == [E.NONE, E.NOT_LEADER_OR_FOLLOWER, E.NONE, E.NONE]
    assert (fault.seen, fault.hit) == (4, 1)


def test_a_delay_holds_back_this_response_and_later_ones() -> None:
    harness, client, _ = with_fault(match="Metadata", nth=1, action="delay", delay=2.0)
    send_metadata(client)
    send_metadata(client)
    harness.advance(1.9)
    assert client.frame() is None
    harness.advance(0.2)
    for _ in range(2):
        client.receive(MetadataResponse)


def test_a_delayed_response_is_dropped_with_its_connection() -> None:
    harness, client, _ = with_fault(action="delay", delay=2.0)
    send_metadata(client)
    client.disconnect()
    harness.advance(3)
    assert not harness.broker().channel.pending


def test_a_dropped_response_is_not_sent_but_the_request_is_carried_out() -> None:
    harness, client, _ = with_fault(match="Produce", nth=1, action="drop")
    client.send_bytes(b"")
    with pytest.raises(AssertionError):
        produce(client, batch(b"a"))
    send_metadata(client)
    harness.advance(60)
    assert client.frame() is None
    assert client.closed is None
    assert offset_at(harness.client(), -1).offset == 1


@pytest.mark.parametrize(("carried_out", "stored"), [(False, 0), (True, 1)])
def test_a_disconnect_comes_before_or_after_the_work(carried_out: bool, stored: int) -> None:
    harness, client, _ = with_fault(match="Produce", action="disconnect", carried_out=carried_out)
    with pytest.raises(AssertionError):
        produce(client, batch(b"a"))
    assert client.closed == "a fault: disconnect"
    assert offset_at(harness.client(), -1).offset == stored


def test_a_truncated_response_closes_the_connection() -> None:
    _, client, _ = with_fault(action="truncate", keep=7)
    send_metadata(client)
    assert len(client.received) == 7
    assert client.closed == "a fault: truncated"


def test_a_corrupt_response_differs_in_one_byte() -> None:
    harness, client, fault = with_fault(match="Metadata", nth=1, action="corrupt")
    send_metadata(client)
    damaged = client.frame()
    clean = harness.client()
    send_metadata(clean)
    whole = clean.frame()
    assert damaged is not None
    assert whole is not None
    assert sum(a != b for a, b in zip(damaged, whole, strict=True)) == 1
    assert damaged[:8] == whole[:8], "size and correlation id stay"
    assert fault.hit == 1


def test_chance_is_the_seeds() -> None:
    def hits(seed: int) -> list[bool]:
        harness = Harness(topics={"t": 1}, seed=seed)
        harness.faults.append(Fault("Metadata", probability=0.3, error=E.INVALID_REQUEST))
        client = harness.client()
        return [metadata(client, "t").topics[0].error_code != 0 for _ in range(200)]

    assert hits(5) == hits(5) != hits(6)
    assert 30 < sum(hits(5)) < 90


def test_a_match_may_be_a_function() -> None:
    harness = Harness(topics={"t": 1})
    harness.faults.append(
        Fault(lambda request: request.client_id == "other", error=E.INVALID_REQUEST)
    )
    client = harness.client()
    assert metadata(client, "t").topics[0].error_code == E.NONE
    from kafkawire.messages.metadata_request import MetadataRequestTopic

    client.send(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9, "other")
    assert client.receive(MetadataResponse).topics[0].error_code == E.INVALID_REQUEST


def test_an_error_may_be_given_by_its_name() -> None:
    _, client, _ = with_fault(match="Produce", error="NOT_LEADER_OR_FOLLOWER")
    assert produce(client, batch(b"a")).error_code == E.NOT_LEADER_OR_FOLLOWER


def test_apis_and_errors_may_be_numbers() -> None:
    for match, error in ((0, 6), ("0", "6")):
        fault = Fault(match, error=error)  # type: ignore[arg-type]
        assert (fault.match, fault.error) == (ApiKey.PRODUCE, E.NOT_LEADER_OR_FOLLOWER)
    assert Fault.parse("0 error=6") == Fault("Produce", error=E.NOT_LEADER_OR_FOLLOWER)
    assert Fault(error=-1).error is E.UNKNOWN_SERVER_ERROR  # type: ignore[arg-type]


def test_what_has_no_value_has_that_of_the_table() -> None:
    assert Fault().error is E.UNKNOWN_SERVER_ERROR
    assert Fault(action="delay").delay == 1.0


@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize("new_action", Action)
def test_a_copy_has_the_defaults_of_its_action(action: Action, new_action: Action) -> None:
    fault = Fault("Produce", nth=2, action=action)
    assert replace(fault) == fault
    assert replace(fault, nth=3, action=new_action) == Fault("Produce", nth=3, action=new_action)
    assert replace(replace(fault, action=new_action), action=action) == fault


def test_a_copy_has_what_was_set_and_counts_anew() -> None:
    _, client, fault = with_fault(match="Metadata", error="NOT_CONTROLLER")
    send_metadata(client)
    assert (fault.seen, fault.hit) == (1, 1)
    copy = replace(fault, probability=0.5)
    assert (copy.seen, copy.hit) == (0, 0)
    assert (copy.match, copy.error, copy.probability) == (ApiKey.METADATA, E.NOT_CONTROLLER, 0.5)
    assert replace(Fault(action="delay", delay=2.0), nth=1).delay == 2.0
    late = replace(Fault(action="drop"), action="delay", delay=3.0)
    assert (late.action, late.delay) == (Action.DELAY, 3.0)


@pytest.mark.parametrize(
    ("fault", "change", "reason"),
    [
        (Fault(error=E.NOT_CONTROLLER), {"action": "drop"}, "error=.*only the action 'error'"),
        (Fault(action="delay", delay=1.0), {"action": "drop"}, "delay=1.0: only the action"),
        (Fault(), {"delay": 2.0}, "delay=2.0: only the action 'delay'"),
        (Fault(), {"nth": 0}, "from 1"),
    ],
)
def test_a_copy_without_effect_is_refused(
    fault: Fault, change: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        replace(fault, **change)
    unset: dict[str, Any] = dict.fromkeys(("error", "delay"))
    assert replace(fault, **unset, action="drop") == Fault(action="drop")


def test_a_function_that_fails_matches_nothing_and_its_first_error_is_raised() -> None:
    errors = [LookupError("first"), LookupError("second")]

    def fails(_request: object) -> bool:
        raise errors[fault.seen if fault.failure is None else 1]

    _, client, fault = with_fault(match=fails)
    for _ in range(2):
        send_metadata(client)
        assert client.receive(MetadataResponse).topics
    with pytest.raises(LookupError, match="first"):
        fault.check()
    with pytest.raises(LookupError, match="first"):
        assert fault.hit
    fault.check()  # it was raised


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"match": "Nothing"}, "Nothing"),
        ({"match": "Prodcue"}, "'Produce'"),
        ({"match": 3.5}, "function"),
        ({"action": "disconect"}, "disconnect"),
        ({"error": "NOT_LEADER_FOR_PARTITION"}, "'NOT_LEADER_OR_FOLLOWER'"),
        ({"error": "NOT_LEADR"}, "'NOT_LEADER_OR_FOLLOWER'"),
        ({"error": "NOT_CONTROLER"}, "'NOT_CONTROLLER'"),
        ({"error": 9999}, "number of an error"),
        ({"error": "NONE"}, "success"),
        ({"error": "NOPE"}, "unknown error 'NOPE'; expected the name or the number of an error"),
        ({"error": 0}, "success"),
        ({"match": 999}, "unknown API 999"),
        ({"match": "BrokerHeartbeat"}, "do not serve BrokerHeartbeat"),
        ({"match": ApiKey.VOTE}, "do not serve Vote"),
        ({"delay": 0}, "only the action 'delay' uses it, not 'error'"),
        ({"delay": 1, "error": "NOT_CONTROLLER"}, "only the action 'delay'"),
        ({"action": "disconnect", "error": E.NOT_CONTROLLER}, "only the action 'error'"),
        ({"keep": 3}, "only the action 'truncate'"),
        ({"action": "truncate", "at": 0}, "only the action 'corrupt'"),
        ({"carried_out": True}, "only the action 'disconnect'"),
        ({"nth": 0}, "from 1"),
        ({"probability": 1.5}, "from 0 to 1"),
        ({"action": "delay", "delay": -1.0}, "seconds"),
        ({"action": "truncate", "keep": -1}, "bytes"),
    ],
)
def test_a_fault_that_no_request_could_meet_is_refused(
    fault: dict[str, object], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        Fault(**fault)  # type: ignore[arg-type]


def test_an_error_without_a_response_closes() -> None:
    harness, client, fault = with_fault(match="Produce", error=E.NOT_LEADER_OR_FOLLOWER)
    client.send(produce_request(batch(b"a"), acks=0), 9)
    assert fault.hit == 1
    assert client.frame() is None
    assert client.closed == "a fault: NOT_LEADER_OR_FOLLOWER, acks=0"
    assert offset_at(harness.client(), -1).offset == 0


@pytest.mark.parametrize(
    "rule",
    [
        "Produce action=error error=UNKNOWN_SERVER_ERROR",
        "Fetch action=error nth=3 error=NOT_LEADER_OR_FOLLOWER",
        "* action=disconnect probability=0.5 carried_out=true",
        "Fetch action=delay delay=1.0",
        "Metadata action=truncate keep=0",
    ],
)
def test_the_text_of_a_fault_is_its_rule(rule: str) -> None:
    assert repr(Fault.parse(rule)) == f"<Fault {rule}: 0 matched, 0 failed>"


def test_the_text_of_a_fault_counts_requests() -> None:
    _, client, fault = with_fault(match=lambda _: True, nth=2, action="drop")
    send_metadata(client)
    assert repr(fault) == "<Fault function action=drop nth=2: 1 matched, 0 failed>"

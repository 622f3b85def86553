"""The tables of the share consumer are total, and the docs show its states as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import pytest

from kafkawire.client.consumer.consumer_group.recovery import Recovery
from kafkawire.client.requests import OwnerEffect, OwnerEvent, Sent
from kafkawire.client.share_consumer import member_states, membership, record_states, sessions
from kafkawire.client.share_consumer.errors import LeaderError, leader_error
from kafkawire.client.share_consumer.events import UserEvent
from kafkawire.client.share_consumer.leader import LeaderEffect
from kafkawire.client.share_consumer.member_states import (
    MemberEvent,
    MemberState,
    recovery,
)
from kafkawire.client.share_consumer.share_consumer import HANDLERS, INTERNAL_HANDLERS
from kafkawire.protocol.error_code import ErrorCode
from tests.conftest import ROOT

LEGAL: list[Mapping[Any, frozenset[Any]]] = [
    member_states.LEGAL,
    record_states.LEGAL,
    sessions.LEGAL,
]
PAGE = ROOT / "docs" / "client.md"


@pytest.mark.parametrize("legal", LEGAL)
def test_every_state_is_listed_and_left(legal: Mapping[Any, frozenset[Any]]) -> None:
    states = {state for kind in {type(each) for each in legal} for state in kind}
    assert set(legal) == states
    for state in states:
        assert legal[state] - {state}, state
        assert any(state in after for before, after in legal.items() if before is not state)


@pytest.mark.parametrize("legal", LEGAL)
def test_the_page_draws_the_states(legal: Mapping[Any, frozenset[Any]]) -> None:
    rows = [f"    {a.value} --> {b.value}" for a, after in legal.items() for b in after]
    drawn = "```mermaid\nstateDiagram-v2\n" + "\n".join(sorted(rows)) + "\n```"
    assert drawn in PAGE.read_text(encoding="utf-8")


def test_every_event_of_a_member_has_a_handler_in_every_state() -> None:
    assert set(membership.HANDLERS) == set(get_args(MemberEvent))
    for row in membership.HANDLERS.values():
        assert set(row) == set(MemberState)
    assert set(membership.RECOVERIES) == set(Recovery)


def test_every_event_and_internal_effect_has_a_handler() -> None:
    outside = set(get_args(UserEvent)) | set(get_args(OwnerEvent)) - {Sent}
    assert set(HANDLERS) == outside
    internal = set(get_args(LeaderEffect)) | set(get_args(member_states.MemberEffect))
    assert set(INTERNAL_HANDLERS) == internal - set(get_args(OwnerEffect))


def test_every_error_has_a_recovery() -> None:
    for code in ErrorCode:
        assert recovery(code) in Recovery
        assert leader_error(code) in LeaderError
    assert recovery(12_345) is Recovery.FATAL
    assert leader_error(12_345) is LeaderError.FAIL
    assert recovery(ErrorCode.FENCED_MEMBER_EPOCH) is Recovery.REJOIN
    assert recovery(ErrorCode.GROUP_AUTHORIZATION_FAILED) is Recovery.FATAL
    assert leader_error(ErrorCode.INVALID_RECORD_STATE) is LeaderError.FAIL

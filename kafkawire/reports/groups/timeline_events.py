"""Makes entries of a group's timeline from the events of the group."""

from __future__ import annotations

from typing import Final

from kafkawire.capture.tables.extraction.group_event import (
    FAILED,
    REBALANCE_ENDED,
    REBALANCE_STARTED,
    EventType,
    GroupEvent,
)
from kafkawire.protocol.error_code import ErrorCode

from .group import GroupHistory, TimelineEvent
from .member import Member

NOT_OF_MEMBERS: Final = frozenset({FAILED, REBALANCE_STARTED})
"""Events about a client that is not a member, or not yet."""


def _client_of(one: GroupEvent, member: Member | None) -> str | None:
    """Return the client id of an event, if it is about one client.

    A member that the coordinator removes before it has an id has no other name.
    """
    if member is not None:
        return member.client_id
    without_id = one.type is EventType.REMOVED and not (one.member_id or one.group_instance_id)
    return one.client_id if without_id or one.type in NOT_OF_MEMBERS else None


def _failure(one: GroupEvent) -> str:
    return f"{one.exchange.main_row.api_name} failed with {ErrorCode.name_of(one.error_code or 0)}"


def timeline_event(one: GroupEvent, history: GroupHistory) -> TimelineEvent:
    """Return the entry of an event in the history of its group."""
    member = history.members.get(one.member_id or "")
    ended = one.type is REBALANCE_ENDED
    return TimelineEvent(
        one.row.time_ns,
        one.type,
        one.member_id,
        one.group_instance_id,
        _client_of(one, member),
        one.generation,
        one.members,
        one.assignor,
        one.reason or (_failure(one) if one.type is FAILED else None),
        one.error_code or None,
        one.duration_ns,
        history.rebalances[-1].stops_consumption if ended and history.rebalances else None,
        history.rebalances[-1].stopped_ns if ended and history.rebalances else None,
        one.partitions,
        one.tasks,
    )

"""Checks ShareGroupHeartbeat: its fields, and who sends it.

Invariant: a request that is refused changes nothing.
"""

from __future__ import annotations

from ....protocol import ErrorCode
from ..consumer_groups.checks import ABANDON, Refusal
from ..consumer_groups.members import JOIN, LEAVE
from .members import ShareHeartbeat
from .metadata import NEW, ShareGroupMetadata

E = ErrorCode


def invalid_request(request: ShareHeartbeat) -> Refusal | None:
    """Return why the fields of a request are not valid."""
    rules = (
        (not request.member_id.strip(), "MemberId can't be empty."),
        (not request.group_id.strip(), "GroupId can't be empty."),
        (
            request.rack_id is not None and not request.rack_id.strip(),
            "RackId can't be empty.",
        ),
        (
            request.member_epoch == JOIN and not request.topic_names,
            "SubscribedTopicNames must be set in first request.",
        ),
        (request.member_epoch < LEAVE, "MemberEpoch is invalid."),
    )
    message = next((message for broken, message in rules if broken), None)
    return None if message is None else Refusal(E.INVALID_REQUEST, message)


def identity_refusal(group: ShareGroupMetadata, request: ShareHeartbeat) -> Refusal | None:
    """Return why a member may not send a request."""
    if request.member_id in group.subscriptions:
        return _epoch_refusal(group, request)
    if request.member_epoch != JOIN:
        return Refusal(
            E.UNKNOWN_MEMBER_ID,
            f"Member {request.member_id} is not a member of group {group.group_id}.",
        )
    if group.population >= group.config.max_size:
        return Refusal(
            E.GROUP_MAX_SIZE_REACHED,
            f"The share group has reached its maximum capacity of {group.config.max_size} members.",
        )
    return None


def _epoch_refusal(group: ShareGroupMetadata, request: ShareHeartbeat) -> Refusal | None:
    """Refuse a member with another epoch than its own, but one that missed the last response."""
    epoch, current = request.member_epoch, group.current.get(request.member_id, NEW)
    if epoch <= JOIN or epoch in (current.epoch, current.previous_epoch):
        return None
    compared = "greater" if epoch > current.epoch else "smaller"
    return Refusal(
        E.FENCED_MEMBER_EPOCH,
        f"The share group member has a {compared} member epoch ({epoch}) than the one known by "
        f"the group coordinator ({current.epoch}). {ABANDON}",
    )

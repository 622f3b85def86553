"""Takes members out of groups that a request joined, so that the groups can be deleted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from ..messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from ..messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from ..messages.join_group_request import JoinGroupRequest
from ..messages.leave_group_request import LeaveGroupRequest
from ..messages.leave_group_response import LeaveGroupResponse
from ..messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from ..messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from ..messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from ..messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse
from ..primitives import Message

BEFORE_LISTS: Final = 2
"""LeaveGroup up to 2 names one member."""
LEAVES: Final = -1
"""The epoch of a member that leaves (KIP-848)."""


class Departure(NamedTuple):
    """A request that ends a membership; version: None for that of the request that joined."""

    request: Message
    version: int | None
    response: type[Message]


def departure(request: Message, response: Message) -> Departure | None:
    """Return what ends the membership that a request began; None if it began none."""
    leave = LEAVE.get(type(request))
    joined: Any = response
    return None if leave is None or joined.error_code else leave(request, response)


def _leave_group(request: Any, response: Any) -> Departure:
    leave = LeaveGroupRequest(group_id=request.group_id, member_id=response.member_id)
    return Departure(leave, BEFORE_LISTS, LeaveGroupResponse)


def _heartbeat(kind: Any, response_kind: type[Message]) -> Callable[[Any, Any], Departure]:
    def leave(request: Any, response: Any) -> Departure:
        last = kind(
            group_id=request.group_id, member_id=response.member_id or "", member_epoch=LEAVES
        )
        return Departure(last, None, response_kind)

    return leave


LEAVE: Final[Mapping[type[Message], Callable[[Any, Any], Departure]]] = {
    JoinGroupRequest: _leave_group,
    ConsumerGroupHeartbeatRequest: _heartbeat(
        ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
    ),
    ShareGroupHeartbeatRequest: _heartbeat(ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse),
    StreamsGroupHeartbeatRequest: _heartbeat(
        StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
    ),
}

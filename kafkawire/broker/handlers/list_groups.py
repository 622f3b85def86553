"""ListGroups: lists the groups that this broker coordinates.

v0   the first
v1   response +throttle_time_ms
v2   no new fields │ throttled after the response
v3   flexible
v4   request +states_filter; response +group_state
v5   request +types_filter; response +group_type
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ...messages.list_groups_request import ListGroupsRequest
from ...messages.list_groups_response import ListedGroup, ListGroupsResponse
from ...protocol import ErrorCode
from ..broker import Broker
from ..groups.coordinator import Coordinator
from ..groups.streams_groups.members import StreamsGroupState
from ..network.connection import Connection
from ..request import Outcome, Request

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
SHARE: Final = "share"
STREAMS: Final = "streams"
NOT_READY: Final = "not_ready"
"""The name of the state NotReady in a filter."""
STATES_FROM: Final = 4
TYPES_FROM: Final = 5


class Listed(NamedTuple):
    """A group of any type."""

    group_id: str
    protocol_type: str
    state: str
    type: str

    @property
    def filtered_state(self) -> str:
        """Its state as filters name it."""
        is_ready = self.state != StreamsGroupState.NOT_READY.value
        return self.state.lower() if is_ready else NOT_READY


def handle(
    broker: Broker, request: Request, body: ListGroupsRequest, _connection: Connection, now: float
) -> ListGroupsResponse | Outcome:
    """List groups in the requested states and of the requested types."""
    states = {state.lower() for state in body.states_filter}
    types = {kind.lower() for kind in body.types_filter}
    coordinators = broker.coordinators()
    if isinstance(coordinators, ErrorCode):
        return error_response(body, coordinators)
    groups = [group for each in coordinators for group in _listed(each)]
    response = ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state if request.version >= STATES_FROM else "",
                group_type=group.type if request.version >= TYPES_FROM else "",
            )
            for group in groups
            if (not states or group.filtered_state in states) and (not types or group.type in types)
        ]
    )
    return broker.groups.settle(request, response, coordinators, now)


def _listed(coordinator: Coordinator) -> Iterator[Listed]:
    for group in coordinator.groups.values():
        yield Listed(group.group_id, group.protocol_type or "", group.state.value, CLASSIC)
    for consumer_group in coordinator.consumer_groups:
        yield Listed(consumer_group.group_id, CONSUMER, consumer_group.state.value, CONSUMER)
    for share_group in coordinator.share_groups:
        yield Listed(share_group.group_id, SHARE, share_group.state.value, SHARE)
    for streams_group in coordinator.streams_groups:
        yield Listed(streams_group.group_id, STREAMS, streams_group.state.value, STREAMS)


def error_response(_body: ListGroupsRequest, error: ErrorCode) -> ListGroupsResponse:
    """Return a response with the error."""
    return ListGroupsResponse(error_code=error)

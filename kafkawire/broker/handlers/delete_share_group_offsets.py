"""DeleteShareGroupOffsets: forgets where a share group without members is in topics (KIP-932).

v0   the first; flexible
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...messages.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest
from ...messages.delete_share_group_offsets_response import (
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..groups.group_types import absent_message, empty_group
from ..groups.share_groups.group import ShareGroup
from ..network.connection import Connection
from ..request import DELAYED, Outcome, Request

E = ErrorCode
NO_TOPIC_ID: Final = bytes(16)


def handle(
    broker: Broker,
    request: Request,
    body: DeleteShareGroupOffsetsRequest,
    _connection: Connection,
    now: float,
) -> DeleteShareGroupOffsetsResponse | Outcome:
    """Delete the state of each topic."""
    unserved = broker.share_groups_error
    if unserved:
        return error_response(body, unserved)
    coordinator = broker.coordinator(body.group_id)
    if isinstance(coordinator, ErrorCode):
        return error_response(body, coordinator)
    group = empty_group(coordinator, body.group_id)
    if group is E.GROUP_ID_NOT_FOUND:
        message = absent_message(coordinator, body.group_id, "share")
        return DeleteShareGroupOffsetsResponse(error_code=group, error_message=message)
    if isinstance(group, ErrorCode):
        return error_response(body, group)
    response = DeleteShareGroupOffsetsResponse()
    results = _results(broker, group, body, response)

    def done(deleted: Mapping[tuple[bytes, int], Any], now: float) -> None:
        for (topic_id, _), each in deleted.items():
            if each.error_code:
                results[topic_id].error_code = each.error_code
                results[topic_id].error_message = each.error_message
        settled = broker.groups.settle(request, response, (coordinator,), now)
        if not isinstance(settled, Outcome):
            broker.channel.respond(request.reply_to, settled, now)

    coordinator.share_groups.delete_states(group, frozenset(results), done, now)
    return DELAYED


def _results(
    broker: Broker,
    group: ShareGroup,
    body: DeleteShareGroupOffsetsRequest,
    response: DeleteShareGroupOffsetsResponse,
) -> dict[bytes, DeleteShareGroupOffsetsResponseTopic]:
    """Add a result for each topic to the response; return those of topics with state."""
    results: dict[bytes, DeleteShareGroupOffsetsResponseTopic] = {}
    for topic in body.topics:
        existing = broker.topics.get(topic.topic_name)
        result = DeleteShareGroupOffsetsResponseTopic(
            topic_name=topic.topic_name,
            topic_id=NO_TOPIC_ID if existing is None else existing.topic_id,
        )
        if existing is not None and existing.topic_id in group.topics_with_state:
            results[existing.topic_id] = result
        else:
            result.error_code = E.UNKNOWN_TOPIC_OR_PARTITION
            result.error_message = "This server does not host this topic-partition."
        response.responses.append(result)
    return results


def error_response(
    _body: DeleteShareGroupOffsetsRequest, error: ErrorCode
) -> DeleteShareGroupOffsetsResponse:
    """Return a response with the error."""
    return DeleteShareGroupOffsetsResponse(error_code=error, error_message=error.name)

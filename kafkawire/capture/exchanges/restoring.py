"""Makes exchanges that restore a fetch session, where requests before were handled elsewhere.

After `FetchSessions` has handled the exchange, the session has these partitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...messages.api_key import ApiKey
from ...messages.fetch_request import FetchRequest, FetchTopic
from ...messages.fetch_response import FetchResponse
from ..rows import Row, Status
from .exchanges import Exchange
from .fetch_sessions import INITIAL_EPOCH, FetchSessions, Key, RequestedPartition, State
from .topic_ids import TopicNames

ZERO: Final = bytes(16)

MAX_HISTORY: Final = 32
"""Requests kept of a session; then one takes their place."""

Ends = tuple[int, str, str]
"""A connection, its client and its broker."""


def with_session(ends: Ends, request: Row, id: int) -> Exchange:
    """Make the exchange of a Fetch whose response names a session."""
    response = _row("response", FetchResponse(session_id=id), request)
    return Exchange(*ends, request, response._replace(request_packet=request.packet))


def replayed(
    ends: Ends,
    requests: Iterable[Row],
    id: int,
    names: TopicNames,
    before: State[dict[Key, RequestedPartition]] | None = None,
) -> State[dict[Key, RequestedPartition]] | None:
    """Return what some requests make of a session. before: what it was, if it was known."""
    sessions = FetchSessions(names)
    sessions.sessions.replace(ends[0], id, before)
    for request in requests:
        sessions.expand(with_session(ends, request, id))
    return sessions.sessions.get(ends[0], id)


def restoring_request(
    like: Row, id: int, partitions: Iterable[RequestedPartition], complete: bool
) -> Row:
    """Make a Fetch that has the partitions of a session.

    It opens the session, or, if not complete, is one within a session whose start was not captured.
    """
    topics: list[FetchTopic] = []
    for partition in partitions:
        topic = partition.topic
        if not topics or (topics[-1].topic, topics[-1].topic_id) != (
            topic.name or "",
            topic.id or ZERO,
        ):
            topics.append(FetchTopic(topic=topic.name or "", topic_id=topic.id or ZERO))
            topics[-1].partitions = []
        topics[-1].partitions.append(partition.request)
    message = FetchRequest(
        session_id=0 if complete else id,
        session_epoch=INITIAL_EPOCH if complete else 1,
        topics=topics,
    )
    return _row("request", message, like)


def _row(direction: str, message: FetchRequest | FetchResponse, like: Row) -> Row:
    return Row(
        like.packet,
        like.time_ns,
        direction,
        0,
        Status.OK,
        api_key=ApiKey.FETCH,
        api_name=like.api_name,
        api_version=like.api_version,
        body_version=like.api_version,
        message=message,
    )

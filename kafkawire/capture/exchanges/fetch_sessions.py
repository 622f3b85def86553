"""Expands incremental fetch sessions (KIP-227): all partitions that a Fetch requests.

The state of a session is the result of its requests, in order, on one connection. If the
session was opened before the capture, its known partitions are marked incomplete. (Clients open a
new session after a disconnect; and rows of a connection never depend on another connection.)

    session 0, epoch 0   a full fetch; the response has the id of the new session
    session s, epoch n   incremental: listed partitions are added or changed, forgotten ones removed
    epoch -1             a full fetch; closes the session, if any
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar, final

from ...messages.api_key import ApiKey
from ...messages.fetch_request import FetchPartition, FetchRequest
from ...messages.fetch_response import FetchResponse
from .exchanges import Exchange
from .topic_ids import Topic, TopicKey, TopicNames

FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
MAX_SESSIONS: Final = 1 << 14
"""Sessions stored; brokers keep 1000 each by default. The oldest are dropped first."""


@final
class RequestedPartition:
    """A partition that a Fetch requests; request: as the session's last Fetch lists it.

    columns: what the `partitions` table makes of `request` in this version, kept for the session's
    next Fetch; version: -1 for none.
    """

    __slots__ = ("columns", "partition", "request", "topic", "version")

    def __init__(self, topic: Topic, partition: int, request: FetchPartition) -> None:
        self.topic: Topic = topic
        self.partition: int = partition
        self.request: FetchPartition = request
        self.columns: list[Any] = []
        self.version: int = -1


Key: TypeAlias = tuple[TopicKey, int]
"""The key of a partition: its topic's key and its index."""


class ExpandedFetch(NamedTuple):
    """All partitions that a Fetch requests.

    listed: those that the request itself lists. complete: whether the whole session is known.
    """

    requested: dict[Key, RequestedPartition]
    listed: Collection[Key]
    complete: bool


Value = TypeVar("Value")
Partitions = TypeVar("Partitions")

State: TypeAlias = tuple[Partitions, bool]
"""The partitions of a session, and whether they are complete."""


def merged(
    requested: dict[Key, Value], listed: dict[Key, Value], forgotten: set[Key]
) -> dict[Key, Value]:
    """Return the partitions of a session after a request that lists and forgets some.

    Forgotten partitions are removed, unless the same request lists them again.
    """
    return {
        key: each
        for key, each in (requested | listed).items()
        if key not in forgotten or key in listed
    }


class Sessions(Generic[Partitions]):
    """The fetch sessions of a capture; Partitions: how those of a session are stored.

    empty: none. merge: as `merged`.
    """

    def __init__(
        self,
        empty: Partitions,
        merge: Callable[[Partitions, Partitions, set[Key]], Partitions],
    ) -> None:
        self._empty = empty
        self._merge = merge
        self._sessions: dict[tuple[int, int], State[Partitions]] = {}

    def apply(
        self,
        connection: int,
        id: int,
        epoch: int,
        listed: Partitions,
        forgotten: set[Key],
        response: tuple[int, int] | None,
    ) -> State[Partitions]:
        """Apply a Fetch to its session; return all requested partitions.

        Also returns whether they are complete. The result must not be modified; it is the same
        object as before if the session did not change.

        response: error code and session id of the response.
        """
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop((connection, id), None)
            requested, complete = self._merge(self._empty, listed, set()), True
        else:
            requested, complete = self._sessions.pop((connection, id), (self._empty, False))
            if listed or forgotten:
                requested = self._merge(requested, listed, forgotten)
        if epoch != FINAL_EPOCH:
            self._remember(connection, id, response, requested, complete)
        return requested, complete

    def get(self, connection: int, id: int) -> State[Partitions] | None:
        """Return a session; None if it is unknown."""
        return self._sessions.get((connection, id))

    def replace(self, connection: int, id: int, state: State[Partitions] | None) -> None:
        """Replace a session; None: it is unknown."""
        self._sessions.pop((connection, id), None)
        if state is not None:
            self._sessions[connection, id] = state

    def _remember(
        self,
        connection: int,
        id: int,
        response: tuple[int, int] | None,
        requested: Partitions,
        complete: bool,
    ) -> None:
        """Store the session named by the response; without a response, by the request."""
        if response is not None:
            error_code, id = response
            if error_code:
                return  # the broker does not have the session: the client opens a new one
        if id:
            self._sessions[connection, id] = requested, complete
            if len(self._sessions) > MAX_SESSIONS:
                del self._sessions[next(iter(self._sessions))]


class FetchSessions:
    """The fetch sessions of all connections of a capture. sessions: their partitions."""

    def __init__(self, names: TopicNames) -> None:
        self._names = names
        self.sessions: Sessions[dict[Key, RequestedPartition]] = Sessions({}, merged)

    def expand(self, exchange: Exchange) -> ExpandedFetch | None:
        """Return all partitions that a Fetch requests; call it once for each exchange, in order.

        Returns None for other exchanges, and if the request was not decoded.
        """
        row = exchange.request
        if row is None or row.api_key != ApiKey.FETCH:
            return None
        request = row.message
        if not isinstance(request, FetchRequest):
            return None
        response = exchange.response.message if exchange.response is not None else None
        listed = listed_by(request, self._names)
        requested, complete = self.sessions.apply(
            exchange.connection,
            request.session_id,
            request.session_epoch,
            listed,
            forgotten_by(request, self._names),
            (response.error_code, response.session_id)
            if isinstance(response, FetchResponse)
            else None,
        )
        return ExpandedFetch(requested, listed, complete)


def listed_by(request: FetchRequest, names: TopicNames) -> dict[Key, RequestedPartition]:
    """Return the partitions that a Fetch lists itself."""
    listed: dict[Key, RequestedPartition] = {}
    for entry in request.topics:
        topic = names.topic(entry.topic, entry.topic_id)
        for each in entry.partitions:
            listed[topic.key, each.partition] = RequestedPartition(topic, each.partition, each)
    return listed


def forgotten_by(request: FetchRequest, names: TopicNames) -> set[Key]:
    """Return the partitions that a Fetch removes from its session."""
    return {
        (names.topic(entry.topic, entry.topic_id).key, partition)
        for entry in request.forgotten_topics_data
        for partition in entry.partitions
    }

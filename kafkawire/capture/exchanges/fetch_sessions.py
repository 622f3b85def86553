"""Incremental fetch sessions (KIP-227) expanded: what a Fetch asks for, as the broker knows it.

Law: a session is what its requests made it, one after the other, on one connection; where its
beginning is not there, what is known of it is given and said to be incomplete. (Clients begin anew
after a disconnect; and what is said of a connection never depends on another.)

    session 0, epoch 0   asks for what it lists; the response's id names the session it opens
    session s, epoch n   what it lists is added or changed, what it forgets leaves
    epoch -1             asks for what it lists; its session, if any, is closed
"""

from __future__ import annotations

from typing import Final, Generic, NamedTuple, TypeVar

from ...messages.api_key import ApiKey
from ...messages.fetch_request import FetchPartition, FetchRequest
from ...messages.fetch_response import FetchResponse
from .exchanges import Exchange
from .topic_ids import Topic, TopicNames

FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
MAX_SESSIONS: Final = 1 << 14
"""Sessions remembered; brokers keep 1000 each by default. The oldest go first."""


class Wanted(NamedTuple):
    """A partition that a Fetch asks for. listed: whether this request says so itself."""

    topic: Topic
    partition: int
    asked: FetchPartition
    listed: bool


class InFlightRequest(NamedTuple):
    """All that a Fetch asks for; complete: whether the session was seen from its beginning."""

    partitions: tuple[Wanted, ...]
    complete: bool


Key = tuple[object, int]
"""What tells a partition from others: its topic's key, its number."""

Held = TypeVar("Held")


class Sessions(Generic[Held]):
    """The sessions of a capture, whatever is held of their partitions."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[int, int], tuple[dict[Key, Held], bool]] = {}

    def turn(
        self,
        connection: int,
        id: int,
        epoch: int,
        listed: dict[Key, Held],
        forgotten: set[Key],
        answer: tuple[int, int] | None,
    ) -> tuple[dict[Key, Held], bool]:
        """Take a Fetch; say what it asks for, and whether that is all. What is given back is not to
        be changed; it is the same object as before while a session stays as it is.

        answer: error code and session id of the response.
        """
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop((connection, id), None)
            wanted, complete = listed, True
        else:
            wanted, complete = self._sessions.pop((connection, id), ({}, False))
            if listed or forgotten:
                # what is forgotten leaves, unless the same request lists it anew
                wanted = {
                    key: one
                    for key, one in (wanted | listed).items()
                    if key not in forgotten or key in listed
                }
        if epoch != FINAL_EPOCH:
            self._remember(connection, id, answer, wanted, complete)
        return wanted, complete

    def _remember(
        self,
        connection: int,
        id: int,
        answer: tuple[int, int] | None,
        wanted: dict[Key, Held],
        complete: bool,
    ) -> None:
        """Keep the session that the response names; without a response, the one that was asked."""
        if answer is not None:
            error_code, id = answer
            if error_code:
                return  # the broker knows no such session: the client begins anew
        if id:
            self._sessions[connection, id] = wanted, complete
            if len(self._sessions) > MAX_SESSIONS:
                del self._sessions[next(iter(self._sessions))]


class FetchSessions:
    """The sessions of all brokers of a capture."""

    def __init__(self, names: TopicNames) -> None:
        self._names = names
        self._sessions: Sessions[Wanted] = Sessions()

    def expand(self, exchange: Exchange) -> InFlightRequest | None:
        """Say what a Fetch asks for; None for other exchanges, and where its request cannot be
        read. Give each exchange once, in order.
        """
        told = exchange.request
        if told is None or told.api_key != ApiKey.FETCH:
            return None
        request = told.message
        if not isinstance(request, FetchRequest):
            return None
        answer = exchange.response.message if exchange.response is not None else None
        listed = listed_by(request, self._names)
        wanted, complete = self._sessions.turn(
            exchange.connection,
            request.session_id,
            request.session_epoch,
            listed,
            forgotten_by(request, self._names),
            (answer.error_code, answer.session_id) if isinstance(answer, FetchResponse) else None,
        )
        partitions = tuple(
            one if key in listed else one._replace(listed=False) for key, one in wanted.items()
        )
        return InFlightRequest(partitions, complete)


def listed_by(request: FetchRequest, names: TopicNames) -> dict[Key, Wanted]:
    """Find the partitions that a Fetch lists itself."""
    made: dict[Key, Wanted] = {}
    for entry in request.topics:
        topic = names.topic(entry.topic, entry.topic_id)
        for one in entry.partitions:
            made[topic.key, one.partition] = Wanted(topic, one.partition, one, True)
    return made


def forgotten_by(request: FetchRequest, names: TopicNames) -> set[Key]:
    """Find the partitions that a Fetch takes out of its session."""
    return {
        (names.topic(entry.topic, entry.topic_id).key, partition)
        for entry in request.forgotten_topics_data
        for partition in entry.partitions
    }

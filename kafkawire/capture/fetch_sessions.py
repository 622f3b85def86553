"""Incremental fetch sessions (KIP-227) expanded: what a Fetch asks for, as the broker knows it.

Law: a session is what its requests made it, one after the other, on one connection; where its
beginning is not there, what is known of it is given and said to be incomplete. (Clients begin anew
after a disconnect; and what is said of a connection never depends on another.)

    session 0, epoch 0   asks for what it lists; the response's id names the session it opens
    session s, epoch n   what it lists is added or changed, what it forgets leaves
    epoch -1             asks for what it lists; its session, if any, is closed
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..messages.api_key import ApiKey
from ..messages.fetch_request import FetchPartition, FetchRequest
from ..messages.fetch_response import FetchResponse
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


class Asked(NamedTuple):
    """All that a Fetch asks for; complete: whether the session was seen from its beginning."""

    partitions: tuple[Wanted, ...]
    complete: bool


_Key = tuple[object, int]
_Session = dict[_Key, Wanted]


class FetchSessions:
    """The sessions of all brokers of a capture."""

    def __init__(self, names: TopicNames) -> None:
        self._names = names
        self._sessions: dict[tuple[int, int], tuple[_Session, bool]] = {}

    def expand(self, exchange: Exchange) -> Asked | None:
        """Say what a Fetch asks for; None for other exchanges, and where its request cannot be
        read. Give each exchange once, in order.
        """
        told = exchange.request
        if told is None or told.api_key != ApiKey.FETCH:
            return None
        request = told.message
        if not isinstance(request, FetchRequest):
            return None
        connection, id = exchange.connection, request.session_id
        listed = self._listed(request)
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop((connection, id), None)
            wanted, complete = listed, True
        else:
            before, complete = self._sessions.pop((connection, id), ({}, False))
            wanted = {key: one._replace(listed=False) for key, one in before.items()}
            wanted = self._without_forgotten(request, wanted | listed, listed)
        if request.session_epoch != FINAL_EPOCH:
            self._remember(exchange, id, wanted, complete)
        return Asked(tuple(wanted.values()), complete)

    def _listed(self, request: FetchRequest) -> _Session:
        made: _Session = {}
        for entry in request.topics:
            topic = self._names.topic(entry.topic, entry.topic_id)
            for one in entry.partitions:
                made[topic.key, one.partition] = Wanted(topic, one.partition, one, True)
        return made

    def _without_forgotten(
        self, request: FetchRequest, wanted: _Session, listed: _Session
    ) -> _Session:
        """Leave out what is forgotten, unless the same request lists it anew."""
        forgotten = {
            (self._names.topic(entry.topic, entry.topic_id).key, partition)
            for entry in request.forgotten_topics_data
            for partition in entry.partitions
        }
        return {k: one for k, one in wanted.items() if k not in forgotten or k in listed}

    def _remember(self, exchange: Exchange, id: int, wanted: _Session, complete: bool) -> None:
        """Keep the session that the response names; without a response, the one that was asked."""
        answer = exchange.response.message if exchange.response is not None else None
        if isinstance(answer, FetchResponse):
            if answer.error_code:
                return  # the broker knows no such session: the client begins anew
            id = answer.session_id
        if id:
            self._sessions[exchange.connection, id] = wanted, complete
            if len(self._sessions) > MAX_SESSIONS:
                del self._sessions[next(iter(self._sessions))]

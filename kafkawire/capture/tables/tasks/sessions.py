"""Tracks fetch sessions across tasks: what a task must know of the requests before it.

A process that begins with no sessions, and replays the requests that `handle` returns before
an exchange, finds the same partitions in each Fetch as one that saw the whole capture.

    Fetch with its response --handle--> the requests that made its session what it is, if the task
                                        has not seen them; most change nothing, and stay undecoded
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final, NamedTuple, TypeAlias

from ....messages.api_key import ApiKey
from ....messages.fetch_request import FetchRequest
from ....primitives import Limits
from ...exchanges import restoring
from ...exchanges.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, MAX_SESSIONS
from ...exchanges.topic_ids import TopicNames
from ...frames.decoding import LocatedItem, RawFrame, located
from ...rows import Row
from ..extraction.body_facts import Session
from ..extraction.messages import Extractor
from .pairing import ItemPair, ItemValues, TaskMessage, length, values_of

SESSIONS_SINCE: Final = 7
FLEXIBLE_SINCE: Final = 12
NO_REPLICA_SINCE: Final = 15
"""Versions of Fetch: with sessions (KIP-227), with tagged fields, without the replica id (KIP-903).
"""

PARTITION_BYTES: Final = 24
"""The least that a partition takes in a Fetch of SESSIONS_SINCE."""

_Id = tuple[int, int]


class History(NamedTuple):
    """The requests that made a session what it is, in order.

    versions: of the session after each, unique numbers.
    """

    requests: list[LocatedItem]
    versions: list[int]


SessionValues: TypeAlias = tuple[int, int, list[ItemValues], list[int]]
"""A session: its connection and id, the values of its history."""

NO_HISTORY: Final = History([], [])


class Replay(NamedTuple):
    """A session, by its id, and what restores it; without requests, the session is unknown."""

    session: int
    history: History


class _Header(NamedTuple):
    """What the first bytes of a Fetch request say.

    is_empty: whether it neither lists partitions nor forgets any.
    """

    session: int
    epoch: int
    is_empty: bool


class SessionStates:
    """The fetch sessions of a capture, and those that the current task knows.

    Of each session it keeps the requests that changed it, from the first one on. listing: bytes of
    those that list the partitions of the last exchange that was handled; 0 if it lists its own.
    """

    def __init__(self, names: TopicNames, extractor: Extractor, limits: Limits) -> None:
        self._names = names
        self._extractor = extractor
        self._limits = limits
        self._histories: dict[_Id, History] = {}
        self._version: int = 0
        self._in_task: set[_Id] = set()
        self.listing: int = 0

    def begin_task(self) -> None:
        """Begin a task, which knows no session."""
        self._in_task.clear()

    def snapshot(self, connections: Container[int]) -> tuple[int, list[SessionValues]]:
        """Return the sessions of some connections, for `restore` in this or another process.

        `capture.snapshot` writes them.
        """
        sessions = [
            (id[0], id[1], [values_of(each) for each in history.requests], history.versions)
            for id, history in self._histories.items()
            if id[0] in connections
        ]
        return self._version, sessions

    def restore(self, state: tuple[int, list[SessionValues]]) -> None:
        """Replace the sessions by those of a snapshot; the task that begins knows none of them."""
        self._version, sessions = state
        self._histories = {
            (connection, id): History([LocatedItem(*each) for each in requests], versions)
            for connection, id, requests, versions in sessions
        }
        self.begin_task()

    def left(self) -> list[tuple[_Id, int]]:
        """Return the sessions that the task knows, and their versions."""
        versions = []
        for id in self._in_task:
            history = self._histories.get(id)
            if history is not None and history.versions:
                versions.append((id, history.versions[-1]))
        return versions

    def handle(self, pair: ItemPair) -> Replay | None:
        """Handle the next exchange; return what must be replayed before it in the task."""
        request, response = pair.request, pair.response
        self.listing = 0
        if request is None:
            return None
        header = _header(request.located.item)
        if header is None:
            return None
        received = _response_header(response)
        if header.session == 0 and (received is None or received[1] == 0):
            return None
        id = pair.ends.connection, header.session
        replay = None
        if header.epoch not in (INITIAL_EPOCH, FINAL_EPOCH):
            replay = self._replay(id)
            for each in self._histories.get(id, NO_HISTORY).requests:
                self.listing += length(each)
            if header.is_empty and received in (None, (0, header.session)):
                self._remember(id, self._histories.pop(id, NO_HISTORY))
                return replay
        self._apply(pair, request, id[0])
        return replay

    def _apply(self, pair: ItemPair, request: TaskMessage, connection: int) -> None:
        """Change the sessions, as `fetch_sessions.Sessions` does."""
        sent = self._session(request)
        if sent is None:
            return
        received = None if pair.response is None else self._session(pair.response)
        id = connection, sent.id
        history = self._histories.pop(id, NO_HISTORY)
        self._in_task.discard(id)
        if sent.epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            history = self._longer(NO_HISTORY, request.located)
        elif sent.listed or sent.forgotten:
            history = self._longer(history, request.located)
            if len(history.requests) > restoring.MAX_HISTORY:
                history = self._longer(NO_HISTORY, self._outcome(history, pair, sent.id))
        named = sent.id if received is None else received.id
        has_failed = received is not None and received.error_code != 0
        if sent.epoch == FINAL_EPOCH or has_failed or not named:
            return
        self._remember((connection, named), history)

    def _remember(self, id: _Id, history: History) -> None:
        """Store a session that the task knows; the oldest are dropped first."""
        self._histories[id] = history
        self._in_task.add(id)
        if len(self._histories) > MAX_SESSIONS:
            del self._histories[next(iter(self._histories))]

    def _session(self, message: TaskMessage) -> Session | None:
        item = message.located.item
        if isinstance(item, RawFrame):
            return self._extractor.extract(item).facts.session
        return self._extractor.row(item).facts.session

    def _replay(self, id: _Id) -> Replay | None:
        """Return what brings the task's session to the current state; None if it is."""
        history = self._histories.get(id)
        if (id in self._in_task) is (history is not None):
            return None
        if history is None:
            self._in_task.discard(id)
            return Replay(id[1], NO_HISTORY)
        self._in_task.add(id)
        return Replay(id[1], history) if history.requests else None

    def _longer(self, history: History, request: LocatedItem) -> History:
        self._version += 1
        return History([*history.requests, request], [*history.versions, self._version])

    def _outcome(self, history: History, pair: ItemPair, id: int) -> LocatedItem:
        """Make one request with the outcome of a history."""
        rows = [located(each, self._limits).row for each in history.requests]
        ends = pair.ends
        where = ends.connection, ends.client, ends.broker
        state = restoring.replayed(where, rows, id, self._names)
        assert state is not None
        requested, complete = state
        row = restoring.restoring_request(rows[-1], id, requested.values(), complete)
        return LocatedItem(*where, row._replace(length=PARTITION_BYTES * len(requested)))


def _header(item: Row | RawFrame) -> _Header | None:
    """Read the session of a Fetch request; None for anything else."""
    if not isinstance(item, RawFrame):
        message = item.message
        if not isinstance(message, FetchRequest):
            return None
        return _Header(message.session_id, message.session_epoch, False)
    request = item.request
    if request is None or request.api_key != ApiKey.FETCH or item.body < 0:
        return None
    version = request.api_version
    if version < SESSIONS_SINCE:
        return None
    frame = item.frame
    position = item.body + (17 if version < NO_REPLICA_SINCE else 13)
    session = int.from_bytes(frame[position : position + 4], "big", signed=True)
    epoch = int.from_bytes(frame[position + 4 : position + 8], "big", signed=True)
    empty = b"\1\1" if version >= FLEXIBLE_SINCE else bytes(8)
    return _Header(session, epoch, frame[position + 8 : position + 8 + len(empty)] == empty)


def _response_header(response: TaskMessage | None) -> tuple[int, int] | None:
    """Read the error code and the session id of a Fetch response; None without a response."""
    if response is None:
        return None
    item = response.located.item
    if not isinstance(item, RawFrame) or item.request is None:
        return -1, -1
    position = 8
    if item.request.api_version >= FLEXIBLE_SINCE:
        if item.frame[4:5] != b"\0":  # tagged fields in the header
            return -1, -1
        position = 9
    error_code = int.from_bytes(item.frame[position : position + 2], "big", signed=True)
    return error_code, int.from_bytes(item.frame[position + 2 : position + 6], "big", signed=True)

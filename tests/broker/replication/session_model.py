"""A client and a broker with an incremental fetch session, at random; and rules to take out.

After each response, the client knows the newest state of every partition of its session, in
the positions that it requested last; partitions with records take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final
from unittest.mock import patch

from kafkawire import ErrorCode
from kafkawire.broker import fetch_sessions
from kafkawire.broker.fetch_sessions import (
    EVICTABLE_AFTER,
    Cached,
    FetchContext,
    Session,
    Sessions,
)
from kafkawire.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from kafkawire.messages.fetch_response import PartitionData
from kafkawire.replication.fetch_params import targets_of

E = ErrorCode
NAMES: Final = ("a", "b", "c", "d")
VERSION: Final = 12
WITH_IDS: Final = 13
SLOTS: Final = 3
STEPS: Final = 150


@dataclass
class State:
    """What a broker has of a partition. unread: whether there are records; waits: for how long."""

    high_watermark: int = 0
    log_start: int = 0
    error: ErrorCode = E.NONE
    unread: bool = False
    waits: int = 0

    @property
    def known(self) -> tuple[int, int, int]:
        """What a client is to know of it."""
        return self.high_watermark, self.log_start, self.error


@dataclass
class Client:
    """A client: its session, the positions that it fetches from, and what it knows.

    used, turn: when it used its session last, and in which step.
    """

    session: int = 0
    epoch: int = 0
    positions: dict[str, int] = field(default_factory=dict)
    known: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    used: float = 0.0
    turn: int = 0


class Model:
    """One run."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.now = 0.0
        self.turn = 0
        self.states = {name: State() for name in NAMES}
        self.sessions = Sessions(SLOTS, lambda: self.rng.randbytes(16), len(NAMES))
        self.clients = [Client() for _ in range(SLOTS + 1)]

    def run(self) -> None:
        """Take all steps. AssertionError for what does not hold."""
        for self.turn in range(STEPS):
            self.now += self.rng.choice((0.0, 1.0, 20.0))
            self._change(self.states[self.rng.choice(NAMES)])
            self._fetch(self.rng.choice(self.clients))

    def _change(self, state: State) -> None:
        what = self.rng.randrange(5)
        if what == 0:
            state.high_watermark += 1
        elif what == 1:
            state.log_start += 1
        elif what == 2:
            state.error = E.NONE if state.error else E.OFFSET_OUT_OF_RANGE
        elif what == 3:
            state.unread = True

    def _fetch(self, client: Client) -> None:
        what = self.rng.random()
        if client.session and what < 0.05:
            self._out_of_step(client)
        elif client.session and what < 0.1:
            self._close(client)
        elif not client.session or what < 0.15:
            self._open(client)
        else:
            self._go_on(client)

    def _open(self, client: Client) -> None:
        """Begin a session, in place of an old one; a slot is free if one is old enough."""
        others = [each for each in self.clients if each.session and each is not client]
        idle = [each for each in others if self.now - each.used >= EVICTABLE_AFTER]
        client.positions = {name: self.rng.randrange(9) for name in self._some()}
        request = self._request(client.session, 0, client.positions)
        context = self._resolved(request)
        full = len(others) >= SLOTS and not idle
        assert (context.session is None) == full, "sessions in use stay"
        evicted = min(idle, key=lambda each: each.turn) if len(others) >= SLOTS and idle else None
        if evicted is not None:
            gone = self._request(evicted.session, evicted.epoch, {})
            assert self._resolve(gone) == E.FETCH_SESSION_ID_NOT_FOUND, "the oldest made room"
            evicted.session = 0
        client.session = 0 if context.session is None else context.session.id
        client.epoch, client.known = 1, {}
        client.used, client.turn = self.now, self.turn
        for state in self.states.values():
            state.waits = 0
        self._respond(client, context)

    def _go_on(self, client: Client) -> None:
        """Send what has changed: new positions, new partitions, forgotten ones."""
        changed = {name: self.rng.randrange(9) for name in self._some() if self.rng.random() < 0.5}
        client.positions |= changed
        forgotten = [
            name
            for name in client.positions
            if name not in changed and len(client.positions) > 1 and self.rng.random() < 0.1
        ][:1]
        for name in forgotten:
            del client.positions[name]
            client.known.pop(name, None)
            self.states[name].waits = 0
        request = self._request(client.session, client.epoch, changed)
        request.forgotten_topics_data = [
            ForgottenTopic(topic=name, partitions=[0]) for name in forgotten
        ]
        client.epoch += 1
        client.used, client.turn = self.now, self.turn
        self._respond(client, self._resolved(request))

    def _out_of_step(self, client: Client) -> None:
        """Repeat a request, or use topic ids where the session has names."""
        again = self._request(client.session, client.epoch - 1 or 7, {})
        assert self._resolve(again) == E.INVALID_FETCH_SESSION_EPOCH
        current = self._request(client.session, client.epoch, {})
        assert self._resolve(current, WITH_IDS) == E.FETCH_SESSION_TOPIC_ID_ERROR

    def _close(self, client: Client) -> None:
        context = self._resolved(self._request(client.session, -1, {}))
        assert context.session is None
        gone = self._request(client.session, client.epoch, {})
        assert self._resolve(gone) == E.FETCH_SESSION_ID_NOT_FOUND
        client.session = 0

    def _respond(self, client: Client, context: FetchContext) -> None:
        """Respond with records of one partition; check what the client then knows."""
        assert {each.topic: each.requested.fetch_offset for each in context.targets} == (
            client.positions
        )
        room = True
        for target in context.targets:
            state = self.states[target.topic]
            has_records = room and state.unread and not state.error
            data = PartitionData(
                partition_index=0,
                error_code=state.error,
                high_watermark=state.high_watermark,
                log_start_offset=state.log_start,
            )
            if context.includes(target, data, has_records):
                client.known[target.topic] = state.known
            else:
                assert not has_records
            room = room and not has_records
            state.waits = 0 if has_records or state.error or not state.unread else state.waits + 1
            if context.session is not None and len(self.clients) == 1:
                assert state.waits < len(NAMES), "partitions take turns"
        if context.session is not None:
            assert client.known == {name: self.states[name].known for name in client.positions}

    def _some(self) -> list[str]:
        return self.rng.sample(NAMES, self.rng.randint(1, len(NAMES)))

    def _request(self, session: int, epoch: int, positions: dict[str, int]) -> FetchRequest:
        return FetchRequest(
            session_id=session,
            session_epoch=epoch,
            topics=[
                FetchTopic(topic=name, partitions=[FetchPartition(partition=0, fetch_offset=at)])
                for name, at in positions.items()
            ],
        )

    def _resolve(self, request: FetchRequest, version: int = VERSION) -> FetchContext | ErrorCode:
        return self.sessions.resolve(request, version, self.now)

    def _resolved(self, request: FetchRequest) -> FetchContext:
        context = self._resolve(request)
        assert isinstance(context, FetchContext)
        return context


def run(seed: int) -> None:
    """Run a model: of several clients, and of one."""
    Model(seed).run()
    alone = Model(seed)
    del alone.clients[1:]
    alone.run()


# -- mutants


def _ignoring(name: str) -> Callable[[Cached, PartitionData, bool], bool]:
    """Do not see that a field has changed."""
    maybe_update = Cached.maybe_update

    def update(self: Cached, data: PartitionData, has_records: bool) -> bool:
        setattr(self, name, getattr(data, name))
        return maybe_update(self, data, has_records)

    return update


def _error_stays(self: Cached, data: PartitionData, has_records: bool) -> bool:
    same = (self.high_watermark, self.log_start_offset) == (
        data.high_watermark,
        data.log_start_offset,
    )
    self.high_watermark, self.log_start_offset = data.high_watermark, data.log_start_offset
    return bool(has_records or data.error_code or not same)


def _update_without(forgotten: bool) -> Callable[[Session, FetchRequest], None]:
    update = Session.update

    def changed(self: Session, request: FetchRequest) -> None:
        before = dict(self.partitions)
        positions = {key: each.target for key, each in before.items()}
        update(self, request)
        if forgotten:
            self.partitions = before | self.partitions
        else:
            for key, target in positions.items():
                if key in self.partitions:
                    self.partitions[key].target = target

    return changed


def _resolve_with(change: Callable[[Sessions, FetchRequest], None]) -> Any:
    resolve = Sessions.resolve

    def resolved(self: Sessions, request: FetchRequest, version: int, now: float) -> Any:
        change(self, request)
        return resolve(self, request, version, now)

    return patch.object(Sessions, "resolve", resolved)


def _in_step(sessions: Sessions, request: FetchRequest) -> None:
    session = sessions._sessions.get(request.session_id)
    if session is not None:
        session.epoch = request.session_epoch


def _any_ids(sessions: Sessions, _request: FetchRequest) -> None:
    for session in sessions._sessions.values():
        session.by_id = AnyIds()  # type: ignore[assignment]


class AnyIds:
    """Equal to whatever a request has."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, _other: object) -> bool:
        return True

    def __ne__(self, _other: object) -> bool:
        return False


@contextmanager
def _kept_after_close() -> Iterator[None]:
    resolve = Sessions.resolve

    def resolved(self: Sessions, request: FetchRequest, version: int, now: float) -> Any:
        session = self._sessions.get(request.session_id)
        result = resolve(self, request, version, now)
        if session is not None and request.session_epoch == fetch_sessions.FINAL_EPOCH:
            self._sessions[session.id] = session
        return result

    with patch.object(Sessions, "resolve", resolved):
        yield


@contextmanager
def _first_in_first_out() -> Iterator[None]:
    """Evict the session that was opened first."""
    resolve = Sessions.resolve

    def resolved(self: Sessions, request: FetchRequest, version: int, now: float) -> Any:
        before = list(self._sessions)
        result = resolve(self, request, version, now)
        for number in [*before, *(each for each in self._sessions if each not in before)]:
            if number in self._sessions:
                self._sessions.move_to_end(number)
        return result

    with patch.object(Sessions, "resolve", resolved):
        yield


MUTANTS: Final[dict[str, Callable[[], Any]]] = {
    "high watermarks are not compared": lambda: patch.object(
        Cached, "maybe_update", _ignoring("high_watermark")
    ),
    "log start offsets are not compared": lambda: patch.object(
        Cached, "maybe_update", _ignoring("log_start_offset")
    ),
    "the end of an error is not sent": lambda: patch.object(Cached, "maybe_update", _error_stays),
    "forgotten partitions stay": lambda: patch.object(Session, "update", _update_without(True)),
    "new positions are not taken over": lambda: patch.object(
        Session, "update", _update_without(False)
    ),
    "epochs of a session are not compared": lambda: _resolve_with(_in_step),
    "a session of names serves ids": lambda: _resolve_with(_any_ids),
    "a closed session goes on": _kept_after_close,
    "partitions with records stay first": lambda: patch.object(
        Session, "move_to_end", lambda *_: None
    ),
    "a session in use is evicted": lambda: patch.object(fetch_sessions, "EVICTABLE_AFTER", 1.0),
    "the first session is evicted": _first_in_first_out,
    "the first partition alone counts": lambda: patch.object(
        fetch_sessions, "targets_of", lambda r: targets_of(r)[:1]
    ),
}
"""What is wrong -> the patch."""

"""Tasks: some messages and exchanges of a capture, of which another process makes rows.

A task has all that its rows depend on, but what its process has got with earlier tasks: topic
names, and versions of fetch sessions. `Recipient` knows these.
"""

from __future__ import annotations

from array import array
from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

from ...exchanges.exchanges import Ended
from ...exchanges.fetch_sessions import MAX_SESSIONS
from ...frames.decoding import LocatedItem
from ...frames.serialised import Packer, SerialisedFrames, unpack

MISSING: Final = -1
"""The index of a request or response that was not captured."""

UNKNOWN: Final = 0
"""The version of a fetch session of which nothing is known."""

Ends = tuple[int, str, str]
"""A connection, its client and its broker."""

SessionId = tuple[int, int]
"""A connection, and the id of a fetch session on it."""

Names = list[tuple[bytes, str]]
"""Ids and names of topics."""


class Use(IntEnum):
    """What a message is for.

    MESSAGE: tables of messages, in capture order, and perhaps an exchange; EXCHANGE: an exchange
    only.
    """

    MESSAGE = 0
    EXCHANGE = 1


class Restored(NamedTuple):
    """A fetch session that earlier tasks made what it is.

    pair: the number of pairs before it is needed. base: the version that its requests follow.
    requests, versions: what made the session, and its version after each; unique numbers.
    """

    pair: int
    id: SessionId
    base: int
    requests: list[LocatedItem]
    versions: list[int]


class Task(NamedTuple):
    """Work for any process.

    items, uses: each message once, and its Use. pairs: three numbers per exchange, the indexes of
    request and response in `items` and of its connection in `ends`. ended: the closed connections,
    each with the number of items before it. restored: the fetch sessions of earlier tasks that are
    used. left: the fetch sessions that the task knows at its end, and their versions. known: topic
    names that the capture had stated then.
    """

    items: list[LocatedItem]
    uses: bytes
    pairs: array[int]
    ends: list[Ends]
    ended: list[tuple[int, Ended]]
    restored: list[Restored]
    left: list[tuple[SessionId, int]]
    known: int


class SerialisedTask(NamedTuple):
    """A task as flat values. restored: without requests, which are the last items instead."""

    header: SerialisedFrames
    uses: bytes
    pairs: bytes
    ends: list[Ends]
    ended: list[tuple[int, Ended]]
    restored: list[Restored]
    left: list[tuple[SessionId, int]]
    names: Names


def serialise(task: Task, names: Names) -> tuple[SerialisedTask, list[bytes]]:
    """Serialise a task; the frames come apart, so that they need not be copied."""
    items = task.items + [request for each in task.restored for request in each.requests]
    header, frames = Packer().pack_apart(items)
    return SerialisedTask(
        header,
        task.uses,
        task.pairs.tobytes(),
        task.ends,
        task.ended,
        [each._replace(requests=[]) for each in task.restored],
        task.left,
        names,
    ), frames


def deserialise(serialised: SerialisedTask, frames: bytes) -> Task:
    """Deserialise a task. frames: the bytes of all of them."""
    items = unpack(serialised.header._replace(frames=frames))
    start = len(serialised.uses)
    restored = []
    for each in serialised.restored:
        end = start + len(each.versions)
        restored.append(each._replace(requests=items[start:end]))
        start = end
    return Task(
        items[: len(serialised.uses)],
        serialised.uses,
        array("i", serialised.pairs),
        serialised.ends,
        serialised.ended,
        restored,
        serialised.left,
        0,
    )


class Recipient:
    """What a process has got with the tasks so far."""

    def __init__(self) -> None:
        self._names = 0
        self._versions: dict[SessionId, int] = {}

    def tailored(self, task: Task, learned: Names) -> tuple[Task, Names]:
        """Leave out what the process has got; return the topic names that it needs, too."""
        restored = [self._newer(each) for each in task.restored]
        return task._replace(restored=restored), learned[self._names : task.known]

    def _newer(self, restored: Restored) -> Restored:
        version = self._versions.get(restored.id, UNKNOWN)
        if version not in restored.versions:
            return restored
        start = restored.versions.index(version) + 1
        requests, versions = restored.requests[start:], restored.versions[start:]
        return restored._replace(base=version, requests=requests, versions=versions)

    def got(self, task: Task) -> None:
        """Note that the process gets a task."""
        self._names = task.known
        for id, version in task.left:
            store(self._versions, id, version)


Value = TypeVar("Value")


def store(sessions: dict[SessionId, Value], id: SessionId, value: Value) -> None:
    """Store something of a fetch session; the oldest are dropped first, in each process alike."""
    sessions.pop(id, None)
    sessions[id] = value
    if len(sessions) > MAX_SESSIONS:
        del sessions[next(iter(sessions))]

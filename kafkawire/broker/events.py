"""What happens to a cluster: connections, bytes, and what its operator does.

Law: events are values; who raises one says when it happened, apart from it (`handle(event, now)`).
Deadlines are keys: two of different kinds are never equal, whatever they hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Connected(NamedTuple):
    """A client connected to a broker.

    connection: a number of the caller's choice, never used again. host: where the client is.
    """

    connection: int
    node_id: int
    host: str = "127.0.0.1"


class Received(NamedTuple):
    """Bytes came in, cut anywhere."""

    connection: int
    data: bytes


class Drained(NamedTuple):
    """What was sent has left for the client: the answer to `AwaitDrain`."""

    connection: int


class Disconnected(NamedTuple):
    """The client went away, or was closed."""

    connection: int


class Unreadable(NamedTuple):
    """What a client sent is not what its listener speaks: not TLS, or a handshake that failed."""

    connection: int
    reason: str


class BrokerStopped(NamedTuple):
    """A broker goes down: its connections close, its partitions get other leaders, if there are."""

    node_id: int


class BrokerStarted(NamedTuple):
    """A broker that was down is back, with its logs."""

    node_id: int


class LeaderMoved(NamedTuple):
    """A partition gets another leader, with a new epoch.

    truncate_to: None where nothing is lost; else the new leader lacks what lies from there on (an
    unclean election).
    """

    topic: str
    partition: int
    leader_id: int
    truncate_to: int | None = None


Event = (
    Connected
    | Received
    | Drained
    | Disconnected
    | Unreadable
    | BrokerStopped
    | BrokerStarted
    | LeaderMoved
)


@dataclass(frozen=True, slots=True)
class IdleConnection:
    """Deadline: a connection has been silent for too long."""

    connection: int


@dataclass(frozen=True, slots=True)
class FetchExpired:
    """Deadline: a parked Fetch has waited as long as it said."""

    reply_to: int


@dataclass(frozen=True, slots=True)
class ReplyDue:
    """Deadline: a delayed answer goes out."""

    reply_to: int


@dataclass(frozen=True, slots=True)
class GroupDue:
    """Deadline: a group has something to do."""

    partition: int
    group_id: str


@dataclass(frozen=True, slots=True)
class OffsetsDue:
    """Deadline: time to look for committed offsets that expired."""


@dataclass(frozen=True, slots=True)
class OffsetsLoaded:
    """Deadline: a new coordinator has read the partition of `__consumer_offsets` that is its."""

    partition: int


Deadline = IdleConnection | FetchExpired | ReplyDue | GroupDue | OffsetsDue | OffsetsLoaded

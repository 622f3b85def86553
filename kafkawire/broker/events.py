"""The events of a cluster: connections, received bytes, and actions of its operator.

Law: events are values; the time is passed beside them (`handle(event, now)`).
Deadlines are keys: two of different types are never equal, whatever they hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Connected(NamedTuple):
    """A client connected to a broker.

    connection: an id chosen by the caller, never reused. host: the client's address. listener: the
    name of the one that it connected to, where a broker has several.
    """

    connection: int
    node_id: int
    host: str = "127.0.0.1"
    listener: str = ""


class Received(NamedTuple):
    """Bytes arrived; they may be split anywhere."""

    connection: int
    data: bytes


class Drained(NamedTuple):
    """All sent bytes are flushed: follows `AwaitDrain`."""

    connection: int


class Disconnected(NamedTuple):
    """The connection is closed, by either side."""

    connection: int


class Unreadable(NamedTuple):
    """The TLS handshake failed, or the client does not speak TLS."""

    connection: int
    reason: str


class BrokerStopped(NamedTuple):
    """A broker goes down: its connections close, its partitions get new leaders if possible."""

    node_id: int


class BrokerStarted(NamedTuple):
    """A broker is back up, with its logs."""

    node_id: int


class LeaderMoved(NamedTuple):
    """A partition gets another leader and a new leader epoch.

    truncate_to: the log end offset of the new leader after an unclean election; None if it has all
    records.
    """

    topic: str
    partition: int
    leader_id: int
    truncate_to: int | None = None


class ClusterStarted(NamedTuple):
    """All brokers have registered in ZooKeeper, and may elect a controller."""


class ShutdownRequested(NamedTuple):
    """A broker is to stop in order: `ControlledShutdownDone` follows."""

    node_id: int


class BrokerConnectionOpened(NamedTuple):
    """A connection to another broker is open: follows `OpenBrokerConnection`."""

    connection: int


class ReceivedFromBroker(NamedTuple):
    """Bytes arrived on a connection to another broker; they may be split anywhere."""

    connection: int
    data: bytes


class BrokerConnectionClosed(NamedTuple):
    """A connection to another broker was closed by that broker, or never opened."""

    connection: int


BrokerConnectionEvent = BrokerConnectionOpened | ReceivedFromBroker | BrokerConnectionClosed
ZooKeeperEvent = ClusterStarted | ShutdownRequested | BrokerConnectionEvent
"""Events of a cluster with ZooKeeper; ignored by one without."""
Event = (
    Connected
    | Received
    | Drained
    | Disconnected
    | Unreadable
    | BrokerStopped
    | BrokerStarted
    | LeaderMoved
    | ZooKeeperEvent
)


@dataclass(frozen=True, slots=True)
class IdleConnection:
    """Deadline: a connection has exceeded connections.max.idle.ms."""

    connection: int


@dataclass(frozen=True, slots=True)
class MutedUntil:
    """Deadline: a connection whose client exceeded a quota is served again."""

    connection: int


@dataclass(frozen=True, slots=True)
class FetchExpired:
    """Deadline: the max_wait_ms of a delayed Fetch is over."""

    reply_to: int


@dataclass(frozen=True, slots=True)
class ReplyDue:
    """Deadline: a response delayed by a fault is sent."""

    reply_to: int


@dataclass(frozen=True, slots=True)
class MetadataAwaited:
    """Deadline: a request has waited long enough for a change of the metadata."""

    reply_to: int


@dataclass(frozen=True, slots=True)
class GroupDue:
    """Deadline: the next deadline of a group."""

    partition: int
    group_id: str


@dataclass(frozen=True, slots=True)
class OffsetsDue:
    """Deadline: the next check for expired offsets."""


@dataclass(frozen=True, slots=True)
class OffsetsLoaded:
    """Deadline: a new coordinator has loaded its partition of `__consumer_offsets`."""

    partition: int


@dataclass(frozen=True, slots=True)
class CommitExpired:
    """Deadline: what the response to a request rests on was not committed in time."""

    reply_to: int


@dataclass(frozen=True, slots=True)
class BrokerChannelDue:
    """Deadline: a request to another broker has no response in time, or a backoff is over."""

    channel: int


@dataclass(frozen=True, slots=True)
class ControlledShutdownDue:
    """Deadline: a stopping broker repeats its ControlledShutdown."""

    node_id: int


ZooKeeperDeadline = BrokerChannelDue | ControlledShutdownDue
Deadline = (
    IdleConnection
    | MutedUntil
    | FetchExpired
    | ReplyDue
    | MetadataAwaited
    | GroupDue
    | OffsetsDue
    | OffsetsLoaded
    | CommitExpired
    | ZooKeeperDeadline
)

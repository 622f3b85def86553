"""The events of clients: connections and received bytes; and the deadlines of brokers.

Events are values; the time is passed beside them (`handle(event, now)`).
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


class Authenticated(NamedTuple):
    """The TLS handshake has verified the certificate of a client. name: of its subject."""

    connection: int
    name: str


Event = Connected | Received | Drained | Disconnected | Unreadable | Authenticated


@dataclass(frozen=True, slots=True)
class AcceptDue:
    """Deadline: the first connection that waits at a listener may be accepted."""

    listener: str


@dataclass(frozen=True, slots=True)
class IdleConnection:
    """Deadline: a connection has exceeded connections.max.idle.ms."""

    connection: int


@dataclass(frozen=True, slots=True)
class MutedUntil:
    """Deadline: a connection whose client exceeded a quota is served again."""

    connection: int


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
class ShareWriteExpired:
    """Deadline: the state of a share partition was not committed in time."""

    number: int


@dataclass(frozen=True, slots=True)
class ShareStatesDue:
    """Deadline: the next check for records of `__share_group_state` that no state needs."""


@dataclass(frozen=True, slots=True)
class PersistDue:
    """Deadline: a request to a share coordinator is sent again."""

    number: int


@dataclass(frozen=True, slots=True)
class SharePartitionDue:
    """Deadline: the acquisition lock of records of a share partition ends."""

    group_id: str
    topic_id: bytes
    partition: int


@dataclass(frozen=True, slots=True)
class DeadLetterDue:
    """Deadline: records are written to a dead letter queue again."""

    number: int


@dataclass(frozen=True, slots=True)
class ShareFetchExpired:
    """Deadline: a ShareFetch has waited for records long enough."""

    reply_to: int


Deadline = (
    AcceptDue
    | IdleConnection
    | MutedUntil
    | ReplyDue
    | MetadataAwaited
    | GroupDue
    | OffsetsDue
    | OffsetsLoaded
    | CommitExpired
    | ShareWriteExpired
    | ShareStatesDue
    | PersistDue
    | SharePartitionDue
    | DeadLetterDue
    | ShareFetchExpired
)

"""The events of a replica. Events are values; the time is passed beside them."""

from __future__ import annotations

from typing import NamedTuple

from ..primitives import Message
from .log import SnapshotId


class RequestReceived(NamedTuple):
    """A request arrived. reply_to: an id chosen by the caller, comes back in `Reply`."""

    reply_to: int
    request: Message
    version: int


class ResponseReceived(NamedTuple):
    """The response to a `Send` arrived."""

    correlation_id: int
    response: Message


class RequestFailed(NamedTuple):
    """A `Send` failed: the connection closed, or the node supports no fitting version."""

    correlation_id: int
    unsupported: bool = False


class Append(NamedTuple):
    """The owner appends records (their values) as the leader of an epoch, in one batch."""

    append_id: int
    epoch: int
    values: tuple[bytes, ...]


class SnapshotTaken(NamedTuple):
    """The owner wrote a snapshot of committed records (`snapshot_bytes`)."""

    snapshot_id: SnapshotId
    data: bytes


class Resign(NamedTuple):
    """The owner gives up leadership of an epoch: its state machine failed, or it shuts down."""

    epoch: int


Event = RequestReceived | ResponseReceived | RequestFailed | Append | SnapshotTaken | Resign

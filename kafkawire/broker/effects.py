"""The effects that a cluster returns to its caller.

Law: effects are carried out in order; `Persist` and `Trim` precede the `Reply` that acknowledges
them.
"""

from __future__ import annotations

from typing import NamedTuple

from ..primitives import Message
from .fetched import Fetched
from .request import Request


class Reply(NamedTuple):
    """Send a response frame (or what a fault left of it): `buffers`, one after the other.

    data: the same joined.
    """

    connection: int
    buffers: list[bytes]

    @property
    def data(self) -> bytes:
        return b"".join(self.buffers)


class Close(NamedTuple):
    """Close the connection after the bytes sent before are flushed."""

    connection: int
    reason: str


class AwaitDrain(NamedTuple):
    """Raise `Drained` when the sent bytes are flushed; no request is processed until then."""

    connection: int


class PauseReading(NamedTuple):
    """Stop reading from a client until `ResumeReading`: too many bytes of it are buffered."""

    connection: int


class ResumeReading(NamedTuple):
    """Read from a client again."""

    connection: int


class OpenBrokerConnection(NamedTuple):
    """Connect one broker to another: raise `BrokerConnectionOpened`, or `BrokerConnectionClosed`.

    connection: a number chosen by the cluster, never reused; not that of a client.
    """

    connection: int
    node_id: int


class SendToBroker(NamedTuple):
    """Send a request frame to another broker."""

    connection: int
    data: bytes


class CloseBrokerConnection(NamedTuple):
    """Close a connection to another broker; no event follows."""

    connection: int


class ControlledShutdownDone(NamedTuple):
    """The controller has moved the leaders away, or did not in time: the broker may stop."""

    node_id: int


class Persist(NamedTuple):
    """Persist this batch, so that the cluster can be restored from it and those before it.

    batch: magic 2, with its offsets.
    """

    topic: str
    partition: int
    batch: bytes


class Trim(NamedTuple):
    """Drop persisted batches outside these offsets: deleted before, truncated after."""

    topic: str
    partition: int
    log_start_offset: int
    log_end_offset: int


class Report(NamedTuple):
    """Reports a request and its response.

    result: the response; of a Fetch, perhaps apart from its records.
    took: seconds since the request arrived.
    """

    request: Request
    result: Message | Fetched | None
    took: float

    @property
    def response(self) -> Message | None:
        """The response; None if none was sent (acks=0, or dropped by a fault)."""
        return self.result.complete() if isinstance(self.result, Fetched) else self.result


Persisted = Persist | Trim
"""What a cluster is restored from, in order (`Cluster.restore`)."""
ZooKeeperEffect = (
    OpenBrokerConnection | SendToBroker | CloseBrokerConnection | ControlledShutdownDone
)
"""Effects of a cluster with ZooKeeper."""
Effect = (
    Reply
    | Close
    | AwaitDrain
    | PauseReading
    | ResumeReading
    | ZooKeeperEffect
    | Persist
    | Trim
    | Report
)

"""The effects that a node returns to its caller.

Effects are carried out in order. What a response promises is on disk, or on the disks of
others, when it is returned: files are written while an event is handled.
"""

from __future__ import annotations

from typing import NamedTuple

from ..metadata import MetadataDelta, MetadataImage
from ..primitives import Message
from ..raft import LeaderChanged
from ..raft import Node as Destination
from ..replication import (
    AppendCompleted,
    HighWatermarkAdvanced,
    IsrChanged,
    ReplicaChanged,
    Respond,
)
from ..storage import TopicPartition
from .lifecycle import BrokerState


class SendRequest(NamedTuple):
    """Send a request to a node; then raise `ResponseReceived` with the token.

    version: the newest that the node can use; a connection may negotiate an older one.
    to_controller: whether the destination is the listener of a controller.
    """

    token: int
    destination: Destination
    version: int
    body: Message
    to_controller: bool = False


class Published(NamedTuple):
    """The metadata changed: the delta names what is new in the image, which is only read."""

    image: MetadataImage
    delta: MetadataDelta


class BrokerStateChanged(NamedTuple):
    """The state of this process's broker changed."""

    state: BrokerState


class BrokerRefused(NamedTuple):
    """The controller refuses the registration or the heartbeats of this broker, which go on."""

    error_code: int


class DirectoryFailed(NamedTuple):
    """A log directory of the broker has failed; its replicas are offline until a restart."""

    directory: str
    reason: str


class LogRecovered(NamedTuple):
    """A log was read from its recovery point on: its broker had not stopped in order.

    truncated_bytes: what was cut off, behind the last batch that is complete and correct.
    """

    partition: TopicPartition
    log_end_offset: int
    truncated_bytes: int


class PartitionDamaged(NamedTuple):
    """A file of a partition's log is damaged, or a part of it is missing.

    Its reads fail with KAFKA_STORAGE_ERROR where that is needed; other partitions go on. reason:
    the file, the position, and what is wrong.
    """

    partition: TopicPartition
    reason: str


class LogSetAside(NamedTuple):
    """The metadata does not have the partition of a log; it is kept under another name."""

    partition: TopicPartition
    directory: str
    folder: str


class SegmentRolled(NamedTuple):
    """A log has a new segment, and the one before is durable."""

    partition: TopicPartition
    base_offset: int


class Stopped(NamedTuple):
    """The node has stopped: nothing that is handled later has effects.

    failure: why it cannot go on, such as a failed disk or a corrupt log; None after a shutdown.
    """

    failure: str | None


Effect = (
    SendRequest
    | Respond
    | AppendCompleted
    | Published
    | HighWatermarkAdvanced
    | ReplicaChanged
    | IsrChanged
    | LeaderChanged
    | BrokerStateChanged
    | BrokerRefused
    | DirectoryFailed
    | LogRecovered
    | LogSetAside
    | PartitionDamaged
    | SegmentRolled
    | Stopped
)

__all__ = [
    "AppendCompleted",
    "BrokerRefused",
    "BrokerStateChanged",
    "Destination",
    "DirectoryFailed",
    "Effect",
    "HighWatermarkAdvanced",
    "IsrChanged",
    "LeaderChanged",
    "LogRecovered",
    "LogSetAside",
    "PartitionDamaged",
    "Published",
    "ReplicaChanged",
    "Respond",
    "SegmentRolled",
    "SendRequest",
    "Stopped",
]

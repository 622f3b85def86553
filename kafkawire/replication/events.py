"""The events of a replica manager.

Events are values; the time is passed beside them (`handle(event, now)`).
"""

from __future__ import annotations

from typing import NamedTuple

from ..metadata import MetadataDelta, MetadataImage, TopicIdPartition
from ..primitives import Message


class Registered(NamedTuple):
    """The controller registered this broker, as an incarnation of this epoch."""

    broker_epoch: int


class MetadataPublished(NamedTuple):
    """The metadata changed: the delta names what is new in the image, which is only read."""

    image: MetadataImage
    delta: MetadataDelta


class RequestReceived(NamedTuple):
    """Another broker or a client sent a request. token: chosen by the caller, never reused."""

    token: int
    version: int
    body: Message


class ResponseReceived(NamedTuple):
    """A `SendRequest` has its response; None if the connection failed or the time was over."""

    token: int
    body: Message | None


class LogsFailed(NamedTuple):
    """A log directory has failed: the replicas in it are offline until the broker restarts."""

    keys: tuple[TopicIdPartition, ...]


class ThrottleChanged(NamedTuple):
    """The throttled rates, bytes per second, and replicas; None for no limit."""

    leader_rate: float | None = None
    follower_rate: float | None = None
    leader_replicas: frozenset[tuple[TopicIdPartition, int]] = frozenset()
    """Partitions with the follower that is throttled here, their leader."""
    follower_partitions: frozenset[TopicIdPartition] = frozenset()


Event = (
    Registered
    | MetadataPublished
    | RequestReceived
    | ResponseReceived
    | LogsFailed
    | ThrottleChanged
)

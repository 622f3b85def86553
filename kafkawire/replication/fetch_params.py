"""What a Fetch requests, who fetches, and up to where and from which replica it may read.

Followers read up to the log end, consumers up to the high watermark or the last stable offset.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from ..messages.fetch_request import FetchPartition, FetchRequest
from ..metadata import TopicIdPartition
from .broker import Broker
from .partition import Partition
from .replica import Replica
from .replicas import HIGH_WATERMARK, LAST_STABLE, LOG_END, Replicas

READ_COMMITTED: Final = 1
REPLICA_STATE_FROM: Final = 15
RACK_FROM: Final = 11
MEASURES: Final = (LOG_END, HIGH_WATERMARK, LAST_STABLE)
"""What may grow by the bytes that a Fetch waits for."""
OFFSETS: Final = {HIGH_WATERMARK: "offset", LAST_STABLE: "stable offset"}
"""What may pass the offset that a consumer waits for, by measure."""


class FetchParams(NamedTuple):
    """Who fetches, and what it may see. measure: up to where."""

    replica_id: int
    replica_epoch: int
    measure: str
    rack: str
    only_leader: bool
    is_from_follower: bool


class Target(NamedTuple):
    """A partition of a Fetch."""

    topic: str
    topic_id: bytes
    key: TopicIdPartition
    requested: FetchPartition


class Fetch(NamedTuple):
    """Partitions that are fetched together. max_wait: in seconds."""

    params: FetchParams
    targets: list[Target]
    max_wait: float
    min_bytes: int
    max_bytes: int

    @property
    def needs_any(self) -> bool:
        """Whether any byte completes it: it is a consumer's, and most consumers' are so."""
        return self.min_bytes <= 1 and not self.params.is_from_follower


def is_from_follower(body: FetchRequest, version: int) -> bool:
    """Return whether a Fetch is from another broker."""
    of_state = version >= REPLICA_STATE_FROM
    return (body.replica_state.replica_id if of_state else body.replica_id) >= 0


def params_of(body: FetchRequest, version: int) -> FetchParams:
    """Return who fetches."""
    replica, epoch = body.replica_id, -1
    if version >= REPLICA_STATE_FROM:
        replica, epoch = body.replica_state.replica_id, body.replica_state.replica_epoch
    stable = LAST_STABLE if body.isolation_level == READ_COMMITTED else HIGH_WATERMARK
    return FetchParams(
        replica,
        epoch,
        LOG_END if replica >= 0 else stable,
        body.rack_id,
        only_leader=replica >= 0 or version < RACK_FROM or not body.rack_id,
        is_from_follower=replica >= 0,
    )


def fetch_of(replicas: Replicas, version: int, body: FetchRequest) -> Fetch:
    """Return what a Fetch without a session requests."""
    requested = (
        (topic.topic, topic.topic_id, each) for topic in body.topics for each in topic.partitions
    )
    return session_fetch(replicas, version, body, requested)


def session_fetch(
    replicas: Replicas,
    version: int,
    body: FetchRequest,
    requested: Iterable[tuple[str, bytes, FetchPartition]],
    quota: int | None = None,
) -> Fetch:
    """Return a Fetch of all partitions of its session. quota: how many bytes it may return."""
    key_of = replicas.key_of
    targets = [
        Target(topic, topic_id, key_of(topic, topic_id, each.partition), each)
        for topic, topic_id, each in requested
    ]
    least, most = body.min_bytes, body.max_bytes
    if quota is not None:
        most = min(most, quota)
        least = min(least, most)
    return Fetch(params_of(body, version), targets, body.max_wait_ms / 1000, least, most)


def preferred_read_replica(
    partition: Partition, params: FetchParams, offset: int
) -> Replica | None:
    """Choose an in-sync follower in the rack of a consumer; None for the leader."""
    broker = partition.broker
    if not broker.config.rack_aware or not params.rack or params.is_from_follower:
        return None
    if not partition.is_leader or _rack_of(broker, broker.broker_id) == params.rack:
        return None
    near = [
        each
        for each in partition.followers.values()
        if each.broker_id in partition.isr.committed
        and each.log_start_offset <= offset <= each.log_end_offset
        and _rack_of(broker, each.broker_id) == params.rack
    ]
    return max(near, key=lambda each: (each.log_end_offset, each.last_caught_up), default=None)


def _rack_of(broker: Broker, broker_id: int) -> str:
    registration = broker.image.brokers.get(broker_id)
    return registration.rack or "" if registration is not None and not registration.fenced else ""

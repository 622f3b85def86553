"""What a Fetch requests, who fetches, and up to where and from which replica it may read.

Followers read up to the log end, consumers up to the high watermark or the last stable offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from ..messages.fetch_request import FetchPartition, FetchRequest
from ..metadata import TopicIdPartition
from .broker import Broker
from .partition import Partition
from .replica import Replica
from .replicas import HIGH_WATERMARK, LAST_STABLE, LOG_END, Replicas

READ_COMMITTED: Final = 1
REPLICA_STATE_FROM: Final = 15
"""The version of Fetch from which on the replica's id is in `replica_state` (KIP-903)."""
RACK_FROM: Final = 11
MEASURES: Final = (LOG_END, HIGH_WATERMARK, LAST_STABLE)
"""What may grow by the bytes that a Fetch waits for."""
OFFSETS: Final = {HIGH_WATERMARK: "offset", LAST_STABLE: "stable offset"}
"""What may pass the offset that a consumer waits for, by measure."""


@dataclass(slots=True)
class FetchParams:
    """Who fetches, and what it may see. measure: up to where."""

    replica_id: int
    replica_epoch: int
    measure: str
    rack: str
    only_leader: bool
    is_from_follower: bool


class Target(NamedTuple):
    """A partition of a Fetch; by topic name up to v12, by topic id from v13 on."""

    topic: str
    topic_id: bytes
    requested: FetchPartition

    @property
    def key(self) -> tuple[str, bytes, int]:
        """What distinguishes it from others of the request."""
        return self.topic, self.topic_id, self.requested.partition


@dataclass(slots=True)
class Fetch:
    """Partitions that are fetched together. max_wait: in seconds."""

    params: FetchParams
    targets: list[tuple[TopicIdPartition, Target]]
    max_wait: float
    min_bytes: int
    max_bytes: int

    @property
    def needs_any(self) -> bool:
        """Whether any byte completes it: it is a consumer's, and most consumers' are so."""
        return self.min_bytes <= 1 and not self.params.is_from_follower


def params_of(body: FetchRequest, version: int) -> FetchParams:
    """Return who fetches."""
    replica, epoch = body.replica_id, -1
    if version >= REPLICA_STATE_FROM:
        state = body.replica_state
        replica, epoch = state.replica_id, state.replica_epoch
    if replica >= 0:
        return FetchParams(replica, epoch, LOG_END, body.rack_id, True, True)
    measure = LAST_STABLE if body.isolation_level == READ_COMMITTED else HIGH_WATERMARK
    only_leader = version < RACK_FROM or not body.rack_id
    return FetchParams(replica, epoch, measure, body.rack_id, only_leader, False)


def targets_of(body: FetchRequest) -> list[Target]:
    """List the partitions of a request; of duplicates the last one counts."""
    targets = [
        Target(topic.topic, topic.topic_id, each)
        for topic in body.topics
        for each in topic.partitions
    ]
    return targets if len(targets) < 2 else list({each.key: each for each in targets}.values())


def fetch_of(
    replicas: Replicas,
    params: FetchParams,
    body: FetchRequest,
    targets: list[Target],
    quota: int | None = None,
) -> Fetch:
    """Return a Fetch of partitions: those of its session, or all that it requests.

    quota: how many bytes it may return.
    """
    key_of = replicas.key_of
    least, most = body.min_bytes, body.max_bytes
    if quota is not None:
        most = min(most, quota)
        least = min(least, most)
    keyed = [(key_of(target[0], target[1], target[2].partition), target) for target in targets]
    return Fetch(params, keyed, body.max_wait_ms / 1000, least, most)


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

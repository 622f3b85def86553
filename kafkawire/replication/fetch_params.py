"""Who fetches, and up to where it may read.

Law: followers read up to the log end, consumers up to the high watermark or the last stable offset.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..messages.fetch_request import FetchRequest
from .partition import Partition
from .replicas import HIGH_WATERMARK, LAST_STABLE, LOG_END

READ_COMMITTED: Final = 1
REPLICA_STATE_FROM: Final = 15
RACK_FROM: Final = 11
MEASURES: Final = (LOG_END, HIGH_WATERMARK, LAST_STABLE)


class FetchParams(NamedTuple):
    """Who fetches, and what it may see. measure: up to where."""

    replica_id: int
    replica_epoch: int
    measure: str
    rack: str
    only_leader: bool
    is_from_follower: bool


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


def bound(partition: Partition, measure: str) -> int:
    """Return up to where a partition is read."""
    if measure == LOG_END:
        return partition.log.log_end_offset
    if measure == HIGH_WATERMARK:
        return partition.log.high_watermark
    return partition.log.last_stable_offset

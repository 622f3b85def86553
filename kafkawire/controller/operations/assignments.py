"""Assigns the replicas of new partitions, given or placed.

A new partition has an active broker for a leader, and its ISR is all of its active replicas.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...metadata import PartitionRegistration
from ...metadata.versions import DIRECTORIES
from ...protocol import ErrorCode
from ..mutation_quotas import MutationQuota
from ..placement import PlacementError, StripedReplicaPlacer, UsableBroker
from ..state import ControllerState

E = ErrorCode
Problem = tuple[ErrorCode, str]


class Refused(Exception):
    """An error of one topic, partition or resource of a request."""

    def __init__(self, error: ErrorCode, message: str = "") -> None:
        super().__init__(error, message)
        self.error = error
        self.message = message or error.name


def charge(quota: MutationQuota, partitions: int) -> None:
    """Charge the client of a request for partitions. Raises Refused if its quota is exceeded."""
    if not quota.charge(partitions):
        raise Refused(E.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")


def excess_partitions(
    state: ControllerState, additional: int, what: str = "partitions"
) -> Refused | None:
    """Return why one request may not create that many partitions; None if it may."""
    config = state.config
    if additional > config.max_partitions_per_request:
        reason = f"Excessively large number of {what} per request."
    elif state.image.indexes.count + additional > config.max_partitions:
        reason = f"The cluster would have more than {config.max_partitions} partitions."
    else:
        return None
    return Refused(E.POLICY_VIOLATION, reason)


def checked(state: ControllerState, replicas: Sequence[int], factor: int | None) -> tuple[int, ...]:
    """Validate given replicas: registered, distinct and, if known, that many. Raises Refused."""
    if not replicas:
        raise Refused(
            E.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes an empty replica list.",
        )
    seen = set()
    for each in replicas:
        if each not in state.image.brokers:
            raise Refused(
                E.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes broker {each}, but no such broker is "
                "registered.",
            )
        if each in seen:
            raise Refused(
                E.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes the broker {each} more than once.",
            )
        seen.add(each)
    if factor is not None and len(replicas) != factor:
        raise Refused(
            E.INVALID_REPLICA_ASSIGNMENT,
            f"The manual partition assignment includes a partition with {len(replicas)} "
            f"replica(s), but this is not consistent with previous partitions, which have "
            f"{factor} replica(s).",
        )
    return tuple(replicas)


def given(
    state: ControllerState, replicas: Sequence[int], factor: int | None, index: int
) -> PartitionRegistration:
    """Make a partition of given replicas. Raises Refused."""
    partition = _partition(state, checked(state, replicas, factor))
    if not partition.isr:
        raise Refused(
            E.INVALID_REPLICA_ASSIGNMENT,
            "All brokers specified in the manual partition assignment for partition "
            f"{index} are fenced or in controlled shutdown.",
        )
    return partition


def placed(state: ControllerState, count: int, factor: int) -> Iterator[PartitionRegistration]:
    """Make partitions, their replicas placed by racks. Raises Refused at once."""
    try:
        replicas = StripedReplicaPlacer(_usable(state), state.rng).place(count, factor)
    except PlacementError as error:
        raise Refused(
            E.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): {error}",
        ) from None
    return (_partition(state, tuple(each)) for each in replicas)


def _usable(state: ControllerState) -> Iterator[UsableBroker]:
    for broker in state.image.brokers.values():
        if broker.fenced or not broker.in_controlled_shutdown:
            yield UsableBroker(broker.broker_id, broker.rack, broker.fenced)


def _partition(state: ControllerState, replicas: tuple[int, ...]) -> PartitionRegistration:
    isr = tuple(each for each in replicas if state.image.is_active(each))
    directories = tuple(map(state.default_directory, replicas))
    return PartitionRegistration(
        replicas,
        isr,
        isr[0] if isr else -1,
        directories=directories if state.metadata_version >= DIRECTORIES else (),
    )

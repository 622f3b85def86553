"""What a broker learns from the metadata log about partitions and brokers.

Law: these are values; a later delta replaces an earlier one by its partition epoch (KIP-497).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

NO_LEADER: Final = -1
NO_EPOCH: Final = -1
UNKNOWN_OFFSET: Final = -1


class TopicPartition(NamedTuple):
    """A partition by its topic's id."""

    topic_id: bytes
    partition: int


class PartitionRegistration(NamedTuple):
    """A partition as the controller has it. isr: the committed in-sync replicas."""

    key: TopicPartition
    topic: str
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int


class BrokerRegistration(NamedTuple):
    """A registered broker. epoch: of its incarnation (KIP-903)."""

    broker_id: int
    epoch: int
    fenced: bool = False
    in_controlled_shutdown: bool = False
    rack: str = ""

    @property
    def is_eligible_for_isr(self) -> bool:
        """Whether the broker may join an ISR (KIP-841)."""
        return not self.fenced and not self.in_controlled_shutdown


class MetadataDelta(NamedTuple):
    """What changed in the metadata. min_insync_replicas: by topic id."""

    partitions: tuple[PartitionRegistration, ...] = ()
    deleted: tuple[TopicPartition, ...] = ()
    brokers: tuple[BrokerRegistration, ...] = ()
    min_insync_replicas: Mapping[bytes, int] = {}

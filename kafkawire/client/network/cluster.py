"""What is known of the cluster: its brokers, topics and partitions, as a machine may read them.

Law: brokers, topics and partitions are values: what is newer replaces them, and changes none.

    MetadataResponse --> metadata --> ClusterView: brokers, topics --> partitions --> leader, epoch
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ...protocol.error_code import ErrorCode


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker and where it is."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition; leader -1: none now. leader_epoch -1: not known (old brokers)."""

    topic: str
    index: int
    leader: int
    leader_epoch: int = -1
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()
    error: int = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic; error: why there is nothing else to say of it. topic_id: 16 bytes, zero for none."""

    name: str
    topic_id: bytes = bytes(16)
    is_internal: bool = False
    partitions: Mapping[int, Partition] = field(default_factory=dict)
    error: int = ErrorCode.NONE


class ClusterView(Protocol):
    """What a machine may read of the cluster, as it is known now."""

    @property
    def brokers(self) -> Mapping[int, Broker]: ...

    @property
    def topics(self) -> Mapping[str, Topic]:
        """Topics by name, those with errors too; absent: not asked for yet."""
        ...

    @property
    def controller_id(self) -> int: ...

    @property
    def cluster_id(self) -> str | None: ...

    @property
    def trouble(self) -> str:
        """How the last connection ended, as long as nothing was heard of the cluster since."""
        ...

    def partition(self, topic: str, index: int) -> Partition | None: ...

    def topic_name(self, topic_id: bytes) -> str | None: ...

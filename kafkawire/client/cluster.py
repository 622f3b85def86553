"""The cluster's brokers, topics and partitions, as machines read them.

Brokers, topics and partitions are immutable values; an update replaces them.

    MetadataResponse --> metadata --> ClusterView: brokers, topics --> partitions --> leader, epoch
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ..display import host_and_port
from ..protocol.error_code import ErrorCode


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker and its address."""

    node_id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> str:
        """Its host and port, for messages."""
        return host_and_port(self.host, self.port)


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition; leader -1: no leader. leader_epoch -1: unknown (old brokers)."""

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
    """A topic; error: its error code in the metadata. topic_id: 16 bytes, zero for none."""

    name: str
    topic_id: bytes = bytes(16)
    is_internal: bool = False
    partitions: Mapping[int, Partition] = field(default_factory=dict)
    error: int = ErrorCode.NONE


class FinalizedFeatures(NamedTuple):
    """The finalized features of a cluster: the larger the epoch, the newer; -1: unknown."""

    epoch: int = -1
    levels: Mapping[str, int] = {}


class ClusterView(Protocol):
    """The current cluster metadata, read-only."""

    @property
    def brokers(self) -> Mapping[int, Broker]: ...

    @property
    def topics(self) -> Mapping[str, Topic]:
        """Topics by name, including those with errors; absent: not requested yet."""
        ...

    @property
    def controller_id(self) -> int: ...

    @property
    def cluster_id(self) -> str | None: ...

    @property
    def finalized_features(self) -> Mapping[str, int]:
        """The cluster's finalized features and their levels (KIP-584); empty for old brokers."""
        ...

    @property
    def last_error(self) -> str:
        """Why the last connection was closed, if no metadata arrived since."""
        ...

    def partition(self, topic: str, index: int) -> Partition | None: ...

    def topic_name(self, topic_id: bytes) -> str | None: ...

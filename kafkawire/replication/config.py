"""The configuration of replication, by Kafka's names in snake case; times in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ReplicationConfig:
    """The configuration of one broker.

    eligible_leader_replicas: the high watermark stays while the ISR is below min.insync.replicas
    (KIP-966); False for releases before 4.0.
    rack_aware: consumers read from an in-sync replica of their rack (KIP-392).
    static: the values of `server.properties`, which dynamic ones take precedence over.
    coordinator_topics: those whose high watermarks are reported, as coordinators wait for them.
    fetch_version: of Fetch requests to other brokers; list_offsets_version likewise.
    """

    replica_lag_time_max: float = 30.0
    replica_fetch_wait_max: float = 0.5
    replica_fetch_min_bytes: int = 1
    replica_fetch_max_bytes: int = 1 << 20
    replica_fetch_response_max_bytes: int = 10 << 20
    replica_fetch_backoff: float = 1.0
    fetch_max_bytes: int = 55 << 20
    high_watermark_checkpoint_interval: float = 5.0
    alter_partition_backoff: float = 0.05
    eligible_leader_replicas: bool = True
    rack_aware: bool = False
    static: Mapping[str, str] = field(default_factory=dict)
    coordinator_topics: frozenset[str] = frozenset()
    fetch_version: int = 17
    list_offsets_version: int = 7
    alter_partition_version: int = 3

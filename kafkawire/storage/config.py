"""The configurations of a log and of all logs of a broker, in Kafka's names, with its defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Final

MAX_INT64: Final = 0x7FFF_FFFF_FFFF_FFFF
DAY_MS: Final = 86_400_000
MAX_PRODUCERS: Final = 10_000
"""Producers of one partition; clients choose the ids, and the number of them."""


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The configs of a topic that concern its log; times in ms, sizes in bytes."""

    cleanup_policy: frozenset[str] = frozenset({"delete"})
    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    flush_messages: int = MAX_INT64
    flush_ms: int = MAX_INT64
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60_000
    delete_retention_ms: int = DAY_MS
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = MAX_INT64

    @property
    def compact(self) -> bool:
        """Whether the log is compacted."""
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        """Whether old segments are deleted."""
        return "delete" in self.cleanup_policy

    @classmethod
    def of(cls, configs: Mapping[str, str]) -> LogConfig:
        """Read a topic's configs by Kafka's names; others are ignored. Raises ValueError."""
        values: dict[str, Any] = {}
        for each in fields(cls):
            name = each.name.replace("_", ".")
            if name in configs:
                try:
                    values[each.name] = _READERS.get(each.name, int)(configs[name])
                except ValueError:
                    raise ValueError(f"invalid value {configs[name]!r} of {name}") from None
        return cls(**values)


def _policies(text: str) -> frozenset[str]:
    policies = frozenset(each.strip() for each in text.split(",") if each.strip())
    if policies - {"compact", "delete"}:
        raise ValueError(text)
    return policies


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "cleanup_policy": _policies,
    "min_cleanable_dirty_ratio": float,
}


class Task(Enum):
    """What is done again and again."""

    FLUSH = "flush"
    CHECKPOINT_RECOVERY_POINTS = "recovery points"
    CHECKPOINT_START_OFFSETS = "log start offsets"
    CHECKPOINT_HIGH_WATERMARKS = "high watermarks"
    RETENTION = "retention"
    COMPACTION = "compaction"
    EXPIRE_PRODUCERS = "producers"


@dataclass(frozen=True, slots=True)
class LogManagerConfig:
    """The configs of a broker that concern its logs; times in ms.

    topic: the defaults of topics. max_producers: with state in one partition.
    """

    cluster_id: str
    node_id: int
    topic: LogConfig = field(default_factory=LogConfig)
    flush_scheduler_interval_ms: int = MAX_INT64
    flush_offset_checkpoint_interval_ms: int = 60_000
    flush_start_offset_checkpoint_interval_ms: int = 60_000
    high_watermark_checkpoint_interval_ms: int = 5_000
    retention_check_interval_ms: int = 300_000
    cleaner_backoff_ms: int = 15_000
    producer_id_expiration_ms: int = 86_400_000
    producer_id_expiration_check_interval_ms: int = 600_000
    replica_fetch_max_bytes: int = 1 << 20
    alter_log_dirs_io_max_bytes_per_second: int = MAX_INT64
    max_producers: int = MAX_PRODUCERS

    @property
    def intervals(self) -> dict[Task, int]:
        """Task -> its interval."""
        return {
            Task.FLUSH: self.flush_scheduler_interval_ms,
            Task.CHECKPOINT_RECOVERY_POINTS: self.flush_offset_checkpoint_interval_ms,
            Task.CHECKPOINT_START_OFFSETS: self.flush_start_offset_checkpoint_interval_ms,
            Task.CHECKPOINT_HIGH_WATERMARKS: self.high_watermark_checkpoint_interval_ms,
            Task.RETENTION: self.retention_check_interval_ms,
            Task.COMPACTION: self.cleaner_backoff_ms,
            Task.EXPIRE_PRODUCERS: self.producer_id_expiration_check_interval_ms,
        }

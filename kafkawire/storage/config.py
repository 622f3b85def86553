"""The configuration of a log, in Kafka's names and with Kafka's defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

MAX_INT64: Final = 0x7FFF_FFFF_FFFF_FFFF
DAY_MS: Final = 86_400_000


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
        given: dict[str, Any] = {}
        for field in fields(cls):
            name = field.name.replace("_", ".")
            if name in configs:
                try:
                    given[field.name] = _READERS.get(field.name, int)(configs[name])
                except ValueError:
                    raise ValueError(f"invalid value {configs[name]!r} of {name}") from None
        return cls(**given)


def _policies(text: str) -> frozenset[str]:
    policies = frozenset(each.strip() for each in text.split(",") if each.strip())
    if policies - {"compact", "delete"}:
        raise ValueError(text)
    return policies


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "cleanup_policy": _policies,
    "min_cleanable_dirty_ratio": float,
}

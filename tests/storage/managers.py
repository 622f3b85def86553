"""Starts log managers for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from kafkawire.storage.config import LogConfig, LogManagerConfig
from kafkawire.storage.disks.disk import Disk
from kafkawire.storage.log_manager import LogManager

from .logs import SMALL, TIME


def uuids() -> Callable[[], bytes]:
    """Return a source of ids: 1, 2, 3 ..."""
    numbers = count(1)
    return lambda: next(numbers).to_bytes(16, "big")


def started(
    disks: Mapping[str, Disk],
    topic: LogConfig = SMALL,
    *,
    now_ms: int = TIME,
    configs: Mapping[str, LogConfig] | None = None,
    **options: Any,
) -> LogManager:
    """Start a log manager."""
    made = LogManager(disks, LogManagerConfig("cluster", 1, topic, **options), uuids())
    made.start(now_ms, configs)
    return made

"""The settings of a share group at the leaders of its partitions: its own, else the broker's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ...configs.durations import LATEST
from ..configs import Settings
from ..metadata_cache import MetadataCache

READ_COMMITTED: Final = "read_committed"


class ShareConfig(NamedTuple):
    """The settings of a group.

    lock_duration: in seconds. delivery_limit: how often a record is delivered at most. max_locks:
    records in flight in a share partition. reset: where a group begins.
    """

    lock_duration: float = 30.0
    delivery_limit: int = 5
    max_locks: int = 2000
    reset: str = LATEST
    read_committed: bool = False
    renews: bool = True


def share_config(settings: Settings, metadata: MetadataCache, group_id: str) -> ShareConfig:
    """Return the settings of a group."""
    own = metadata.group_configs(group_id)
    return ShareConfig(
        _number(settings, own, "record.lock.duration.ms") / 1000,
        _number(settings, own, "delivery.count.limit"),
        _number(settings, own, "partition.max.record.locks"),
        own.get("share.auto.offset.reset", LATEST),
        own.get("share.isolation.level") == READ_COMMITTED,
        own.get("share.renew.acknowledge.enable", "true") == "true",
    )


def _number(settings: Settings, own: Mapping[str, str], key: str) -> int:
    """Return a value within the limits of the broker, which has them since Kafka 4.3."""
    value = own.get(f"share.{key}")
    if value is None:
        return settings.number(f"group.share.{key}")
    least, most = f"group.share.min.{key}", f"group.share.max.{key}"
    if least not in settings.keys or most not in settings.keys:
        return int(value)
    return max(settings.number(least), min(settings.number(most), int(value)))

"""The settings of a share group at the leaders of its partitions: its own, else the broker's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ...configs.durations import LATEST
from ...configs.features import SHARE, features
from ...configs.rules import DEAD_LETTER_TOPIC
from ..configs import Settings
from ..metadata_cache import MetadataCache

READ_COMMITTED: Final = "read_committed"

DEAD_LETTERS_FROM: Final = 2
"""The level of share.version that has dead letter queues (KIP-1191)."""


class ShareConfig(NamedTuple):
    """The settings of a group.

    lock_duration: in seconds. delivery_limit: how often a record is delivered at most. max_locks:
    records in flight in a share partition. reset: where a group begins. dead_letters: whether what
    is rejected, or delivered too often, is written to a dead letter queue.
    """

    lock_duration: float = 30.0
    delivery_limit: int = 5
    max_locks: int = 2000
    reset: str = LATEST
    read_committed: bool = False
    renews: bool = True
    dead_letters: bool = False


def share_config(
    settings: Settings, metadata: MetadataCache, release: str, group_id: str
) -> ShareConfig:
    """Return the settings of a group. release: of the broker."""
    own = metadata.group_configs(group_id)
    return ShareConfig(
        _number(settings, own, "record.lock.duration.ms") / 1000,
        _number(settings, own, "delivery.count.limit"),
        _number(settings, own, "partition.max.record.locks"),
        own.get("share.auto.offset.reset", LATEST),
        own.get("share.isolation.level") == READ_COMMITTED,
        own.get("share.renew.acknowledge.enable", "true") == "true",
        bool(own.get(DEAD_LETTER_TOPIC)) and _has_dead_letters(metadata, release),
    )


def _has_dead_letters(metadata: MetadataCache, release: str) -> bool:
    """Return whether the cluster has dead letter queues."""
    feature = next((each for each in features(release) if each.name == SHARE), None)
    return feature is not None and metadata.finalized_level(feature) >= DEAD_LETTERS_FROM


def _number(settings: Settings, own: Mapping[str, str], key: str) -> int:
    """Return a value within the limits of the broker, which has them since Kafka 4.3."""
    value = own.get(f"share.{key}")
    if value is None:
        return settings.number(f"group.share.{key}")
    least, most = f"group.share.min.{key}", f"group.share.max.{key}"
    if least not in settings.keys or most not in settings.keys:
        return int(value)
    return max(settings.number(least), min(settings.number(most), int(value)))

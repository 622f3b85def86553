"""The features of a cluster (KIP-584): their levels, and those of each Kafka release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

ELR: Final = "eligible.leader.replicas.version"
KRAFT: Final = "kraft.version"
METADATA: Final = "metadata.version"
TRANSACTIONS: Final = "transaction.version"
GROUP: Final = "group.version"
"""The feature whose level 1 has consumer groups of KIP-848."""
SHARE: Final = "share.version"
"""The feature whose level 1 has share groups of KIP-932, level 2 their dead letter queues."""
STREAMS: Final = "streams.version"
"""The feature whose level 1 has Streams groups of KIP-1071."""
UNSERVED: Final = frozenset[str]()
"""Features whose APIs no broker of kafkawire serves: none of them says that they are finalized.

Brokers of Kafka in the same cluster may serve them, so nodes support their levels.
"""

METADATA_VERSIONS: Final[Mapping[int, str]] = {
    7: "3.3-IV3",
    8: "3.4-IV0",
    9: "3.5-IV0",
    10: "3.5-IV1",
    11: "3.5-IV2",
    12: "3.6-IV0",
    13: "3.6-IV1",
    14: "3.6-IV2",
    15: "3.7-IV0",
    16: "3.7-IV1",
    17: "3.7-IV2",
    18: "3.7-IV3",
    19: "3.7-IV4",
    20: "3.8-IV0",
    21: "3.9-IV0",
    22: "4.0-IV0",
    23: "4.0-IV1",
    24: "4.0-IV2",
    25: "4.0-IV3",
    26: "4.1-IV0",
    27: "4.1-IV1",
    28: "4.2-IV0",
    29: "4.2-IV1",
    30: "4.3-IV0",
    31: "4.4-IV0",
    32: "4.4-IV1",
    33: "4.4-IV2",
}
"""Levels of the feature metadata.version that Kafka 4 supports."""
OLDEST_METADATA: Final = min(METADATA_VERSIONS)
NEWEST_METADATA: Final = max(METADATA_VERSIONS)


class Feature(NamedTuple):
    """A feature of a release.

    lowest, highest: the supported levels; level: the finalized one in a cluster formatted by that
    release.
    """

    name: str
    lowest: int
    highest: int
    level: int


FEATURES_CHANGED: Final[Mapping[str, tuple[Feature, ...]]] = {
    "4.0": (
        Feature(ELR, 0, 1, 0),
        Feature(GROUP, 0, 1, 1),
        Feature(KRAFT, 0, 1, 1),
        Feature(TRANSACTIONS, 0, 2, 2),
    ),
    "4.1": (Feature(ELR, 0, 1, 1), Feature(SHARE, 0, 1, 0)),
    "4.2": (Feature(SHARE, 0, 1, 1), Feature(STREAMS, 0, 1, 1)),
    "4.3": (),
    "4.4": (Feature(SHARE, 0, 2, 2),),
}
"""The features that are new or different in each release, oldest first; none before 4.0."""


def metadata_version(release: str) -> int | None:
    """Return the newest metadata.version of a release; None for one before 3.3, or not numbered."""
    levels = [
        level for level, name in METADATA_VERSIONS.items() if name.startswith(f"{release}-IV")
    ]
    return max(levels, default=None)


def served_level(name: str, level: int) -> int:
    """Return the level of a feature that brokers of kafkawire serve, at most a given one."""
    return 0 if name in UNSERVED else level


def _all_features() -> Mapping[str, tuple[Feature, ...]]:
    current: dict[str, Feature] = {}
    releases = {}
    for release, changed in FEATURES_CHANGED.items():
        level = metadata_version(release) or NEWEST_METADATA
        metadata = Feature(METADATA, OLDEST_METADATA, level, level)
        current |= {feature.name: feature for feature in (*changed, metadata)}
        releases[release] = tuple(current[name] for name in sorted(current))
    return releases


FEATURES: Final = _all_features()
"""The features in ApiVersions by release, in the order of their names."""
NEWEST: Final = FEATURES[[*FEATURES][-1]]


def features(release: str) -> tuple[Feature, ...]:
    """Return the features of a release; releases without a number have those of the newest."""
    return FEATURES.get(release, ()) if release[:1].isdecimal() else NEWEST


def formatted_level(name: str, release: str) -> int:
    """Return the level of a feature in a cluster formatted by a release; 0 for none."""
    return next((each.level for each in features(release) if each.name == name), 0)


def controller_features(release: str) -> tuple[Feature, ...]:
    """Return the features of a KRaft controller of a release.

    Before 4.0 it is metadata.version alone; before 3.3 in the levels of the newest release, so that
    its records are those that the others read.
    """
    level = metadata_version(release) or NEWEST_METADATA
    return features(release) or (Feature(METADATA, OLDEST_METADATA, level, level),)

"""The API versions that a broker supports, by the Kafka release it emulates: `releases.json`.

Law: versions that are unstable in a release are not supported; `all` supports every version that
ever existed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from ..messages import REGISTRY
from ..messages.api_key import ApiKey

ALL: Final = "all"
LATEST: Final = "4.4"
"""The default release."""

LISTED_FROM_0: Final = "4."
"""Releases that list Produce from 0 although they support it from 3: librdkafka needs that."""


NONCES_COMPARED_FROM: Final = "4.0"
"""Before, a nonce that ends in the server's is accepted, as librdkafka 2.0 repeats its own part:
3.9.1 tests `endsWith`, 4.0 `equals` (CVE-2024-56128)."""


class Feature(NamedTuple):
    """A feature of a release (KIP-584).

    lowest, highest: the supported levels; level: the finalized one in a cluster formatted by that
    release.
    """

    name: str
    lowest: int
    highest: int
    level: int


FEATURES_CHANGED: Final[Mapping[str, tuple[Feature, ...]]] = {
    "4.0": (
        Feature("eligible.leader.replicas.version", 0, 1, 0),
        Feature("group.version", 0, 1, 1),
        Feature("kraft.version", 0, 1, 1),
        Feature("metadata.version", 7, 25, 25),
        Feature("transaction.version", 0, 2, 2),
    ),
    "4.1": (
        Feature("eligible.leader.replicas.version", 0, 1, 1),
        Feature("metadata.version", 7, 27, 27),
        Feature("share.version", 0, 1, 0),
    ),
    "4.2": (
        Feature("metadata.version", 7, 29, 29),
        Feature("share.version", 0, 1, 1),
        Feature("streams.version", 0, 1, 1),
    ),
    "4.3": (Feature("metadata.version", 7, 30, 30),),
    "4.4": (Feature("metadata.version", 7, 33, 33), Feature("share.version", 0, 2, 2)),
}
"""The features that are new or different in each release, oldest first; none before 4.0."""


def _all_features() -> Mapping[str, tuple[Feature, ...]]:
    known: dict[str, Feature] = {}
    found = {}
    for release, changed in FEATURES_CHANGED.items():
        known |= {each.name: each for each in changed}
        found[release] = tuple(known[name] for name in sorted(known))
    return found


FEATURES: Final = _all_features()
"""The features in ApiVersions by release, in the order of their names."""


def features(release: str) -> tuple[Feature, ...]:
    """Return the features of a release; `trunk` and `all` have those of the newest."""
    if release in (ALL, "trunk"):
        release = LATEST
    return FEATURES.get(release, ())


class Versions(NamedTuple):
    """A range of API versions, both ends included."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


Offer = Mapping[ApiKey, Versions]


@cache
def table() -> Mapping[str, Mapping[ApiKey, Versions]]:
    """Load the table: release -> API -> versions."""
    raw = json.loads(Path(__file__).with_name("releases.json").read_text("utf-8"))
    return {
        release: {key_of(name): parse(text) for name, text in offered.items()}
        for release, offered in raw.items()
    }


def key_of(name: str) -> ApiKey:
    """Return the API key of a message name without its suffix, e.g. `Produce`."""
    number = REGISTRY.get(f"{name}Request").api_key
    assert number is not None
    return ApiKey(number)


def parse(text: str) -> Versions:
    """Parse `3-13` or `0`."""
    first, _, last = text.partition("-")
    return Versions(int(first), int(last or first))


def offered(release: str) -> Offer:
    """Return the API versions that a release supports. ValueError for an unknown release."""
    if release == ALL:
        known = {key for row in table().values() for key in row}
        return {key: _all_versions(key) for key in sorted(known)}
    if release not in table():
        raise ValueError(
            f"unknown release {release!r}: expected one of {', '.join([*table(), ALL])}"
        )
    return table()[release]


def listed(release: str) -> Offer:
    """Return the versions listed by ApiVersions: the supported ones, but for Produce."""
    found = dict(offered(release))
    if release.startswith(LISTED_FROM_0) or release == "trunk":
        found[ApiKey.PRODUCE] = found[ApiKey.PRODUCE]._replace(first=0)
    return found


def before(release: str, other: str) -> bool:
    """Whether a release is older than another one; `all` and `trunk` are the newest."""
    known = list(table())
    return release in known and known.index(release) < known.index(other)


def _all_versions(key: ApiKey) -> Versions:
    info = REGISTRY.request(key)
    assert info is not None
    return Versions(info.first, info.last)

"""Which versions a broker offers, by the Kafka release it stands for: `releases.json`.

Law: what Kafka calls unstable in a release is not offered; `all` offers every version there ever
was.
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
LATEST: Final = "4.3"
"""The release that is emulated if none is named."""

LISTED_FROM_0: Final = "4."
"""Releases that list Produce from 0 although they take it from 3 on: librdkafka needs to see it."""


NONCES_COMPARED_FROM: Final = "4.0"
"""Before, a nonce that ends in ours is taken, as librdkafka 2.0 doubles its own part: 3.9.1 tests
`endsWith`, 4.0 `equals` (CVE-2024-56128)."""


class Feature(NamedTuple):
    """A feature of a release (KIP-584). supported: lowest and highest level; level: the finalized
    one, as a cluster has it that is formatted by that release.
    """

    name: str
    lowest: int
    highest: int
    level: int


FEATURES: Final[Mapping[str, tuple[Feature, ...]]] = {
    "4.0": (
        Feature("eligible.leader.replicas.version", 0, 1, 0),
        Feature("group.version", 0, 1, 1),
        Feature("kraft.version", 0, 1, 1),
        Feature("metadata.version", 7, 25, 25),
        Feature("transaction.version", 0, 2, 2),
    ),
    "4.1": (
        Feature("eligible.leader.replicas.version", 0, 1, 1),
        Feature("group.version", 0, 1, 1),
        Feature("kraft.version", 0, 1, 1),
        Feature("metadata.version", 7, 27, 27),
        Feature("share.version", 0, 1, 0),
        Feature("transaction.version", 0, 2, 2),
    ),
    "4.2": (
        Feature("eligible.leader.replicas.version", 0, 1, 1),
        Feature("group.version", 0, 1, 1),
        Feature("kraft.version", 0, 1, 1),
        Feature("metadata.version", 7, 29, 29),
        Feature("share.version", 0, 1, 1),
        Feature("streams.version", 0, 1, 1),
        Feature("transaction.version", 0, 2, 2),
    ),
    "4.3": (
        Feature("eligible.leader.replicas.version", 0, 1, 1),
        Feature("group.version", 0, 1, 1),
        Feature("kraft.version", 0, 1, 1),
        Feature("metadata.version", 7, 30, 30),
        Feature("share.version", 0, 1, 1),
        Feature("streams.version", 0, 1, 1),
        Feature("transaction.version", 0, 2, 2),
    ),
}
"""What ApiVersions says of features, by release; those before 4.0 say nothing."""


def features(release: str) -> tuple[Feature, ...]:
    """Return the features of a release; those of the newest for `trunk` and `all`."""
    if release in (ALL, "trunk"):
        release = LATEST
    return FEATURES.get(release, ())


class Versions(NamedTuple):
    """The versions of an API, both included."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


Offer = Mapping[ApiKey, Versions]


@cache
def table() -> Mapping[str, Mapping[ApiKey, Versions]]:
    """Read the table: release -> API -> versions."""
    raw = json.loads(Path(__file__).with_name("releases.json").read_text("utf-8"))
    return {
        release: {key_of(name): parse(text) for name, text in offered.items()}
        for release, offered in raw.items()
    }


def key_of(name: str) -> ApiKey:
    """Find the key of an API by the name its messages begin with."""
    number = REGISTRY.get(f"{name}Request").api_key
    assert number is not None
    return ApiKey(number)


def parse(text: str) -> Versions:
    """Read `3-13` or `0`."""
    first, _, last = text.partition("-")
    return Versions(int(first), int(last or first))


def offered(release: str) -> Offer:
    """Say what a release offers; ValueError names those there are."""
    if release == ALL:
        known = {key for row in table().values() for key in row}
        return {key: _all_versions(key) for key in sorted(known)}
    if release not in table():
        raise ValueError(f"{release!r} is no release: {', '.join([*table(), ALL])}")
    return table()[release]


def listed(release: str) -> Offer:
    """Say what ApiVersions answers: what is offered, but for what clients need to see."""
    found = dict(offered(release))
    if release.startswith(LISTED_FROM_0) or release == "trunk":
        found[ApiKey.PRODUCE] = found[ApiKey.PRODUCE]._replace(first=0)
    return found


def before(release: str, other: str) -> bool:
    """Say whether a release came before another one; `all` and `trunk` are the newest."""
    known = list(table())
    return release in known and known.index(release) < known.index(other)


def _all_versions(key: ApiKey) -> Versions:
    info = REGISTRY.request(key)
    assert info is not None
    return Versions(info.first, info.last)

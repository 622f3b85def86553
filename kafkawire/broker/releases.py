"""The API versions of the Kafka release that a broker emulates, from `schemas/releases.json`.

Versions that are unstable in a release are left out; `all` has every version that ever existed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

from kafkawire_codegen import schemas_dir

from ..messages import REGISTRY
from ..messages.api_key import ApiKey

ALL: Final = "all"
LATEST: Final = "4.4"
"""The default release."""

WITHOUT_ZOOKEEPER_FROM: Final = "2.8"
NONCES_COMPARED_FROM: Final = "4.0"
"""Before, a nonce that ends in the server's is accepted, as librdkafka 2.0 repeats its own part:
3.9.1 tests `endsWith`, 4.0 `equals` (CVE-2024-56128)."""


class Versions(NamedTuple):
    """A range of API versions, both ends included."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"

    def __and__(self, other: Versions) -> Versions:
        """Return the versions that are in both; none if `last` is before `first`."""
        return Versions(max(self.first, other.first), min(self.last, other.last))


Offer = Mapping[ApiKey, Versions]


@cache
def _file() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    loaded: Mapping[str, Mapping[str, Mapping[str, str]]] = json.loads(
        (schemas_dir() / "releases.json").read_text("utf-8")
    )
    return loaded


def numbered() -> tuple[str, ...]:
    """Return the releases, oldest first, and `trunk`."""
    return tuple(_file()["releases"])


def releases() -> tuple[str, ...]:
    """Return every release that a broker can emulate."""
    return (*numbered(), ALL)


def key_of(name: str) -> ApiKey:
    """Return the API key of a message name without its suffix, e.g. `Produce`."""
    number = REGISTRY.get(f"{name}Request").api_key
    assert number is not None
    return ApiKey(number)


def parse(text: str) -> Versions:
    """Parse `3-13` or `0`."""
    first, _, last = text.partition("-")
    return Versions(int(first), int(last or first))


@cache
def versions_of(release: str) -> Offer:
    """Return the stable versions of each API in a release. ValueError for an unknown release."""
    if release == ALL:
        keys = {key_of(name) for row in _file()["releases"].values() for name in row}
        return {key: all_versions(key) for key in sorted(keys)}
    if release not in numbered():
        raise ValueError(f"unknown release {release!r}: expected one of {', '.join(releases())}")
    unstable = _file()["unstable"].get(release, {})
    stable = {
        key_of(name): _stable(parse(text), unstable.get(name))
        for name, text in _file()["releases"][release].items()
    }
    return {key: versions for key, versions in stable.items() if versions.first <= versions.last}


def _stable(versions: Versions, unstable: str | None) -> Versions:
    """Return versions without those that are unstable, which are the last ones."""
    return versions if unstable is None else versions._replace(last=parse(unstable).first - 1)


def with_zookeeper() -> tuple[str, ...]:
    """Return the releases whose brokers need ZooKeeper."""
    return tuple(release for release in numbered() if before(release, WITHOUT_ZOOKEEPER_FROM))


def all_versions(key: ApiKey) -> Versions:
    """Return every version of an API that ever existed."""
    info = REGISTRY.request(key)
    assert info is not None
    return Versions(info.first, info.last)


def before(release: str, other: str) -> bool:
    """Whether a release is older than another one; `all` and `trunk` are the newest."""
    order = numbered()
    return release in order and order.index(release) < order.index(other)

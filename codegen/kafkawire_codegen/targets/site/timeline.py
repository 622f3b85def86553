"""Says what each release changed: APIs and versions that it added, and those that it removed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ...releases import Releases
from ...versions import NONE, Versions

_ANCHOR: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")


@dataclass(frozen=True, slots=True)
class ApiVersions:
    """Versions of an API: `Fetch`, "16-17"."""

    api: str
    versions: str


@dataclass(frozen=True, slots=True)
class Release:
    """A release, and what it changed as against the one before; nothing in the first one.

    anchor: its name, or its number if the name has other characters than those of versions.
    """

    name: str
    anchor: str
    before: str
    apis: int
    added: tuple[ApiVersions, ...]
    removed: tuple[ApiVersions, ...]
    versions_added: tuple[ApiVersions, ...]
    versions_removed: tuple[ApiVersions, ...]
    unstable: tuple[ApiVersions, ...]


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """The versions of an API in each release; of an empty text it has none."""

    api: str
    key: int | None
    cells: tuple[str, ...]


def timeline(releases: Releases) -> list[Release]:
    """Describe every release, oldest first."""
    described: list[Release] = []
    before: Mapping[str, Versions] = {}
    for name, now in releases.ranges.items():
        both = sorted(before.keys() & now.keys()) if described else []
        described.append(
            Release(
                name=name,
                anchor=name if _ANCHOR.match(name) else f"-{len(described)}",
                before=described[-1].name if described else "",
                apis=len(now),
                added=_all(now, now.keys() - before.keys()) if described else (),
                removed=_all(before, before.keys() - now.keys()),
                versions_added=_gone(now, before, both),
                versions_removed=_gone(before, now, both),
                unstable=_all(releases.unstable.get(name, {}), releases.unstable.get(name, {})),
            )
        )
        before = now
    return described


def matrix(releases: Releases, keys: Mapping[str, int]) -> list[MatrixRow]:
    """Give the versions of each API in each release, by API key."""
    apis = {api for of in releases.ranges.values() for api in of}
    order = sorted(apis, key=lambda api: (api not in keys, keys.get(api, 0), api))
    return [
        MatrixRow(
            api,
            keys.get(api),
            tuple(_cell(releases, release, api) for release in releases.ranges),
        )
        for api in order
    ]


def _cell(releases: Releases, release: str, api: str) -> str:
    versions = releases.ranges[release].get(api, NONE)
    unstable = releases.unstable.get(release, {}).get(api, NONE)
    return f"{versions}{'*' * bool(unstable)}" if versions else ""


def _all(of: Mapping[str, Versions], apis: Iterable[str]) -> tuple[ApiVersions, ...]:
    return tuple(ApiVersions(api, str(of[api])) for api in sorted(apis))


def _gone(
    there: Mapping[str, Versions], missing_in: Mapping[str, Versions], apis: list[str]
) -> tuple[ApiVersions, ...]:
    """List the versions of APIs that the other release does not have."""
    runs = ((api, there[api].without(missing_in[api])) for api in apis)
    return tuple(ApiVersions(api, ", ".join(map(str, run))) for api, run in runs if run)

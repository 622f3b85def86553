"""The API versions of each Kafka release, and what of them a set of schemas covers.

An API is covered in a version when its request and its response both are valid in it.
`releases.json` has the versions:

{"releases": {"2.2": {"Produce": "0-7", ...}, ...}, "unstable": {"4.1": {"Fetch": "18"}, ...}}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from . import files, naming, source
from .dialect import MessageSchema
from .files import Sources, as_sources
from .source import SchemaError, SchemaErrors
from .versions import NONE, Versions

Ranges = Mapping[str, Mapping[str, Versions]]

TABLES: Final = ("releases", "unstable")
"""The keys of `releases.json`."""


class UnknownRelease(LookupError):
    """A release that is not in `releases.json`; the text lists those that are."""


@dataclass(frozen=True, slots=True)
class Releases:
    """Release -> API -> versions, oldest release first.

    unstable: the versions among them that a broker offers only if configured to.
    """

    ranges: Ranges
    unstable: Ranges

    def of(self, release: str) -> Mapping[str, Versions]:
        """Return the versions of each API in a release, unstable ones too, or UnknownRelease."""
        if release not in self.ranges:
            names = ", ".join(self.ranges)
            raise UnknownRelease(f"unknown release {release!r} (known: {names})")
        return self.ranges[release]

    def at(self, release: str, schemas: list[MessageSchema]) -> list[MessageSchema]:
        """Restrict requests and responses to the versions of a release, and leave out the rest."""
        ranges = self.of(release)
        unstable = self.unstable.get(release, {})
        cut: list[MessageSchema] = []
        for schema in schemas:
            api = naming.api_name(schema.name)
            valid = ranges.get(api, NONE) & schema.valid_versions
            if schema.type in ("request", "response") and valid:
                latest = schema.type == "request" and valid.high in unstable.get(api, NONE)
                cut.append(replace(schema, valid_versions=valid, latest_version_unstable=latest))
        return cut


def read(path: Path) -> Releases:
    """Read a releases.json; SchemaErrors lists its errors."""
    return parse(path.read_bytes(), str(path))


def of_sources(sources: Sources) -> Releases | None:
    """Read the releases.json of the last source that has one; None if none has."""
    for path in reversed(as_sources(sources)):
        releases = files.read(path).releases
        if releases is not None:
            return parse(releases.data, releases.file)
    return None


def parse(data: bytes, file: str) -> Releases:
    """Read the text of a releases.json; SchemaErrors lists its errors."""
    tables = _plain(data)
    return _checked(data, file) if tables is None else Releases(*tables)


def _plain(data: bytes) -> list[Ranges] | None:
    """Read JSON without comments, escapes and errors, which needs no locations; None for others."""
    try:
        document = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_without_repeats)
        if document.keys() != set(TABLES) or b"\\" in data:
            return None
        return [
            {
                release: {api: Versions.parse(str(text)) for api, text in ranges.items()}
                for release, ranges in document[key].items()
            }
            for key in TABLES
        ]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None  # `_checked` says what is wrong, and where


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key is repeated")
    return members


def _checked(data: bytes, file: str) -> Releases:
    """Read with the location of each value. Raises SchemaErrors."""
    try:
        node, _ = source.parse(data.decode("utf-8-sig"), file)
    except UnicodeDecodeError as error:
        reason = f"byte {error.start} is not UTF-8"
        raise SchemaErrors((SchemaError(file, 1, 1, "", reason, "syntax"),)) from None
    errors: list[SchemaError] = []
    tables = [_table(node, key, errors) for key in TABLES]
    if errors:
        raise SchemaErrors(tuple(errors))
    return Releases(*tables)


def _table(node: source.Node, key: str, errors: list[SchemaError]) -> Ranges:
    member = node.members.get(key)
    if member is None or not isinstance(member.node.value, dict):
        reason = f'"{key}" must be an object of releases, each an object of version ranges'
        errors.append(SchemaError.at(node.at(key), key, "wrong-kind", reason))
        return {}
    return {
        release: _release(f"{key}.{release}", of.node, errors)
        for release, of in member.node.members.items()
    }


def _release(path: str, node: source.Node, errors: list[SchemaError]) -> Mapping[str, Versions]:
    versions: dict[str, Versions] = {}
    for api, member in node.members.items():
        try:
            versions[api] = Versions.parse(str(member.node.value))
        except ValueError as error:
            location = member.node.location
            errors.append(
                SchemaError.at(location, f"{path}.{api}", "ill-formed-versions", str(error))
            )
    return versions


@dataclass(frozen=True, slots=True)
class ApiCoverage:
    """One API: the versions of the release, those of the schemas, and the differences."""

    api: str
    api_key: int | None
    released: Versions
    covered: Versions
    missing: tuple[Versions, ...]
    extra: tuple[Versions, ...]

    def __str__(self) -> str:
        notes = [f"{self.released} released", f"{self.covered} covered"]
        notes += [f"missing {_ranges(self.missing)}"] * bool(self.missing)
        notes += [f"extra {_ranges(self.extra)}"] * bool(self.extra)
        key = "-" if self.api_key is None else self.api_key
        return f"{key:>3} {self.api}: {', '.join(notes)}"


@dataclass(frozen=True, slots=True)
class Coverage:
    """Every API of a release, and those that only the schemas have, by api key."""

    release: str
    apis: tuple[ApiCoverage, ...]

    @property
    def complete(self) -> bool:
        """Whether nothing of the release is missing."""
        return not any(api.missing for api in self.apis)

    def text(self) -> str:
        """One line per API that differs, then the summary."""
        differing = [str(api) for api in self.apis if api.missing or api.extra]
        return "\n".join([*differing, self.summary()])

    def summary(self) -> str:
        """Count APIs and versions, in one line."""
        released = [api for api in self.apis if api.released]
        versions = sum(len(api.released) for api in released)
        missing = sum(len(run) for api in released for run in api.missing)
        return (
            f"Kafka {self.release}: {len(released)} API{'' if len(released) == 1 else 's'}, "
            f"{versions} versions, "
            f"{versions - missing} covered, {missing} missing"
        )

    def json(self) -> dict[str, object]:
        """The same as a JSON object, with the dialect's version ranges."""
        return {
            "release": self.release,
            "complete": self.complete,
            "apis": [
                {
                    "api": api.api,
                    "api_key": api.api_key,
                    "released": str(api.released),
                    "covered": str(api.covered),
                    "missing": [str(run) for run in api.missing],
                    "extra": [str(run) for run in api.extra],
                }
                for api in self.apis
            ],
        }


def coverage(release: str, releases: Releases, schemas: Iterable[MessageSchema]) -> Coverage:
    """Compare schemas with a release; UnknownRelease if `releases` does not have it."""
    released = releases.of(release)
    halves: dict[str, dict[str, MessageSchema]] = {}
    for schema in schemas:
        if schema.type in ("request", "response"):
            halves.setdefault(naming.api_name(schema.name), {})[schema.type] = schema
    apis = [_api(api, released.get(api, NONE), halves.get(api, {})) for api in {*released, *halves}]
    apis.sort(key=lambda a: (a.api_key is None, a.api_key, a.api))
    return Coverage(release, tuple(apis))


def _api(api: str, released: Versions, halves: dict[str, MessageSchema]) -> ApiCoverage:
    request, response = halves.get("request"), halves.get("response")
    covered = NONE
    if request is not None and response is not None:
        covered = request.valid_versions & response.valid_versions
    either = request or response
    return ApiCoverage(
        api=api,
        api_key=None if either is None else either.api_key,
        released=released,
        covered=covered,
        missing=released.without(covered),
        extra=covered.without(released),
    )


def _ranges(runs: tuple[Versions, ...]) -> str:
    return " and ".join(map(str, runs))

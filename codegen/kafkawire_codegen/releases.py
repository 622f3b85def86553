"""Reads `releases.json`: the API versions of each Kafka release.

{"releases": {"2.2": {"Produce": "0-7", ...}, ...}, "unstable": {"4.1": {"Fetch": "18"}, ...}}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from . import naming, source
from .dialect import MessageSchema
from .source import SchemaError, SchemaErrors
from .versions import NONE, Versions

Ranges = Mapping[str, Mapping[str, Versions]]


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
        """The versions of each API in a release, unstable ones too; UnknownRelease if it is
        unknown.
        """
        if release not in self.ranges:
            known = ", ".join(self.ranges)
            raise UnknownRelease(f"unknown release {release!r} (known: {known})")
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
    node, _ = source.parse(path.read_text("utf-8"), str(path))
    errors: list[SchemaError] = []
    tables = [_table(node, key, errors) for key in ("releases", "unstable")]
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
            place = member.node.place
            errors.append(SchemaError.at(place, f"{path}.{api}", "ill-formed-versions", str(error)))
    return versions

"""Compares two sets of schemas, and finds broken rules of evolution.

A released version keeps its layout: fields may only be added as tagged fields. Versions that
the older set marks unstable may change.

    before, after --compare--> Evolution { added, removed, changed, breaches }
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Final

from ..dialect import MessageSchema
from ..headers import header_versions
from ..layout import Spot, spots
from ..source import SchemaError
from ..versions import NEWEST, NONE, Versions
from .breaches import breaches, plain_default


@dataclass(frozen=True, slots=True)
class Difference:
    """One changed attribute of the field at `path`; of the message if empty."""

    path: str
    attribute: str
    before: str
    after: str

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"~ {where}{self.attribute} {self.before or 'none'} -> {self.after or 'none'}"


@dataclass(frozen=True, slots=True)
class FieldNote:
    """An added or removed field: its path, type and versions."""

    path: str
    type: str
    versions: str

    def __str__(self) -> str:
        return f"{self.path}: {self.type}, {self.versions}"


@dataclass(frozen=True, slots=True)
class MessageChange:
    """The changes of one message."""

    name: str
    versions_added: str
    versions_removed: str
    fields_added: tuple[FieldNote, ...]
    fields_removed: tuple[FieldNote, ...]
    differences: tuple[Difference, ...]

    @property
    def empty(self) -> bool:
        return self == MessageChange(self.name, "", "", (), (), ())

    def lines(self) -> Iterator[str]:
        """The message, then one line per change."""
        yield self.name
        if self.versions_added:
            yield f"  + versions {self.versions_added}"
        if self.versions_removed:
            yield f"  - versions {self.versions_removed}"
        for note in self.fields_added:
            yield f"  + {note}"
        for note in self.fields_removed:
            yield f"  - {note}"
        for difference in self.differences:
            yield f"  {difference}"


@dataclass(frozen=True, slots=True)
class Evolution:
    """The differences between two sets of schemas, messages by name."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[MessageChange, ...]
    breaches: tuple[SchemaError, ...]

    def text(self) -> str:
        """The changes, then the rules broken, then the count."""
        lines = [f"+ {name}" for name in self.added] + [f"- {name}" for name in self.removed]
        for change in self.changed:
            lines += change.lines()
        if self.breaches:
            lines += ["", "Rules of evolution broken:", *map(str, self.breaches)]
        count = (len(self.added), len(self.removed), len(self.changed), len(self.breaches))
        lines.append("{} added, {} removed, {} changed, {} rules broken".format(*count))
        return "\n".join(lines)

    def json(self) -> dict[str, object]:
        """The same for a machine."""
        return asdict(self)


def compare(before: Iterable[MessageSchema], after: Iterable[MessageSchema]) -> Evolution:
    """Find the changes between two sets of checked schemas, messages matched by name."""
    old, new = {m.name: m for m in before}, {m.name: m for m in after}
    both = sorted(old.keys() & new.keys())
    changes = [_change(old[name], new[name]) for name in both]
    return Evolution(
        added=tuple(sorted(new.keys() - old.keys())),
        removed=tuple(sorted(old.keys() - new.keys())),
        changed=tuple(change for change in changes if not change.empty),
        breaches=tuple(breaches(old, new)),
    )


def _change(old: MessageSchema, new: MessageSchema) -> MessageChange:
    old_spots, new_spots = _by_path(old), _by_path(new)
    common = old.valid_versions & new.valid_versions
    both = Versions(common.low, NEWEST) if common else NONE
    differences = _differences("", _head(old, both), _head(new, both))
    for path, spot in old_spots.items():
        if path in new_spots:
            ours = _written(spot, both, old.valid_versions.high)
            theirs = _written(new_spots[path], both, new.valid_versions.high)
            differences += _differences(path, ours, theirs)
    return MessageChange(
        name=new.name,
        versions_added=_gone(new.valid_versions, old.valid_versions),
        versions_removed=_gone(old.valid_versions, new.valid_versions),
        fields_added=_notes(new_spots, old_spots),
        fields_removed=_notes(old_spots, new_spots),
        differences=tuple(differences),
    )


def _by_path(schema: MessageSchema) -> dict[str, Spot]:
    return {spot.path: spot for spot in spots(schema)}


def _notes(there: dict[str, Spot], missing_in: dict[str, Spot]) -> tuple[FieldNote, ...]:
    return tuple(
        FieldNote(path, spot.field.type, str(spot.field.versions))
        for path, spot in there.items()
        if path not in missing_in
    )


def _differences(path: str, old: dict[str, str], new: dict[str, str]) -> list[Difference]:
    return [Difference(path, key, old[key], new[key]) for key in old if old[key] != new[key]]


_FLAGS: Final = {True: "yes", False: ""}


def _head(schema: MessageSchema, since: Versions) -> dict[str, str]:
    """The attributes of a message, except its versions; those of versions that both have."""
    return {
        "type": schema.type,
        "apiKey": _text(schema.api_key),
        "listeners": ", ".join(sorted(schema.listeners)),
        "flexibleVersions": str(schema.flexible_versions),
        "deprecatedVersions": str(schema.deprecated_versions),
        "latestVersionUnstable": _FLAGS[schema.latest_version_unstable],
        "headerVersions": _headers(schema, since),
    }


def _headers(schema: MessageSchema, since: Versions) -> str:
    """Write the header versions, the newest as open: `0-8: 1, 9+: 2`."""
    newest = schema.valid_versions.high
    cut = ((run & since, header) for run, header in header_versions(schema))
    return ", ".join(f"{_open(run, newest)}: {header}" for run, header in cut if run)


def _open(versions: Versions, newest: int) -> str:
    """Write versions; an end at the newest one is open."""
    return f"{versions.low}+" if versions and versions.high >= newest else str(versions)


def _written(spot: Spot, since: Versions, newest: int) -> dict[str, str]:
    """The attributes of a field; versions where everything around it exists, the newest as open.

    Versions that only the older set has are left out: their removal is reported once.
    """
    field = spot.field
    return {
        "type": field.type,
        "versions": _open(spot.versions & since, newest),
        "nullableVersions": _open(spot.nullable & since, newest),
        "taggedVersions": _open(spot.tagged & since, newest),
        "tag": _text(field.tag),
        "flexibleVersions": _text(field.flexible_versions),
        "default": plain_default(field),
        "ignorable": _FLAGS[field.ignorable],
        "mapKey": _FLAGS[field.map_key],
        "entityType": field.entity_type or "",
        "zeroCopy": _FLAGS[field.zero_copy],
    }


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _gone(before: Versions, after: Versions) -> str:
    """The versions of `before` that are not in `after`."""
    return ", ".join(map(str, before.without(after)))

"""Finds changes to released versions, which break the rules of evolution.

Old and new are compared version by version, by their bytes on the wire: a renamed field is the
same field. A finding in several versions is reported once.

    fields of a struct, old and new, at a version --pairs--> (old field, new field) -> rules
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from .. import naming
from ..dialect import FieldSchema, MessageSchema
from ..headers import header_versions
from ..rules.defaults import integer
from ..source import Location, SchemaError
from ..versions import Versions
from ..wire_types import WIRE_TYPES

EVOLUTION_RULES: Final = {
    "message-removed": "a message stays; a removed one has validVersions none",
    "api-key-changed": "a message keeps its api key",
    "version-dropped": "a version once valid stays valid",
    "flexible-versions-changed": "a released version stays flexible, or not flexible",
    "header-version-changed": "a released version keeps the version of its header",
    "field-added": "a released version gets new fields only as tagged ones",
    "field-removed": "a released version keeps its fields",
    "field-moved": "a released version keeps the order of its fields",
    "field-retyped": "a field keeps its type in a released version",
    "tag-changed": "a field keeps its tag, or its place among the untagged, in a released version",
    "tag-reused": "a tag is not given to a field of another type",
    "nullability-narrowed": "what may be null in a released version may be null for ever",
    "default-changed": "a field keeps its default",
}
"""Rule id -> its requirement."""


@dataclass(frozen=True, slots=True)
class _Found:
    """One broken rule at one place; the versions of it stand between `before` and `after`."""

    rule: str
    path: str
    location: Location
    before: str
    after: str = ""

    def error(self, versions: list[int]) -> SchemaError:
        reason = f"{self.before} {_runs(versions)}{self.after}"
        return SchemaError.at(self.location, self.path, self.rule, reason)


def breaches(
    old: Mapping[str, MessageSchema], new: Mapping[str, MessageSchema]
) -> list[SchemaError]:
    """Find every broken rule between two sets of messages, by name."""
    unstable = _unstable(old)
    errors: list[SchemaError] = []
    for name in sorted(old):
        free = unstable.get(naming.api_name(name))
        errors += _message(old[name], new.get(name), free)
    return errors


def plain_default(field: FieldSchema) -> str:
    """The default in canonical form: numbers in decimal, a type's zero as nothing."""
    text = field.default or ""
    wire = WIRE_TYPES.get(field.type)
    if wire is None or text in ("", "null"):
        return text
    if wire.is_integer:
        text = str(integer(text))
    return "" if text in ("0", "false", "0.0") and wire.name != "string" else text


def _unstable(old: Mapping[str, MessageSchema]) -> dict[str, int]:
    """API -> its newest version, if the old set marks it unstable."""
    return {
        naming.api_name(m.name): m.valid_versions.high
        for m in old.values()
        if m.latest_version_unstable
    }


def _message(
    old: MessageSchema, new: MessageSchema | None, free: int | None
) -> Iterator[SchemaError]:
    released = old.valid_versions
    if free is not None and released.high == free:
        released = Versions(released.low, free - 1)
    if not released:
        return
    if new is None:
        reason = f"the message is removed, with its versions {released}"
        yield SchemaError.at(old.location, old.name, "message-removed", reason)
        return
    yield from _head(old, new, released)
    gathered: dict[_Found, list[int]] = defaultdict(list)
    kept = released & new.valid_versions
    for version in range(kept.low, kept.high + 1):
        for breach in _Comparison(old, new, version).fields(old.fields, new.fields, old.name):
            gathered[breach].append(version)
    for breach, versions in gathered.items():
        yield breach.error(versions)


def _head(old: MessageSchema, new: MessageSchema, released: Versions) -> Iterator[SchemaError]:
    if old.api_key != new.api_key:
        reason = f"the api key was {old.api_key} and is {new.api_key}"
        yield SchemaError.at(new.location, new.name, "api-key-changed", reason)
    dropped = [v for v in range(released.low, released.high + 1) if v not in new.valid_versions]
    if dropped:
        reason = f"{_runs(dropped)} is no longer valid"
        yield SchemaError.at(new.location, new.name, "version-dropped", reason)
    was, is_ = old.flexible_versions & released, new.flexible_versions & released
    if was != is_ and new.valid_versions:
        reason = f"of {released}, {was} was flexible and {is_} is"
        yield SchemaError.at(new.location, new.name, "flexible-versions-changed", reason)
    yield from _headers(old, new, released)


def _headers(old: MessageSchema, new: MessageSchema, released: Versions) -> Iterator[SchemaError]:
    """Compare header versions where flexibility, which they follow from, has not changed."""
    were, are = _header_by_version(old), _header_by_version(new)
    changed: dict[tuple[int, int], list[int]] = defaultdict(list)
    for version in sorted(v for v in were.keys() & are.keys() if v in released):
        flexible = version in old.flexible_versions, version in new.flexible_versions
        if were[version] != are[version] and flexible[0] == flexible[1]:
            changed[were[version], are[version]].append(version)
    for (was, is_), versions in changed.items():
        reason = f"the header version was {was} in {_runs(versions)}, and is {is_}"
        yield SchemaError.at(new.location, new.name, "header-version-changed", reason)


def _header_by_version(schema: MessageSchema) -> dict[int, int]:
    runs = header_versions(schema)
    return {version: header for run, header in runs for version in range(run.low, run.high + 1)}


class _Comparison:
    """One version of one message, old and new."""

    def __init__(self, old: MessageSchema, new: MessageSchema, version: int) -> None:
        self.version = version
        self.old_common = {s.name: s.fields for s in old.common_structs}
        self.new_common = {s.name: s.fields for s in new.common_structs}
        self.new_location = new.location

    def fields(
        self, old: tuple[FieldSchema, ...], new: tuple[FieldSchema, ...], path: str
    ) -> Iterator[_Found]:
        """Compare the fields of one struct, then those inside each common one."""
        ours, theirs = self.present(old), self.present(new)
        pairs = self.pairs(ours, theirs)
        yield from self.came_and_went(ours, theirs, pairs, path)
        yield from self.moved(theirs, pairs, path)
        for before, after in pairs:
            here = f"{path}.{after.name}"
            yield from self.field(before, after, here)
            inner = (
                self.old_common.get(before.element, before.fields),
                self.new_common.get(after.element, after.fields),
            )
            if self.shape(before) == self.shape(after):
                yield from self.fields(*inner, here + "[]" * after.is_array)

    def present(self, fields: tuple[FieldSchema, ...]) -> list[FieldSchema]:
        return [f for f in fields if self.version in f.versions]

    def tag(self, field: FieldSchema) -> int | None:
        return field.tag if self.version in field.tagged_versions else None

    def pairs(
        self, old: list[FieldSchema], new: list[FieldSchema]
    ) -> list[tuple[FieldSchema, FieldSchema]]:
        """Match fields by name, then the rest by tag or position: these were renamed."""
        by_name = {f.name: f for f in new}
        names = {f.name for f in old}
        by_spot = {spot: f for spot, f in self.by_spot(new).items() if f.name not in names}
        pairs: list[tuple[FieldSchema, FieldSchema]] = []
        for spot, field in self.by_spot(old).items():
            if field.name in by_name:
                pairs.append((field, by_name[field.name]))
            elif spot in by_spot and self.shape(field) == self.shape(by_spot[spot]):
                pairs.append((field, by_spot[spot]))
        return pairs

    def by_spot(self, fields: list[FieldSchema]) -> dict[tuple[str, int], FieldSchema]:
        """The position of each field on the wire: its tag, or its index among the untagged."""
        untagged = [f for f in fields if self.tag(f) is None]
        spots = {("tag", tag): f for f in fields if (tag := self.tag(f)) is not None}
        return spots | {("position", n): f for n, f in enumerate(untagged)}

    def shape(self, field: FieldSchema) -> tuple[str, bool]:
        """The wire type of a field, without its struct's name; records are bytes."""
        element = field.element if field.element in WIRE_TYPES else "struct"
        element = "bytes" if element == "records" else element
        # A nullable struct has a marker byte; other types need no extra byte for null.
        marked = element == "struct" and not field.is_array and self.nullable(field)
        return ("[]" * field.is_array + element, marked)

    def nullable(self, field: FieldSchema) -> bool:
        return self.version in field.nullable_versions

    def came_and_went(
        self,
        old: list[FieldSchema],
        new: list[FieldSchema],
        pairs: list[tuple[FieldSchema, FieldSchema]],
        path: str,
    ) -> Iterator[_Found]:
        stayed = {before.name for before, _ in pairs}
        kept = {after.name for _, after in pairs}
        removed = [field for field in old if field.name not in stayed]
        removed_tags = {self.tag(field): field for field in removed}
        for field in removed:
            here = f"{path}.{field.name}"
            yield _Found("field-removed", here, self.new_location, f"{field.type} is removed from")
        for field in new:
            tag, here = self.tag(field), f"{path}.{field.name}"
            if field.name in kept:
                continue
            if tag is None:
                before, after = f"{field.type} is new in", ", released without it: tag it"
                yield _Found("field-added", here, field.location, before, after)
            elif tag in removed_tags:
                was = removed_tags[tag]
                before, after = (
                    f"tag {tag} was {was.name}, {was.type}, in",
                    f", and is {field.type}",
                )
                yield _Found("tag-reused", here, field.location, before, after)

    def moved(
        self, new: list[FieldSchema], pairs: list[tuple[FieldSchema, FieldSchema]], path: str
    ) -> Iterator[_Found]:
        """Report the first reordered untagged field."""
        number = {field.name: n for n, field in enumerate(new)}
        untagged = [a for b, a in pairs if self.tag(b) is None and self.tag(a) is None]
        for was, is_ in zip(untagged, sorted(untagged, key=lambda f: number[f.name]), strict=True):
            if was is not is_:
                here, before = f"{path}.{is_.name}", f"it stands before {was.name} in"
                yield _Found("field-moved", here, is_.location, before, ", but stood after it")
                return

    def field(self, old: FieldSchema, new: FieldSchema, path: str) -> Iterator[_Found]:
        was, is_ = self.tag(old), self.tag(new)
        if was != is_:
            yield _Found(
                "tag-changed", path, new.location, f"{_tag(was)} in", f", and is {_tag(is_)}"
            )
        if self.shape(old) != self.shape(new):
            before, after = f"{self.said(old)} in", f", and is {self.said(new)}"
            yield _Found("field-retyped", path, new.location, before, after)
        elif self.nullable(old) and not self.nullable(new):
            before = "it could be null in"
            yield _Found("nullability-narrowed", path, new.location, before, ", and cannot")
        if plain_default(old) != plain_default(new):
            before, after = f"{_default(old)} in", f", and is {_default(new)}"
            yield _Found("default-changed", path, new.location, before, after)

    def said(self, field: FieldSchema) -> str:
        return f"{'nullable ' * self.nullable(field)}{field.type}"


def _default(field: FieldSchema) -> str:
    return repr(field.default or "")


def _tag(tag: int | None) -> str:
    return "untagged" if tag is None else f"tag {tag}"


def _runs(versions: list[int]) -> str:
    """Write sorted versions as runs: 0-3 and 5."""
    runs: list[Versions] = []
    for version in versions:
        if runs and runs[-1].high == version - 1:
            runs[-1] = Versions(runs[-1].low, version)
        else:
            runs.append(Versions(version, version))
    return " and ".join(map(str, runs))

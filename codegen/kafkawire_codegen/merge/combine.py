"""Combines two forms of a message: the versions of the newer one, and those that it has dropped.

The layout of each version is that of the form it comes from; where one schema cannot describe
both, `Unmergeable` says why, and nothing is changed. Names, purposes and other attributes that no
byte shows are the newer form's.

    newer, older --correspondence--> structs and fields that are the same --> Normal
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from .. import naming
from ..dialect import FieldSchema, HeaderVersions, MessageSchema
from ..headers import header_versions
from ..versions import NEWEST, NONE, Versions
from .correspondence import Pair, correspondence
from .normal import Fields, Normal, cut

BYTES: Final = {"bytes", "records"}
"""Types of the same bytes: records were once described as bytes."""


class Unmergeable(Exception):
    """Versions that one schema cannot describe together with the others, and why."""


def combine(newer: Normal, older: Normal, run: Versions) -> Normal:
    """Add the versions `run` of an older form, adjacent to those of the newer one."""
    head = _head(newer.head, older.head, run)
    same = correspondence(newer, older)
    names = dict(same.structs)
    structs = dict(newer.structs)
    common = dict(newer.common)
    pending: list[Pair] = [(newer.name, older.name)]
    entered: set[Pair] = set()
    while pending:
        pair = pending.pop()
        if pair in entered:
            continue
        entered.add(pair)
        name, counterpart = pair
        added = [cut(field, run) for field in older.structs[counterpart] if field.versions & run]
        for field in added:
            if field.element in older.structs and field.element not in names:
                names[field.element] = _free(field.element, run, structs, names)
        if counterpart in older.common and name != newer.name:
            common.setdefault(name, older.common[counterpart])
        fields = _Fields(name, structs.get(name, ()), same.fields.get(pair, {}), names)
        structs[name] = fields.with_all(added)
        pending += [
            (fields.named(field).element, field.element)
            for field in added
            if field.element in older.structs
        ]
    return Normal(head, structs, common)


class _Fields:
    """The fields of one struct, to which those of older versions are added in their order.

    renamed: old names of fields; names: of structs that correspond.
    """

    def __init__(
        self, struct: str, fields: Fields, renamed: Mapping[str, str], names: Mapping[str, str]
    ) -> None:
        self.struct = struct
        self.fields = {field.name.lower(): field for field in fields}
        self.renamed = renamed
        self.names = names

    def with_all(self, added: list[FieldSchema]) -> Fields:
        places = {name: position for position, name in enumerate(self.fields)}
        behind: list[list[str]] = [[] for _ in range(len(places) + 1)]
        last = before = -1
        for field in added:
            name = self.key(field)
            position = places.get(name)
            if position is None:
                self.fields[name] = self.with_newer_type(field)
                behind[before].append(name)
                continue
            self.fields[name] = self.joined(self.fields[name], field)
            if field.tagged_versions:  # its place among the others is not on the wire
                before += position == before + 1
                continue
            if position < last:
                raise Unmergeable(f"{self.struct}.{field.name} is at another place in its struct")
            last = before = position
        order = [
            *behind[-1],
            *(each for name, position in places.items() for each in (name, *behind[position])),
        ]
        return tuple(self.fields[name] for name in order)

    def key(self, field: FieldSchema) -> str:
        return self.renamed.get(field.name, field.name).lower()

    def named(self, field: FieldSchema) -> FieldSchema:
        """Return the field that an older one became part of."""
        return self.fields[self.key(field)]

    def with_newer_type(self, field: FieldSchema) -> FieldSchema:
        element = self.names.get(field.element, field.element)
        return replace(field, type="[]" * field.is_array + element)

    def joined(self, newer: FieldSchema, older: FieldSchema) -> FieldSchema:
        path = f"{self.struct}.{newer.name}"
        element = self.names.get(older.element, older.element)
        same = newer.element == element or {newer.type, older.type} == BYTES
        if newer.is_array != older.is_array or not same:
            raise Unmergeable(f"{path} was {older.type}, and is {newer.type}")
        if newer.tag is not None and older.tag is not None and newer.tag != older.tag:
            raise Unmergeable(f"{path} had tag {older.tag}, and has tag {newer.tag}")
        nullable = newer.nullable_versions, older.nullable_versions
        tagged = newer.tagged_versions, older.tagged_versions
        return replace(
            newer,
            versions=_union(f"versions of {path}", newer.versions, older.versions),
            nullable_versions=_union(f"nullable versions of {path}", *nullable),
            tagged_versions=_union(f"tagged versions of {path}", *tagged),
            tag=older.tag if newer.tag is None else newer.tag,
            about=newer.about or older.about,
        )


def _union(what: str, newer: Versions, older: Versions) -> Versions:
    try:
        return newer | older
    except ValueError as error:
        raise Unmergeable(f"{what}: {error}") from None


def _free(name: str, run: Versions, structs: Mapping[str, Fields], names: Mapping[str, str]) -> str:
    """Name a struct that only older versions have: its own name, or that with its last version."""
    taken = {naming.snake(each) for each in (*structs, *names.values())}
    free, number = name, run.high
    while naming.snake(free) in taken:
        free, number = f"{name}V{number}", number + 1
    return free


def _head(newer: MessageSchema, older: MessageSchema, run: Versions) -> MessageSchema:
    flexible = newer.flexible_versions & newer.valid_versions, older.flexible_versions & run
    newest = older if run.high > newer.valid_versions.high else newer
    valid = _union("valid versions", newer.valid_versions, run)
    all_flexible = _union("flexible versions", *flexible)
    if all_flexible and all_flexible.high != valid.high:
        raise Unmergeable(f"of the versions {valid}, {all_flexible} are flexible")
    head = replace(
        newer,
        valid_versions=valid,
        flexible_versions=Versions(all_flexible.low, NEWEST) if all_flexible else NONE,
        deprecated_versions=newer.deprecated_versions.hull(older.deprecated_versions & run),
        latest_version_unstable=newest.latest_version_unstable,
        header_versions=(),
        about=newer.about or older.about,
    )
    wanted = _by_version(header_versions(newer)) | {
        version: header
        for version, header in _by_version(header_versions(older)).items()
        if version in run
    }
    if wanted == _by_version(header_versions(head)):
        return head
    return replace(head, header_versions=_runs(wanted))


def _by_version(headers: HeaderVersions) -> dict[int, int]:
    return {version: header for run, header in headers for version in range(run.low, run.high + 1)}


def _runs(headers: Mapping[int, int]) -> HeaderVersions:
    runs: list[tuple[Versions, int]] = []
    for version, header in sorted(headers.items()):
        if runs and runs[-1][1] == header:
            runs[-1] = Versions(runs[-1][0].low, version), header
        else:
            runs.append((Versions(version, version), header))
    return tuple(runs)

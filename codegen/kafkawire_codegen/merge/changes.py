"""Finds the versions whose layout changed between two releases, without a new number.

A layout is what the bytes of a version show: each field with its path, type, whether it may be
null and its tag, in order. A renamed field alone is not a change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..dialect import MessageSchema
from ..layout import Spot, spots
from ..wire_types import WIRE_TYPES


@dataclass(frozen=True, slots=True)
class LayoutField:
    """One field of the layout of a version; structs have no names on the wire."""

    path: str
    type: str
    nullable: bool
    tag: int | None

    def __str__(self) -> str:
        null = "nullable " if self.nullable else ""
        return f"{self.path}: {null}{self.type}" + ("" if self.tag is None else f", tag {self.tag}")


@dataclass(frozen=True, slots=True)
class Renumbered:
    """A message whose api key differs between two releases; the later one is described."""

    message: str
    older: str
    newer: str
    before: int | None
    after: int | None

    def __str__(self) -> str:
        between = f"between {self.older} and {self.newer}"
        return f"{self.message}: the api key was {self.before}, and is {self.after}, {between}"


@dataclass(frozen=True, slots=True)
class Change:
    """A version of a message with two layouts: that of an older release and of a newer one."""

    message: str
    version: int
    older: str
    newer: str
    before: tuple[LayoutField, ...]
    after: tuple[LayoutField, ...]

    @property
    def removed(self) -> list[LayoutField]:
        return [field for field in self.before if field not in set(self.after)]

    @property
    def added(self) -> list[LayoutField]:
        return [field for field in self.after if field not in set(self.before)]

    @property
    def comment(self) -> str:
        """One line for the schema, which has the later layout."""
        paths = {f.path for f in self.removed}, {f.path for f in self.added}
        what = {
            "gained": [_tagged(f) for f in self.added if f.path not in paths[0]],
            "lost": [_tagged(f) for f in self.removed if f.path not in paths[1]],
            "changed": [f.path for f in self.added if f.path in paths[0]],
        }
        parts = [f"{verb} {', '.join(names)}" for verb, names in what.items() if names]
        return (
            f"Version {self.version} changed in place between {self.older} and {self.newer}: "
            f"{'; '.join(parts) or 'fields in another order'}. The later layout is described."
        )

    def lines(self) -> Iterator[str]:
        """What changed, for a person."""
        between = f"{self.older} and {self.newer}"
        yield f"{self.message} {self.version}: changed in place between {between}, the later wins"
        for field in self.removed:
            yield f"  - {field}"
        for field in self.added:
            yield f"  + {field}"


def _tagged(field: LayoutField) -> str:
    return field.path if field.tag is None else f"{field.path} (tag {field.tag})"


def changes(older: MessageSchema, newer: MessageSchema, names: tuple[str, str]) -> Iterable[Change]:
    """Compare the versions that two releases of a message have; names: of the releases."""
    both = older.valid_versions & newer.valid_versions
    sides = spots(older), spots(newer)
    if _facts(sides[0]) == _facts(sides[1]) and older.valid_versions == newer.valid_versions:
        return
    for version in range(both.low, both.high + 1):
        before, after = (_layout(side, version) for side in sides)
        if [_bytes(field) for field in before] != [_bytes(field) for field in after]:
            yield Change(newer.name, version, *names, tuple(before), tuple(after))


def _facts(side: list[Spot]) -> list[tuple[object, ...]]:
    return [(s.path, s.field.type, s.versions, s.nullable, s.tagged, s.field.tag) for s in side]


def _layout(side: list[Spot], version: int) -> list[LayoutField]:
    """List the fields of a version in wire order: in each struct, the tagged ones last, by tag."""
    placed: list[tuple[tuple[tuple[bool, int], ...], LayoutField]] = []
    around: list[tuple[tuple[bool, int], ...]] = [()]
    for number, spot in enumerate(side):
        if version not in spot.versions:
            continue
        tag = spot.field.tag if version in spot.tagged else None
        place = (*around[spot.depth], (tag is not None, number if tag is None else tag))
        around[spot.depth + 1 :] = [place]
        path = spot.path.replace("[]", "")
        layout_field = LayoutField(path, _type(spot), version in spot.nullable, tag)
        placed.append((place, layout_field))
    return [layout_field for _, layout_field in sorted(placed, key=lambda pair: pair[0])]


def _type(spot: Spot) -> str:
    element = spot.field.element
    return "[]" * spot.field.is_array + (element if element in WIRE_TYPES else "struct")


def _bytes(field: LayoutField) -> tuple[int, str, bool, int | None]:
    """Return what the bytes show of a field: not its name, nor whether its bytes are records."""
    type_ = "bytes" if field.type == "records" else field.type
    return field.path.count("."), type_, field.nullable, field.tag

"""Types, defaults, sizes and conditions of one message's generated TypeScript."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from ...model import EMPTY_STRUCT, Field, Message, Struct
from ...versions import VersionCondition, Versions
from ...wire_types import WIRE_TYPES
from .names import Names, interface, prop
from .text import comment, condition, literal, uuid

_TYPES: Final = {
    "bool": "boolean",
    "int64": "bigint",
    "uuid": "string",
    "string": "string",
    "bytes": "Uint8Array",
    "records": "Uint8Array",
}
"""The types of values; those of other numbers are `number`."""
SIZED: Final = {"string": 2, "bytes": 4, "records": 4}
"""Primitives with a length, and its size; in flexible versions it is a varint."""


class Imports(NamedTuple):
    """What a module imports: of errors.ts, of types.ts, and whether the type of unknown tags."""

    errors: list[str]
    values: list[str]
    tags: bool


@dataclass(frozen=True)
class Spelling:
    """What the functions of one message have in common."""

    message: Message

    @cached_property
    def names(self) -> Names:
        return Names(self.message)

    # -- types and defaults

    def type(self, f: Field) -> str:
        """The type of a field's property."""
        whole = f"{self.element(f)}[]" if f.is_array else self.element(f)
        return f"{whole} | null" if f.may_be_none else whole

    def element(self, f: Field) -> str:
        return interface(f.struct.name) if f.struct is not None else _TYPES.get(f.element, "number")

    def default(self, f: Field) -> str:
        """The default as an expression that makes a fresh value."""
        value = f.default
        if value is None:
            return "null"
        if value is EMPTY_STRUCT and f.struct is not None:
            return f"{self.names.create(f.struct)}()"
        if value == []:
            return "[]"
        if isinstance(value, bytes):
            if f.element != "uuid":
                return "NO_BYTES"
            return literal(uuid(value)) if any(value) else "ZERO_UUID"
        if f.element == "int64" and isinstance(value, int):
            return f"{value}n" if value >= 0 else f"MINUS_{-value}"
        return literal(value)

    def differs(self, f: Field, value: str) -> str:
        """The test that a value is not the field's default."""
        if f.default is None:
            return f"{value} !== null"
        if f.default is EMPTY_STRUCT and f.struct is not None:
            test = f"!{self.names.is_default(f.struct)}({value})"
        elif f.default == [] or (isinstance(f.default, bytes) and f.element != "uuid"):
            test = f"{value}.length !== 0"
        elif isinstance(f.default, float) and math.isnan(f.default):
            return f"!Number.isNaN({value})"
        else:
            return f"{value} !== {self.default(f)}"
        return f"({value} === null || {test})" if f.may_be_none else test

    # -- conditions

    def when(self, s: Struct, versions: Versions) -> str:
        """The test that a version of a struct is among `versions`."""
        return condition(s.when(versions))

    def flexible(self, s: Struct) -> str:
        """The test that a struct's version is flexible."""
        return "flexible" if s.when(s.flexible).depends else self.when(s, s.flexible)

    def declared_flexible(self, s: Struct) -> list[str]:
        """Declare the variable `flexible`, if the struct's versions differ."""
        used = s.has_tags or any(_has_length(f) for f in s.fields)
        if not used or not s.when(s.flexible).depends:
            return []
        return [f"const flexible = {self.when(s, s.flexible)};"]

    def compact(self, s: Struct, f: Field) -> str:
        """The test that a field's length is a varint."""
        if f.flexible == s.flexible or f.flexible & f.versions == s.flexible & f.versions:
            return self.flexible(s)
        return condition(VersionCondition(f.flexible, f.versions))

    def nullable(self, f: Field, where: Versions) -> str:
        """The test that a field may be null, in the versions `where`."""
        return condition(VersionCondition(f.nullable, where))

    # -- sizes

    @cached_property
    def least(self) -> dict[str, int]:
        """The least bytes that each struct takes, in any version; children come first."""
        sizes: dict[str, int] = {}
        for s in self.message.structs:
            always = [f for f in s.fields if f.plain.covers(s.versions)]
            tags = s.has_tags and not s.when(s.flexible).depends
            sizes[s.name] = max(1, tags + sum(self._least(f, sizes) for f in always))
        return sizes

    def _least(self, f: Field, sizes: dict[str, int]) -> int:
        if f.is_array or f.element in SIZED:
            return 1 if f.flexible & f.versions else SIZED.get(f.type, 4)
        if f.struct is not None:
            return 1 if f.nullable else sizes[f.struct.name]
        return WIRE_TYPES[f.element].size or 1

    def element_least(self, f: Field) -> int:
        """The least bytes that an element of an array takes."""
        if f.struct is not None:
            return self.least[f.struct.name]
        size = WIRE_TYPES[f.element].size
        if size is not None:
            return size
        return 1 if f.flexible & f.versions else SIZED[f.element]

    # -- the module

    def constants(self) -> list[str]:
        """Declare the negative defaults that are bigints: as expressions they would be computed."""
        defaults = {f.default for s in self.message.structs for f in s.fields if _is_long(f)}
        values = sorted(-value for value in defaults if isinstance(value, int) and value < 0)
        return [f"const MINUS_{value} = -{value}n;" for value in values]

    @cached_property
    def _default_structs(self) -> set[str]:
        """Names of structs that are the default of a field."""
        fields = (f for s in self.message.structs for f in s.fields)
        return {f.element for f in fields if f.default is EMPTY_STRUCT}

    def is_compared(self, s: Struct) -> bool:
        """Whether a function tests if a struct is all defaults."""
        return s.compared and s.name in self._default_structs

    def imports(self) -> Imports:
        """Find what the module needs of the runtime."""
        structs = self.message.structs
        defaults = {self.default(f) for s in structs for f in s.fields}
        has_tags = any(s.has_tags for s in structs)
        fails = has_tags or any(s.fields for s in structs)
        return Imports(
            ["asDecodeError", "asEncodeError", "checkVersion", *(["failed"] if fails else [])],
            sorted(defaults & {"NO_BYTES", "ZERO_UUID"}),
            has_tags,
        )

    # -- comments

    def versions(self, versions: Versions) -> str:
        """Versions in words; an end at the message's newest version is an open one."""
        return str(versions.open_from(self.message.versions.high))

    def about(self, s: Struct) -> list[str]:
        """The comment of a struct."""
        if s is not self.message.root:
            return comment(s.about or f"Part of {self.message.name}.")
        about = s.about or self.message.about or f"The message {s.name}."
        return comment(about)

    def property_lines(self, f: Field) -> list[str]:
        """A property with its purpose and versions."""
        about = f"{f.about.rstrip().removesuffix('.')}. " if f.about.strip() else ""
        notes = [f"Versions {self.versions(f.versions)}"]
        if f.nullable and f.nullable != f.versions:
            notes.append(f"null in {self.versions(f.nullable)}")
        if f.tag is not None:
            notes.append(f"tag {f.tag}")
        if f.default not in ([], EMPTY_STRUCT) and self.default(f) not in ("0", "0n", '""'):
            shown = str(f.default) if _is_long(f) else self.default(f)
            notes.append(f"default {_short(shown)}")
        return [*comment(f"{about}{'; '.join(notes)}.", "  "), f"  {prop(f)}: {self.type(f)};"]


def _is_long(f: Field) -> bool:
    return f.element == "int64" and not f.is_array


def _has_length(f: Field) -> bool:
    return f.is_array or f.element in SIZED


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}..."

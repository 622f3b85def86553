"""Writes the schemas as tables of Lua, which the dissector interprets.

Linear in the fields of all messages; a version range ends at the last version of its message.

    FIELDS     {name, label, type, values, about}, numbered from 1
    MESSAGES   API key -> {name, request side, response side}
    a side     {first, last, flexible, last flexible, headers, function that makes its fields}
    a field    {number, type, first, last, a=array, n=nullable, t=tagged, tag=, x=flexible,
               c=fields of its struct}
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ...model import Message
from ...versions import Versions
from . import lua
from .names import NamedField, Names, Position, kind_of

LONGEST_ABOUT: Final = 300
CHUNK: Final = 200
"""Fields that one function of Lua declares: a function of any size would be too large for Lua."""


@dataclass(frozen=True, slots=True)
class Api:
    """An API: its key and both sides; a side that has no schema is None."""

    key: int
    name: str
    request: Message | None
    response: Message | None


def field_chunks(names: Names) -> Iterator[list[str]]:
    """Declare the fields, as lists of arguments."""
    for start in range(0, len(names.fields), CHUNK):
        yield [_declared(field) for field in names.fields[start : start + CHUNK]]


def _declared(field: NamedField) -> str:
    values = "ERRORS" if field.has_errors else "APIS" if field.has_apis else "nil"
    about = lua.string(lua.one_line(field.about, LONGEST_ABOUT))
    parts = lua.string(field.name), lua.string(field.label), lua.string(field.type), values, about
    return ", ".join(parts)


def side(message: Message, names: Names) -> str:
    """Write a side of an API."""
    headers = (
        lua.table(str(number) for number in (versions.low, versions.high, header))
        for versions, header in message.headers
    )
    fields = lua.table(_field(each, message) for each in names.positions[message.name])
    ends = message.versions, message.flexible
    numbers = (str(number) for each in ends for number in (each.low, each.high))
    return lua.table([*numbers, lua.table(headers), f"function() return {fields} end"])


def _field(position: Position, message: Message) -> str:
    field = position.field
    own = field.flexible
    parts = [
        str(position.number),
        lua.string(kind_of(field)),
        str(field.versions.low),
        str(min(field.versions.high, message.versions.high)),
    ]
    if field.is_array:
        parts.append("a=true")
    if field.nullable:
        parts.append(f"n={_range(field.nullable)}")
    if field.tagged and field.tag is not None:
        parts.append(f"t={_range(field.tagged)},tag={field.tag}")
    if own != message.flexible:
        parts.append(f"x={_range(own)}")
    if position.inside:
        parts.append(f"c={lua.table(_field(each, message) for each in position.inside)}")
    return lua.table(parts)


def _range(versions: Versions) -> str:
    return lua.table((str(versions.low), str(versions.high)))

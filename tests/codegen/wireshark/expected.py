"""The items that the dissector must show for a message that kafkawire decoded.

Made from the decoded message, by the naming rule of the generator alone.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from kafkawire.messages import REGISTRY
from kafkawire.primitives import Structure
from kafkawire.protocol.fields import Field, fields_at
from kafkawire.protocol.json_form import uuid_text
from kafkawire_codegen import schemas_dir
from kafkawire_codegen.model import load
from kafkawire_codegen.targets.wireshark import apis, named

from .tshark import PREFIX, Item


class Value(NamedTuple):
    """An item: its field, and its value as text."""

    name: str
    value: str


def own(name: str) -> str:
    return f"{PREFIX}.{name}"


NULL, ELEMENTS, TAGS = own("null"), own("elements"), own("tagged_fields")
TAG, TAG_DATA, HEADER = own("unknown_tag"), own("unknown_tag_data"), own("header")
STRUCTURE: Final = frozenset({NULL, ELEMENTS, TAGS, TAG, TAG_DATA})

Show = Callable[[Any], str]
SHOWN: Final[Mapping[str, Show]] = {
    "bool": lambda value: str(int(value)),
    "float64": lambda value: struct.pack(">d", value).hex(),
    "uuid": uuid_text,
    "string": lambda value: value.encode("utf-8", "surrogateescape").hex(),
    "bytes": bytes.hex,
    "records": bytes.hex,
}
BY_BYTES: Final = frozenset({"float64", "string", "bytes", "records"})
"""Types whose items are compared by their bytes, not by their text."""


@cache
def paths(message: str) -> dict[str, str]:
    """Map the paths of a message to the names of its fields."""
    return _all_paths()[message]


@cache
def _all_paths() -> dict[str, dict[str, str]]:
    known = list(apis(load(schemas_dir())))
    names = named(known)
    sides = [side for api in known for side in (api.request, api.response) if side is not None]
    return {
        side.name: {path: own(name) for path, name in names.paths(side).items()} for side in sides
    }


@cache
def types() -> dict[str, str]:
    """Map the names of fields to their types."""
    known = list(apis(load(schemas_dir())))
    return {own(field.name): field.type for field in named(known).fields}


def expected(message: Structure, version: int) -> list[Value]:
    """List the items of a message, in wire order."""
    name = type(message).__name__
    return list(_struct(message, version, "", paths(name), flexible(name, version)))


def flexible(name: str, version: int) -> bool:
    first = REGISTRY.get(name).flexible
    return first is not None and version >= first


def _struct(
    value: Structure, version: int, prefix: str, names: Mapping[str, str], has_tags: bool
) -> Iterator[Value]:
    fields = fields_at(type(value), version)
    for field in fields:
        if not field.is_tagged_at(version):
            yield from _field(field, value, version, prefix, names, has_tags)
    if not has_tags:
        return
    default = type(value)()
    tagged: list[tuple[int, list[Value]]] = []
    for field in fields:
        set_to = getattr(value, field.attribute)
        if field.is_tagged_at(version) and set_to != getattr(default, field.attribute):
            shown = _field(field, value, version, prefix, names, has_tags)
            tagged.append((field.tag, list(shown)))
    for tag, data in getattr(value, "unknown_tags", None) or ():
        tagged.append((tag, [Value(TAG, str(tag)), Value(TAG_DATA, data.hex())]))
    if tagged:
        yield Value(TAGS, str(len(tagged)))
    for _, shown_ in sorted(tagged, key=lambda pair: pair[0]):
        yield from shown_


def _field(
    field: Field,
    owner: Structure,
    version: int,
    prefix: str,
    names: Mapping[str, str],
    has_tags: bool,
) -> Iterator[Value]:
    path = prefix + field.attribute
    name, value = names[path], getattr(owner, field.attribute)
    if value is None:
        yield Value(NULL, name)
        return
    if field.is_array:
        yield Value(ELEMENTS, str(len(value)))
    for one in value if field.is_array else (value,):
        if field.struct is None:
            yield Value(name, SHOWN.get(field.element, str)(one))
        else:
            yield Value(name, "")
            yield from _struct(one, version, f"{path}.", names, has_tags)


def shown(message: Item) -> list[Value]:
    """List the items of a message's body, as tshark shows them."""
    return list(_body(message))


def _body(item: Item) -> Iterator[Value]:
    for each in item.inside:
        if each.name == HEADER:
            continue
        kind = types().get(each.name)
        if kind is not None or each.name in STRUCTURE:
            by_bytes = kind in BY_BYTES or each.name == TAG_DATA
            yield Value(each.name, each.data if by_bytes else "" if kind == "struct" else each.show)
        if kind != "records":
            yield from _body(each)

"""Writes JSON Schemas (2020-12) of Kafka's JSON form: a file for each message and version.

A schema accepts what `kafkawire.to_json` makes of a message of the version, and nothing that
lacks a field, has one more, or a value of another type or out of range. It needs no other file: a
validator, and an editor, take it as it is.

    FetchRequest/12.json    an object of the fields of version 12; nested structs in `$defs`

Integers have their ranges, bytes and uuids their patterns; a tagged field may be missing.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ..model import Field, Message, Struct, used_structs
from ..output import File
from ..versions import Versions
from ..wire_types import WireType
from . import Source

NAME: Final = "kafka"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
UNKNOWN_TAGS: Final = "_unknownTaggedFields"
BASE64: Final = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
UUID: Final = "^[A-Za-z0-9_-]{21}[AQgw]$"
"""22 characters of URL-safe base64: of the last, two bits are used."""

LAST_TAG: Final = 2**31 - 1

Schema = dict[str, Any]


def files(source: Source) -> Iterator[File]:
    """Write the schemas of all messages."""
    for message in source.messages:
        for version in message.versions:
            text = json.dumps(schema(message, version), indent=2)
            yield File(f"{message.name}/{version}.json", f"{text}\n")


def schema(message: Message, version: int) -> Schema:
    """Make the schema of a message at a version."""
    structs = used_structs(message.root, Versions(version, version))
    definition: Schema = {"$schema": DIALECT, "title": f"{message.name}, version {version}"}
    if version in message.deprecated:
        definition["deprecated"] = True
    definition |= _object(message.root, version)
    definitions = {
        struct.name: _object(struct, version)
        for struct in message.structs
        if struct.name in structs and struct is not message.root
    }
    if any(version in struct.flexible for struct in message.structs if struct.name in structs):
        definitions[UNKNOWN_TAGS] = _UNKNOWN_TAGS
    return definition | ({"$defs": definitions} if definitions else {})


def _object(struct: Struct, version: int) -> Schema:
    fields = [field for field in struct.fields if version in field.versions]
    properties = {field.json_name: _field(field, version) for field in fields}
    if version in struct.flexible:
        properties[UNKNOWN_TAGS] = {"$ref": f"#/$defs/{UNKNOWN_TAGS}"}
    required = [field.json_name for field in fields if version not in field.tagged]
    return {
        **_about(struct.about),
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _field(field: Field, version: int) -> Schema:
    definition = {**_about(field.about), **_nullable(_value(field), version in field.nullable)}
    if version in field.tagged and field.default.__class__ in _DEFAULTS:
        definition["default"] = _default(field)
    return definition


def _value(field: Field) -> Schema:
    element: Schema
    if field.struct is not None:
        element = {"$ref": f"#/$defs/{field.struct.name}"}
    else:
        assert field.wire is not None
        element = _element(field.wire)
    return {"type": "array", "items": element} if field.is_array else element


def _nullable(value: Schema, is_nullable: bool) -> Schema:
    if not is_nullable:
        return value
    if "type" in value:
        return {**value, "type": [value["type"], "null"]}
    return {"anyOf": [value, {"type": "null"}]}


def _element(wire: WireType) -> Schema:
    if wire.is_integer:
        return {"type": "integer", "minimum": wire.low, "maximum": wire.high}
    return dict(_ELEMENTS[wire.name])


_BYTES: Final[Schema] = {"type": "string", "contentEncoding": "base64", "pattern": BASE64}
_ELEMENTS: Final[Mapping[str, Schema]] = {
    "bool": {"type": "boolean"},
    "string": {"type": "string"},
    "bytes": _BYTES,
    "records": _BYTES,
    "uuid": {"type": "string", "pattern": UUID},
    "float64": {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]},
}
"""Wire type -> the schema of its values, for those that are not integers."""

_UNKNOWN_TAGS: Final[Schema] = {
    "description": "Tagged fields that the schema does not know (KIP-482).",
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "tag": {"type": "integer", "minimum": 0, "maximum": LAST_TAG},
            "data": _BYTES,
        },
        "required": ["tag", "data"],
        "additionalProperties": False,
    },
}


def _about(text: str) -> Schema:
    return {"description": text} if text else {}


def _float(value: float) -> object:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _bytes(value: bytes) -> str:
    return b64encode(value).decode("ascii")


def _uuid(value: bytes) -> str:
    return urlsafe_b64encode(value)[:22].decode("ascii")


_DEFAULTS: Final[Mapping[type, Callable[[Any], object]]] = {
    bool: bool,
    int: int,
    str: str,
    float: _float,
    bytes: _bytes,
    list: list,
    type(None): lambda _: None,
}
"""Type of a default -> its JSON form; a struct has none, whose fields have their own."""


def _default(field: Field) -> object:
    if field.element == "uuid" and isinstance(field.default, bytes):
        return _uuid(field.default)
    return _DEFAULTS[type(field.default)](field.default)

"""Writes the facts of a message's schema as JSON, and reads them.

`read(write(message))` has what codecs need of `message`: all but its texts (`about`), its
listeners and its headers.

A generated package brings them in its module `_facts`, so that what interprets schemas (`explain`,
`verify`, errors of encoding) needs neither the schemas nor the generator's rules.
"""

from __future__ import annotations

import json
from typing import Any, Final

from . import naming
from .model import EMPTY_STRUCT, Field, Message, Struct
from .versions import NONE, Versions
from .wire_types import WIRE_TYPES

VERSION: Final = 1
"""Of the form of the facts: increase it with every change of that."""


def write(message: Message) -> str:
    """Write the facts of a message, as one line of ASCII."""
    facts = {
        "form": VERSION,
        "name": message.name,
        "type": message.type,
        "apiKey": message.api_key,
        "versions": str(message.versions),
        "flexible": str(message.flexible),
        "structs": [_struct(struct) for struct in message.structs],
    }
    return json.dumps(facts, separators=(",", ":"))


def _struct(struct: Struct) -> dict[str, Any]:
    return {
        "name": struct.name,
        "versions": str(struct.versions),
        "flexible": str(struct.flexible),
        "compared": struct.compared,
        "fields": [_field(field) for field in struct.fields],
    }


def _field(field: Field) -> dict[str, Any]:
    """Write a field; what is as in most fields is left out."""
    facts = {
        "name": field.kafka_name,
        "type": field.type,
        "versions": str(field.versions),
        "nullable": str(field.nullable),
        "tagged": str(field.tagged),
        "flexible": str(field.flexible),
        "tag": field.tag,
        "ignorable": field.ignorable,
        "default": _default(field.default),
        "mapKey": field.map_key,
        "entityType": field.entity_type,
    }
    return {key: value for key, value in facts.items() if value not in _USUAL.get(key, ())}


_USUAL: Final[dict[str, tuple[Any, ...]]] = {
    "nullable": ("none",),
    "tagged": ("none",),
    "flexible": ("none",),
    "tag": (None,),
    "ignorable": (False,),
    "mapKey": (False,),
    "entityType": (None,),
}
"""The values that are left out."""


def _default(value: object) -> Any:
    """Write a default: bytes as an object with their hex digits, an empty struct as `{}`."""
    if value is EMPTY_STRUCT:
        return {}
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def read(text: str) -> Message:
    """Read the facts of a message. ValueError for those of another version of the generator."""
    facts = json.loads(text)
    if facts.get("form") != VERSION:
        raise ValueError(f"facts of form {facts.get('form')}, not {VERSION}: generate it again")
    structs: dict[str, Struct] = {}
    for each in facts["structs"]:
        structs[each["name"]] = _read_struct(each, structs)
    return Message(
        name=facts["name"],
        type=facts["type"],
        api_key=facts["apiKey"],
        versions=Versions.parse(facts["versions"]),
        flexible=Versions.parse(facts["flexible"]),
        deprecated=NONE,
        latest_unstable=False,
        listeners=(),
        headers=(),
        about="",
        structs=list(structs.values()),
    )


def _read_struct(obj: dict[str, Any], structs: dict[str, Struct]) -> Struct:
    return Struct(
        obj["name"],
        fields=[_read_field(each, structs) for each in obj["fields"]],
        versions=Versions.parse(obj["versions"]),
        flexible=Versions.parse(obj["flexible"]),
        compared=obj["compared"],
    )


def _read_field(obj: dict[str, Any], structs: dict[str, Struct]) -> Field:
    element = obj["type"].removeprefix("[]")
    return Field(
        kafka_name=obj["name"],
        attribute=naming.attribute(obj["name"]),
        is_array=element != obj["type"],
        wire=WIRE_TYPES.get(element),
        struct=structs.get(element),
        versions=Versions.parse(obj["versions"]),
        nullable=Versions.parse(obj.get("nullable", "none")),
        tagged=Versions.parse(obj.get("tagged", "none")),
        flexible=Versions.parse(obj.get("flexible", "none")),
        tag=obj.get("tag"),
        ignorable=obj.get("ignorable", False),
        default=_read_default(obj["default"]),
        map_key=obj.get("mapKey", False),
        entity_type=obj.get("entityType"),
        about="",
    )


def _read_default(value: Any) -> object:
    if not isinstance(value, dict):
        return value
    return bytes.fromhex(value["hex"]) if value else EMPTY_STRUCT

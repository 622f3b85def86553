"""Reads a message schema from a tree of JSON values; reports values of the wrong form.

All errors are found in one run: an ill-formed value is reported, then treated as absent, and
its key is in `unread`, so that no rule reports the consequences.

    Node --read--> WrittenMessage { schema, node, path, fields, structs } ; each also with its Node
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .dialect import FIELD_KEYS, MESSAGE_KEYS, STRUCT_KEYS, FieldSchema, MessageSchema, StructSchema
from .keys import Keys
from .source import Node, SchemaError
from .versions import ALL, NONE, Versions

RULES: Final = {
    "syntax": "the text is JSON, with // and /* */ comments, in UTF-8",
    "stray-bracket": "no bracket is closed that was never opened",
    "duplicate-key": "a key has one value in an object",
    "repeated-key": "a key stands once in an object",
    "unknown-key": "an object has only the keys of the dialect",
    "missing-key": "an object has the keys it cannot do without",
    "wrong-kind": "a value is of the kind its key requires",
    "ill-formed-versions": "a version range is none, N, N-M or N+",
}
"""Rule id -> its requirement; these are checked while reading, the others by `rules`."""


@dataclass(frozen=True, slots=True)
class WrittenField:
    """A field with its source text; `unread` are its ill-formed keys."""

    schema: FieldSchema
    node: Node
    path: str
    fields: tuple[WrittenField, ...]
    unread: frozenset[str]


@dataclass(frozen=True, slots=True)
class WrittenStruct:
    """An entry of `commonStructs` with its source text."""

    schema: StructSchema
    node: Node
    path: str
    fields: tuple[WrittenField, ...]
    unread: frozenset[str]


@dataclass(frozen=True, slots=True)
class WrittenMessage:
    """A message with its source text."""

    schema: MessageSchema
    node: Node
    path: str
    fields: tuple[WrittenField, ...]
    structs: tuple[WrittenStruct, ...]
    unread: frozenset[str]


def read(node: Node) -> tuple[WrittenMessage | None, list[SchemaError]]:
    """Read one message; None if the document is not an object."""
    errors: list[SchemaError] = []
    if not isinstance(node.value, dict):
        reason = f"a message schema is an object, not {node.kind}"
        return None, [SchemaError.at(node.location, "", "wrong-kind", reason)]
    return _message(node, errors), errors


def _message(node: Node, errors: list[SchemaError]) -> WrittenMessage:
    keys = Keys(node, MESSAGE_KEYS, "", errors)
    name = keys.name("name")
    keys.path = name or node.location.stem
    valid = keys.versions("validVersions", ALL)
    # A message removed from Kafka keeps only its key.
    keys.check(("name", "type", "validVersions", "fields")[: 4 if valid else 3])
    fields = _fields(keys, valid)
    structs = tuple(_struct(n, keys.path, errors) for n in keys.objects("commonStructs"))
    schema = MessageSchema(
        name=name,
        type=keys.name("type"),
        api_key=keys.integer("apiKey"),
        listeners=keys.names("listeners"),
        valid_versions=valid,
        flexible_versions=keys.versions("flexibleVersions", NONE),
        deprecated_versions=keys.versions("deprecatedVersions", NONE),
        latest_version_unstable=keys.flag("latestVersionUnstable"),
        header_versions=keys.header_versions("headerVersions"),
        about=keys.name("about"),
        fields=tuple(f.schema for f in fields),
        common_structs=tuple(s.schema for s in structs),
        location=node.location,
    )
    return WrittenMessage(schema, node, keys.path, fields, structs, frozenset(keys.unread))


def _struct(node: Node, message: str, errors: list[SchemaError]) -> WrittenStruct:
    keys = Keys(node, STRUCT_KEYS, "", errors)
    name = keys.name("name")
    keys.path = f"{message}.commonStructs.{name or '?'}"
    keys.check(("name", "versions", "fields"))
    versions = keys.versions("versions", ALL)
    keys.versions("deprecatedVersions", NONE)
    fields = _fields(keys, versions)
    schema = StructSchema(
        name=name,
        versions=versions,
        about=keys.name("about"),
        fields=tuple(f.schema for f in fields),
        location=node.location,
    )
    return WrittenStruct(schema, node, keys.path, fields, frozenset(keys.unread))


def _fields(parent: Keys, versions: Versions) -> tuple[WrittenField, ...]:
    array = "[]" if parent.name("type").startswith("[]") else ""
    prefix = parent.path + array
    return tuple(_field(n, prefix, versions, parent.errors) for n in parent.objects("fields"))


def _field(node: Node, prefix: str, around: Versions, errors: list[SchemaError]) -> WrittenField:
    keys = Keys(node, FIELD_KEYS, prefix, errors)
    name = keys.name("name")
    keys.path = f"{prefix}.{name or '?'}"
    versions_key = "taggedVersions" if "taggedVersions" in node.members else "versions"
    keys.check(("name", "type", versions_key))
    tagged = keys.versions("taggedVersions", NONE)
    # If absent, the versions are taggedVersions.
    versions = keys.versions("versions", tagged or around)
    fields = _fields(keys, versions)
    schema = FieldSchema(
        name=name,
        type=keys.name("type"),
        versions=versions,
        nullable_versions=keys.versions("nullableVersions", NONE),
        tagged_versions=tagged,
        tag=keys.integer("tag"),
        flexible_versions=keys.own_flexible(),
        default=keys.text("default"),
        ignorable=keys.flag("ignorable"),
        map_key=keys.flag("mapKey"),
        entity_type=keys.name("entityType") or None,
        zero_copy=keys.flag("zeroCopy"),
        about=keys.name("about"),
        fields=tuple(f.schema for f in fields),
        location=node.location,
    )
    return WrittenField(schema, node, keys.path, fields, frozenset(keys.unread))

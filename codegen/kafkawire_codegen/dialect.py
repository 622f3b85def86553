"""The objects of a schema file, and their keys.

Values are as written; `model` resolves them per version.

    MessageSchema -> fields: FieldSchema (nested) ; commonStructs: StructSchema -> FieldSchema
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from .source import Location
from .versions import Versions

HeaderVersions = tuple[tuple[Versions, int], ...]
"""Versions of a message, and the version of the header before it; ranges in order."""

MESSAGE_TYPES: Final = (
    "request",
    "response",
    "header",
    "data",
    "metadata",
    "coordinator-key",
    "coordinator-value",
)
LISTENERS: Final = ("broker", "controller", "zkBroker")
ENTITY_TYPES: Final = {
    "transactionalId": "string",
    "producerId": "int64",
    "groupId": "string",
    "topicName": "string",
    "brokerId": "int32",
}
"""Entity type -> wire type of its name."""


@dataclass(frozen=True, slots=True)
class FieldSchema:
    """One field as written.

    default: its text, "null" for the null value; None if absent. flexible_versions: its own, if it
    has any.
    """

    name: str
    type: str
    versions: Versions
    nullable_versions: Versions
    tagged_versions: Versions
    tag: int | None
    flexible_versions: Versions | None
    default: str | None
    ignorable: bool
    map_key: bool
    entity_type: str | None
    zero_copy: bool
    about: str
    fields: tuple[FieldSchema, ...]
    location: Location

    @property
    def element(self) -> str:
        """The type without its array brackets."""
        return self.type.removeprefix("[]")

    @property
    def is_array(self) -> bool:
        return self.type.startswith("[]")


@dataclass(frozen=True, slots=True)
class StructSchema:
    """One entry of `commonStructs`."""

    name: str
    versions: Versions
    about: str
    fields: tuple[FieldSchema, ...]
    location: Location


@dataclass(frozen=True, slots=True)
class MessageSchema:
    """One schema file."""

    name: str
    type: str
    api_key: int | None
    listeners: tuple[str, ...]
    valid_versions: Versions
    flexible_versions: Versions
    deprecated_versions: Versions
    latest_version_unstable: bool
    header_versions: HeaderVersions
    about: str
    fields: tuple[FieldSchema, ...]
    common_structs: tuple[StructSchema, ...]
    location: Location


class Form(Enum):
    """The required form of a value; scalar types are interchangeable where Kafka allows it."""

    NAME = "a string"
    TEXT = "a string (or a number, or true or false)"
    VERSIONS = "a version range in a string"
    INTEGER = "an integer (or one in a string)"
    FLAG = "true or false"
    NAMES = "a list of strings"
    HEADERS = "an object of version ranges, each with its header version"
    FIELDS = "a list of fields"
    STRUCTS = "a list of structs"


MESSAGE_KEYS: Final = {
    "name": Form.NAME,
    "type": Form.NAME,
    "apiKey": Form.INTEGER,
    "listeners": Form.NAMES,
    "validVersions": Form.VERSIONS,
    "flexibleVersions": Form.VERSIONS,
    "deprecatedVersions": Form.VERSIONS,
    "headerVersions": Form.HEADERS,
    "latestVersionUnstable": Form.FLAG,
    "about": Form.NAME,
    "commonStructs": Form.STRUCTS,
    "fields": Form.FIELDS,
}
STRUCT_KEYS: Final = {
    "name": Form.NAME,
    "versions": Form.VERSIONS,
    "deprecatedVersions": Form.VERSIONS,
    "about": Form.NAME,
    "fields": Form.FIELDS,
}
FIELD_KEYS: Final = {
    "name": Form.NAME,
    "type": Form.NAME,
    "versions": Form.VERSIONS,
    "nullableVersions": Form.VERSIONS,
    "taggedVersions": Form.VERSIONS,
    "tag": Form.INTEGER,
    "flexibleVersions": Form.VERSIONS,
    "default": Form.TEXT,
    "ignorable": Form.FLAG,
    "mapKey": Form.FLAG,
    "entityType": Form.NAME,
    "zeroCopy": Form.FLAG,
    "about": Form.NAME,
    "fields": Form.FIELDS,
}

"""The formats of keys and values, and what a decoded one is.

A decoded value has either a value or an error.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from .json_form import json_form
from .schema import SchemaKey, SchemaType


class ValueFormat(StrEnum):
    """Formats of keys and values; auto: what each says of itself."""

    AUTO = "auto"
    AVRO = "avro"
    PROTOBUF = "protobuf"
    JSON_SCHEMA = "json-schema"
    JSON = "json"
    MSGPACK = "msgpack"
    STRING = "string"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    UUID = "uuid"
    BYTES = "bytes"


TYPES: Final = {
    ValueFormat.AVRO: SchemaType.AVRO,
    ValueFormat.PROTOBUF: SchemaType.PROTOBUF,
    ValueFormat.JSON_SCHEMA: SchemaType.JSON,
}
"""Formats that have schemas."""
TEXTS: Final = frozenset({ValueFormat.STRING, ValueFormat.UUID})
FORMATS: Final = {kind: form.value for form, kind in TYPES.items()}


class DecodedValue(NamedTuple):
    """A decoded key or value.

    format: how it was read. value: plain values (dict, list, str, int, bytes, datetime, ..); None
    beside an error. error: why it cannot be decoded. schema: its id or GUID. type: the name of the
    Avro type or Protobuf message.
    """

    format: str
    value: object = None
    error: str | None = None
    schema: SchemaKey | None = None
    type: str | None = None

    def to_json(self) -> dict[str, object]:
        """Make a JSON object: format, schemaId or schemaGuid, type; value, or error."""
        fields: dict[str, object] = {"format": self.format}
        if isinstance(self.schema, int):
            fields["schemaId"] = self.schema
        elif self.schema is not None:
            fields["schemaGuid"] = str(self.schema)
        if self.type is not None:
            fields["type"] = self.type
        if self.error is not None:
            return fields | {"error": self.error}
        return fields | {"value": json_form(self.value)}

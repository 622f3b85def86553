"""The formats of keys and values, and what a decoded one is.

A decoded value has either a value or an error.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

from .json_form import json_form
from .schema import ApicurioId, SchemaKey, SchemaType


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

    @property
    def schema_id(self) -> int | None:
        """The id of the schema, of whatever kind; None if the value names none, or a GUID."""
        if isinstance(self.schema, ApicurioId):
            return self.schema.number
        return self.schema if isinstance(self.schema, int) else None

    @property
    def schema_guid(self) -> str | None:
        """The GUID of the schema; None if the value names none, or an id."""
        return str(self.schema) if isinstance(self.schema, UUID) else None

    def to_json(self) -> dict[str, object]:
        """Make a JSON object: format, schemaId or schemaGuid, type; value, or error."""
        fields: dict[str, object] = {"format": self.format}
        if self.schema_id is not None:
            fields["schemaId"] = self.schema_id
        elif self.schema_guid is not None:
            fields["schemaGuid"] = self.schema_guid
        if self.type is not None:
            fields["type"] = self.type
        if self.error is not None:
            return fields | {"error": self.error}
        return fields | {"value": json_form(self.value)}

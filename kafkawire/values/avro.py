"""Decodes and encodes Avro values, with fastavro.

A value is checked where its schema does not bound it (`avro_growth`); whatever fastavro raises
for a schema or a value becomes UnusableSchema or InvalidRecordValue.
"""

from __future__ import annotations

import json
import struct
from io import BytesIO
from typing import Any, Final

from ..errors import InvalidRecordValue, UnusableSchema
from ..extras import requires
from .avro_growth import check, growth_of
from .avro_values import native
from .bounds import Bounds, json_depth
from .schema import Schema

DATA_ERRORS: Final = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)
"""What fastavro raises for invalid schemas and values, beside exceptions of its own."""

FIELD: Final = "value"
PRIMITIVES: Final = frozenset(
    {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
)


class AvroCodec:
    """Decodes and encodes the values of a schema. Raises UnusableSchema."""

    def __init__(self, schema: Schema, bounds: Bounds) -> None:
        with requires("fastavro", "values"):
            import fastavro
        from fastavro.schema import SchemaParseException, UnknownType

        self._bounds = bounds
        self._read = fastavro.schemaless_reader
        self._write = fastavro.schemaless_writer
        self._named: dict[str, Any] = {}
        try:
            for reference in schema.references:
                self._parse(reference.text, reference.name)
            parsed = self._parse(schema.text, schema.name)
            self.name = parsed.get("name") if isinstance(parsed, dict) else None
            self._schema = self._in_record(parsed)
            self._growth = growth_of(self._schema, self._named, bounds)
        except UnknownType as error:
            raise UnusableSchema(f"unknown type {error.name}", schema.name) from None
        except (SchemaParseException, *DATA_ERRORS) as error:
            raise UnusableSchema(f"invalid Avro schema: {error}", schema.name) from None

    def _in_record(self, parsed: Any) -> Any:
        """Make the schema of a record with one field, whose encoding is that of the field.

        fastavro resolves the names of other schemas in records alone.
        """
        from fastavro import parse_schema

        fields = [{"name": FIELD, "type": parsed}]
        record = {"type": "record", "name": "kafkawire_value", "fields": fields}
        return parse_schema(record, named_schemas=self._named)

    def _parse(self, text: str, name: str) -> Any:
        from fastavro import parse_schema

        if text.strip() in PRIMITIVES:  # as registries may write them
            return text.strip()
        value = json.loads(text)
        if json_depth(value) > 4 * self._bounds.depth:  # a level of a type has several of JSON
            raise UnusableSchema("nested too deeply", name)
        return parse_schema(value, named_schemas=self._named)

    def decode(self, data: bytes, at: int) -> object:
        """Decode the value that begins at a byte and ends with the data."""
        if self._growth.needs_check(len(data) - at):
            check(self._schema, self._named, data, at, self._bounds)
        stream = BytesIO(data)
        stream.seek(at)
        try:
            record: Any = self._read(stream, self._schema, None)
        except EOFError:
            raise InvalidRecordValue("the value ends early") from None
        except DATA_ERRORS as error:
            raise InvalidRecordValue(f"invalid Avro: {error}") from None
        if stream.tell() != len(data):
            rest = len(data) - stream.tell()
            raise InvalidRecordValue(f"{rest} more bytes than the schema has")
        value: object = record[FIELD]
        return value

    def encode(self, value: object) -> bytes:
        """Encode a value in its JSON form."""
        stream = BytesIO()
        try:
            converted = native({FIELD: value}, self._schema, self._named)
            self._write(stream, self._schema, converted, strict=True)
        except DATA_ERRORS as error:
            raise InvalidRecordValue(f"not a value of the schema: {error}") from None
        return stream.getvalue()

"""Decodes and encodes Avro values, with fastavro.

A value is checked where its schema does not bound it (`avro_growth`); whatever fastavro raises
for a schema or a value becomes UnusableSchema or InvalidRecordValue.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from io import BytesIO, StringIO
from typing import Any, Final
from uuid import UUID

from ..errors import InvalidRecordValue, UnusableSchema
from ..extras import requires
from .avro_growth import check, growth_of
from .bounds import Bounds, json_depth
from .json_form import HEX, decimal_of
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
        self._read_json = fastavro.json_reader
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
            check(self._schema, self._named, data, at, self._bounds)  # says why, if it can
            raise InvalidRecordValue(f"invalid Avro: {error}") from None
        if stream.tell() != len(data):
            rest = len(data) - stream.tell()
            raise InvalidRecordValue(f"{rest} more bytes than the schema has")
        value: object = record[FIELD]
        return value

    def decode_json(self, data: bytes) -> object:
        """Decode a value in Avro's JSON encoding."""
        try:
            document = json.loads(data)
            if json_depth(document) > self._bounds.depth:
                raise InvalidRecordValue("nested too deeply")
            line = StringIO(json.dumps({FIELD: document}))  # fastavro reads a document per line
            record: Any = next(self._read_json(line, self._schema))
        except (StopIteration, *DATA_ERRORS) as error:
            raise InvalidRecordValue(f"invalid JSON of Avro: {error}") from None
        value: object = record[FIELD]
        return value

    def encode(self, value: object) -> bytes:
        """Encode a value in its JSON form; fields that are left out have their default."""
        stream = BytesIO()
        try:
            converted = native({FIELD: value}, self._schema, self._named)
            self._write(stream, self._schema, converted, strict=True)
        except DATA_ERRORS as error:
            raise InvalidRecordValue(f"not a value of the schema: {error}") from None
        return stream.getvalue()


# -- from the JSON form to what fastavro encodes, the inverse of `json_form`: a value that has no
# conversion is unchanged; the encoder rejects it if it does not fit

FROM_TEXT: Final[Mapping[str, Callable[[str], object]]] = {
    "date": date.fromisoformat,
    "decimal": decimal_of,
    "local-timestamp-micros": datetime.fromisoformat,
    "local-timestamp-millis": datetime.fromisoformat,
    "time-micros": time.fromisoformat,
    "time-millis": time.fromisoformat,
    "timestamp-micros": datetime.fromisoformat,
    "timestamp-millis": datetime.fromisoformat,
    "uuid": UUID,
}
"""Logical types whose JSON form is text."""
SPECIAL: Final = frozenset({"NaN", "Infinity", "-Infinity"})


def native(value: Any, schema: Any, named: Mapping[str, Any]) -> Any:
    """Convert a value in its JSON form; schema: parsed by fastavro."""
    if isinstance(schema, list):
        return _of_union(value, schema, named)
    schema = named.get(schema, schema) if isinstance(schema, str) else schema
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(kind, dict | list):
        return native(value, kind, named)
    logical = schema.get("logicalType") if isinstance(schema, dict) else None
    if isinstance(value, str):
        return _of_text(value, kind, logical)
    if kind == "array" and isinstance(value, list):
        return [native(inner, schema["items"], named) for inner in value]
    if isinstance(value, dict):
        return _of_object(value, schema, kind, named)
    return value


def _of_object(value: dict[str, Any], schema: Any, kind: str, named: Mapping[str, Any]) -> Any:
    if kind in ("bytes", "fixed"):
        return bytes.fromhex(value[HEX]) if value.keys() == {HEX} else value
    if kind in ("record", "error"):
        return _of_record(value, schema, named)
    if kind == "map":
        return {key: native(inner, schema["values"], named) for key, inner in value.items()}
    return value


def _of_record(value: dict[str, Any], schema: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    converted = dict(value)
    for field in schema["fields"]:
        name = field["name"]
        if name in value:
            converted[name] = native(value[name], field["type"], named)
        elif "default" in field:
            converted[name] = _default(field["default"], field["type"], named)
    return converted


def _default(value: Any, schema: Any, named: Mapping[str, Any]) -> Any:
    """Convert a default, in which bytes are text of the characters U+0000 to U+00FF."""
    if isinstance(schema, list):
        return _default(value, schema[0], named)  # of a union, a default has the first type
    schema = named.get(schema, schema) if isinstance(schema, str) else schema
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(kind, dict | list):
        return _default(value, kind, named)
    if kind in ("bytes", "fixed"):
        return value.encode("latin-1")
    if kind == "array":
        return [_default(inner, schema["items"], named) for inner in value]
    if kind == "map":
        return {key: _default(inner, schema["values"], named) for key, inner in value.items()}
    if kind in ("record", "error"):
        fields = {field["name"]: field for field in schema["fields"]}
        own = {name: _default(inner, fields[name]["type"], named) for name, inner in value.items()}
        return _of_record({}, schema, named) | own
    return value


def _of_text(value: str, kind: str, logical: str | None) -> object:
    convert = FROM_TEXT.get(logical or "")
    if convert is not None:
        return convert(value)
    if kind in ("float", "double") and value in SPECIAL:
        return float(value)
    return value.encode() if kind in ("bytes", "fixed") else value


def _of_union(value: Any, branches: list[Any], named: Mapping[str, Any]) -> Any:
    """Convert by the first branch that the converted value fits."""
    from fastavro.validation import validate

    for branch in branches:
        try:
            converted = native(value, branch, named)
            schema = named.get(branch, branch) if isinstance(branch, str) else branch
            if validate(converted, schema, raise_errors=False):
                return converted
        except (ArithmeticError, LookupError, TypeError, ValueError):
            continue
    return value

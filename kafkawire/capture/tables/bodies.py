"""Types the bodies of one message in the table `messages`: columns instead of JSON text.

A body has the values of its JSON text, so what is hidden there is hidden here. One type covers
all versions of a message: a field that the version lacks is null, a tagged field that is absent has
its default. Types and names are those of `kafkawire codegen --target arrow`.

    batches of `messages` --of one message--> the same columns, `body` a struct
"""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute

from ...messages import REGISTRY
from ...primitives import Structure
from ...protocol.fields import Field, all_fields
from ...protocol.json_form import UNKNOWN_TAGS, to_json, uuid_text
from .arrow.schemas import PLAIN, array_of, schema_of
from .columns import (
    BOOL,
    BYTES,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    TEXT,
    Column,
    StructOf,
    Type,
    list_of,
    struct_of,
)
from .messages import COLUMNS

BODY: Final = "body"
TAGS: Final = list_of(struct_of(tag=INT32, data=BYTES))
TYPES: Final[dict[str, Type]] = {
    "bool": BOOL,
    "int8": INT8,
    "int16": INT16,
    "uint16": INT32,
    "int32": INT32,
    "uint32": INT64,
    "int64": INT64,
    "float64": FLOAT64,
    "uuid": TEXT,
    "string": TEXT,
    "bytes": BYTES,
    "records": BYTES,
}
"""Wire type -> the type of its values."""


def schema(message: str) -> pa.Schema:
    """Return the schema of `messages` with the bodies of a message; KeyError if it is unknown."""
    columns = [column._replace(type=_type_of(message, column)) for column in COLUMNS]
    return schema_of(tuple(columns))


def typed(batches: Iterable[pa.RecordBatch], message: str) -> Iterator[pa.RecordBatch]:
    """Choose the rows of a message, `FetchResponse`, and make their bodies structs.

    batches: of the table `messages`. A body that was not decoded is null. Raises KeyError for an
    unknown message.
    """
    columns = schema(message)
    for batch in batches:
        rows = _rows_of(batch, message)
        if len(rows):
            yield _with_bodies(rows, message, columns)


def _type_of(message: str, column: Column) -> Type:
    return body_type(_load(message)) if column.name == BODY else column.type


def _load(message: str) -> type[Structure]:
    if message not in REGISTRY:
        raise KeyError(message)
    cls: type[Structure] = REGISTRY.load(message)
    return cls


def _rows_of(batch: pa.RecordBatch, message: str) -> pa.RecordBatch:
    info = REGISTRY.get(message)
    is_wanted = pa.compute.and_kleene(
        pa.compute.equal(batch.column("direction"), pa.scalar(info.type, PLAIN[TEXT])),
        pa.compute.equal(batch.column("api_key"), pa.scalar(info.api_key, PLAIN[INT16])),
    )
    return batch.filter(is_wanted)


def _with_bodies(batch: pa.RecordBatch, message: str, columns: pa.Schema) -> pa.RecordBatch:
    cls = _load(message)
    bodies = [
        None if text is None else body(cls, version, json.loads(text))
        for text, version in zip(
            batch.column(BODY).to_pylist(), batch.column("body_version").to_pylist(), strict=True
        )
    ]
    body_index = columns.get_field_index(BODY)
    body_column = array_of(columns.field(body_index).type, bodies)
    arrays = [
        body_column if index == body_index else column for index, column in enumerate(batch.columns)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


# -- types


_types: Final[dict[type[Structure], StructOf]] = {}
_defaults: Final[dict[type[Structure], Structure]] = {}


def body_type(cls: type[Structure]) -> StructOf:
    """Make the type of a message or struct, over all versions."""
    cached = _types.get(cls)
    if cached is None:
        cached = _types[cls] = _new_type(cls)
    return cached


def _new_type(cls: type[Structure]) -> StructOf:
    fields = [(field.attribute, _field_type(field)) for field in all_fields(cls)]
    if _has_tags(cls):
        fields.append(("unknown_tags", TAGS))
    return StructOf(tuple(fields))


def _field_type(field: Field) -> Type:
    element = TYPES[field.element] if field.struct is None else body_type(field.struct)
    return list_of(element) if field.is_array else element


def _default(cls: type[Structure]) -> Structure:
    default = _defaults.get(cls)
    if default is None:
        default = _defaults[cls] = cls()
    return default


def _has_tags(cls: type[Structure]) -> bool:
    return hasattr(_default(cls), "unknown_tags")


# -- values


def body(cls: type[Structure], version: int, values: dict[str, Any]) -> dict[str, Any]:
    """Make the value of `body_type` from the JSON object of a version."""
    row = {field.attribute: _field(cls, field, version, values) for field in all_fields(cls)}
    if _has_tags(cls):
        tags = values.get(UNKNOWN_TAGS)
        row["unknown_tags"] = tags and [
            {"tag": tag["tag"], "data": _bytes(tag["data"])} for tag in tags
        ]
    return row


def _field(cls: type[Structure], field: Field, version: int, values: dict[str, Any]) -> Any:
    if not field.first <= version <= field.last:
        return None
    if field.json_name in values:
        value = values[field.json_name]
    else:
        value = _json_of(getattr(_default(cls), field.attribute), field, version)
    if value is None:
        return None
    return (
        [_one(field, version, each) for each in value]
        if field.is_array
        else _one(field, version, value)
    )


def _json_of(default: Any, field: Field, version: int) -> Any:
    """Make the JSON form of a default that is left out of the JSON object."""
    if isinstance(default, Structure):
        return to_json(default, version)
    return uuid_text(default) if field.is_a("uuid") else default


def _one(field: Field, version: int, value: Any) -> Any:
    if field.struct is not None:
        return body(field.struct, version, value)
    read = _READ.get(field.element)
    return value if read is None else read(value)


def _bytes(text: str | bytes) -> bytes:
    """Read base64; a text that says that the bytes are hidden stays as it is."""
    if isinstance(text, bytes):  # a default
        return text
    try:
        return b64decode(text, validate=True)
    except Error:
        return text.encode()


_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "bytes": _bytes,
    "records": _bytes,
    "float64": float,
}
"""Wire type -> how its JSON form is read, where that is not the value itself."""

"""Adds decoded keys and values to the table `records`: a struct of text beside the bytes.

The other columns stay as they are. A key or value that cannot be decoded has the reason in
`error`; one that is null, or is not decoded, is null.

    batches of `records` --RecordValues--> the same columns, key_decoded, value_decoded
"""

from __future__ import annotations

import json
from typing import Any, Final

import pyarrow as pa

from ...values.formats import DecodedValue
from ...values.json_form import json_form
from ...values.record_values import RecordValues
from .arrow.schemas import array_of

KEY: Final = "key_decoded"
VALUE: Final = "value_decoded"
DECODED: Final = pa.struct(
    [
        ("format", pa.string()),
        ("schema_id", pa.int64()),
        ("schema_guid", pa.string()),
        ("type", pa.string()),
        ("value", pa.string()),
        ("error", pa.string()),
    ]
)
"""As the JSON object of a decoded value; `value` is JSON."""


def schema(columns: pa.Schema, values: RecordValues) -> pa.Schema:
    """Return the columns of the table `records` with those of decoded keys and values."""
    for name, decoder in ((KEY, values.keys), (VALUE, values.values)):
        if decoder is not None:
            columns = columns.append(pa.field(name, DECODED))
    return columns


def with_values(batch: pa.RecordBatch, values: RecordValues) -> pa.RecordBatch:
    """Add decoded keys and values to a batch of the table `records`.

    Only the columns topic, headers and those that are decoded are needed.
    """
    arrays = [*batch.columns]
    for is_key, decoder in ((True, values.keys), (False, values.values)):
        if decoder is None:
            continue
        decode = values.key if is_key else values.value
        decoded = [
            _row(decode(topic, data, headers))
            for topic, data, headers in record_parts(batch, is_key=is_key)
        ]
        arrays.append(array_of(DECODED, decoded))
    return pa.RecordBatch.from_arrays(arrays, schema=schema(batch.schema, values))


def record_parts(
    batch: pa.RecordBatch, *, is_key: bool
) -> list[tuple[str | None, bytes | None, list[tuple[str, bytes | None]]]]:
    """Return the topic, the key or value, and the headers of each record."""
    headers = [
        [(header["key"], header["value"]) for header in of_record or ()]
        for of_record in batch.column("headers").to_pylist()
    ]
    data = batch.column("key" if is_key else "value").to_pylist()
    return [*zip(batch.column("topic").to_pylist(), data, headers, strict=True)]


def _row(decoded: DecodedValue | None) -> dict[str, Any] | None:
    if decoded is None:
        return None
    text = None
    if decoded.error is None:
        text = json.dumps(json_form(decoded.value), separators=(",", ":"), allow_nan=False)
    return {
        "format": decoded.format,
        "schema_id": decoded.schema_id,
        "schema_guid": decoded.schema_guid,
        "type": decoded.type,
        "value": text,
        "error": decoded.error,
    }

"""Converts rows to Arrow record batches. The only module here that imports pyarrow.

Each field of the row is a column, with the type of its annotation; `file` comes first, and
decoded keys and values are JSON strings beside the raw bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, get_type_hints

from ..extras import requires
from ..protocol.log_records import LogPart
from ..protocol.secrets import placeholder
from ..records import Headers
from ..records.replaced_text import header_row
from .reading import RecordRow, Row

with requires("pyarrow", "tables"):
    import pyarrow as pa

HEADER: Final = pa.struct(
    [
        pa.field("key", pa.string(), nullable=False),
        ("value", pa.binary()),
        ("key_bytes", pa.binary()),
    ]
)
"""key_bytes: the bytes of a key that is not UTF-8, else null."""

TYPES: Final[dict[Any, pa.Field]] = {
    int: pa.field("", pa.int64(), nullable=False),
    str: pa.field("", pa.string(), nullable=False),
    bool: pa.field("", pa.bool_(), nullable=False),
    int | None: pa.field("", pa.int64()),
    bool | None: pa.field("", pa.bool_()),
    str | None: pa.field("", pa.string()),
    bytes | None: pa.field("", pa.binary()),
    Headers: pa.field("", pa.list_(pa.field("item", HEADER, nullable=False)), nullable=False),
}
"""Annotation -> Arrow field."""

MESSAGES: Final = (pa.field("key_message", pa.string()), pa.field("value_message", pa.string()))
"""The columns of `RecordRow.decoded`: JSON strings."""


def schema(row: type[Row]) -> pa.Schema:
    """Return the schema of a row type."""
    hints = get_type_hints(row)
    fields = [TYPES[hints[name]].with_name(name) for name in row._fields if name != "decoded"]
    messages = MESSAGES if row is RecordRow else ()
    return pa.schema([pa.field("file", pa.string(), nullable=False), *fields, *messages])


def record_batch(
    kind: type[Row], rows: Sequence[tuple[str, Row]], *, secrets: bool = True
) -> pa.RecordBatch:
    """Build a record batch of rows of one type, each with its file.

    secrets: whether secrets of the metadata log are shown; else they are replaced by their size.
    """
    return pa.RecordBatch.from_pylist(
        [{"file": file} | _columns(row, secrets) for file, row in rows], schema=schema(kind)
    )


def _columns(row: Row, secrets: bool) -> dict[str, Any]:
    fields = row._asdict()
    if isinstance(row, RecordRow):
        key, value = fields.pop("decoded") or (None, None)
        fields["headers"] = [header_row(*header) for header in row.headers]
        fields |= {
            "key_message": _json(key, secrets),
            "value_message": _json(value, secrets),
        }
        for name, part in (("key", key), ("value", value)):
            if part is not None and part.secret and not secrets:
                fields[name] = placeholder(len(part.raw), "byte").encode()
    return fields


def _json(part: LogPart | None, secrets: bool) -> str | None:
    return None if part is None else json.dumps(part.to_json(secrets=secrets))

"""Decodes the records of a topic into a table, whose column `value` has the type of the values.

Law: the table has every record of the topic but control records; a value that cannot be decoded is
null, with the reason beside it. Values without a common type are JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

import pyarrow as pa

from ..capture.tables import TABLES
from ..display import plural
from ..values import DecodedValue, Subject, ValueDecoder
from ..values.json_form import json_form

KEPT: Final = (
    "file",
    "packet",
    "time",
    "connection",
    "direction",
    "client_id",
    "partition",
    "offset",
    "timestamp",
    "key",
    "headers",
)
"""Columns of `records` that the table has, too."""
NEEDED: Final = frozenset({*KEPT, "topic", "value", "control"})
MAX_FIELDS: Final = 1000
"""Different names of fields in values that have a type."""

UNTYPABLE: Final = (pa.ArrowException, OverflowError, TypeError, ValueError)
"""What Arrow raises for values without a common type."""


def topic_values(batches: Iterable[pa.RecordBatch], topic: str, decoder: ValueDecoder) -> pa.Table:
    """Make the table of a topic; batches: of the table `records`."""
    kept: list[dict[str, Any]] = []
    decoded: list[DecodedValue | None] = []
    for batch in batches:
        for row in _records_of(batch, topic):
            headers = [(header["key"], header["value"]) for header in row["headers"]]
            decoded.append(decoder.decode(row["value"], Subject(topic), headers))
            kept.append({name: row[name] for name in KEPT})
    schema = TABLES["records"].schema
    table = pa.Table.from_pylist(kept, schema=pa.schema([schema.field(name) for name in KEPT]))
    errors = [None if one is None else one.error for one in decoded]
    keys = [None if one is None else one.schema for one in decoded]
    ids = [key if isinstance(key, int) else None for key in keys]
    table = table.append_column(
        "value", typed([None if one is None else one.value for one in decoded])
    )
    table = table.append_column("error", pa.array(errors, pa.string()))
    return table.append_column("schema_id", pa.array(ids, pa.int64()))


def notes(table: pa.Table) -> list[str]:
    """Say what is unexpected about the table of a topic: no records, values without a type."""
    if not len(table):
        return ["no records of this topic"]
    found = []
    errors = table.column("error").drop_null()
    if len(errors):
        found.append(
            f"{len(errors):,} of {plural(len(table), 'value')} not decoded; the first: "
            f"{errors[0].as_py()}"
        )
    values = table.column("value")
    if pa.types.is_string(values.type):
        texts = values.drop_null()
        if len(texts) and texts[0].as_py()[:1] in ("{", "["):
            found.append("values have no type in common, and are JSON text: value->>'field'")
    return found


def _records_of(batch: pa.RecordBatch, topic: str) -> Iterator[dict[str, Any]]:
    import pyarrow.compute as pc

    wanted = pc.and_not(pc.equal(batch["topic"], topic), batch["control"])
    names = [name for name in batch.schema.names if name in NEEDED]
    yield from batch.select(names).filter(wanted).to_pylist()


def typed(values: list[object]) -> pa.Array:
    """Make a column of values: of the type that they have in common, or JSON text."""
    names: set[str] = set()
    plain = [_plain(value, names) for value in values]
    if len(names) <= MAX_FIELDS:
        with suppress(*UNTYPABLE):
            return pa.array(plain)
    return _text(values)


def _text(values: list[object]) -> pa.Array:
    texts = [None if value is None else json.dumps(json_form(value)) for value in values]
    return pa.array(texts, pa.string())


def _plain(value: object, names: set[str]) -> object:
    """Convert what Arrow does not infer types of; add the names of fields.

    An object without fields is null: DuckDB and Parquet have no struct without fields.
    """
    if isinstance(value, dict):
        names.update(map(str, value))
        made = {name: _plain(inner, names) for name, inner in value.items()}
        return made or None
    if isinstance(value, list):
        return [_plain(inner, names) for inner in value]
    return str(value) if isinstance(value, UUID) else value

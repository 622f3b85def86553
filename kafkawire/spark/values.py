"""Adds decoded keys and values to the table `records` in Spark.

The driver looks up schemas, each once, whatever the number of workers; these reach no
registry. Rows are those of `kafkawire.capture.tables.decoded_values`.

    records --workers--> schemas named, most frequent first --driver--> decoders --workers--> rows
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ..capture.tables.decoded_values import record_parts, schema, with_values
from ..values import ApicurioId, IdKind, SchemaKey, Subject, ValueDecoder
from ..values.bounds import DEFAULT_BOUNDS
from ..values.looked_up import NamedSchema
from ..values.record_values import RecordValues
from .errors import BadOption, MissingColumns, ascii_safe
from .options import Options
from .reading import map_in_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

RECORDS: Final = "records"
"""The table that gets decoded keys and values."""

NAMED: Final = pa.schema(
    [
        ("is_key", pa.bool_()),
        ("topic", pa.string()),
        ("id", pa.int64()),
        ("guid", pa.string()),
        ("kind", pa.string()),
        ("count", pa.int64()),
    ]
)

Finishing = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class DecodedValues:
    """Finishes batches of the table `records`, then decodes keys and values."""

    finish: Finishing
    values: RecordValues

    def batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Finish a batch and add the columns of decoded keys and values."""
        return with_values(self.finish(batch), self.values)


def require_records(
    tables: Iterable[str], options: Options, values: RecordValues | None
) -> RecordValues | None:
    """Return the decoders of a job, which needs keys and values. Raises BadOption."""
    if values is None:
        return None
    if RECORDS not in tables:
        raise BadOption("table", ",".join(tables), f"{RECORDS}, whose values are to be decoded")
    if options.redact:
        raise BadOption("redact", "true", "false where values are decoded")
    if not options.include_records:
        raise BadOption("includeRecords", "false", "true where values are decoded")
    return values


def with_decoded_values(
    records: DataFrame, values: ValueDecoder | None = None, keys: ValueDecoder | None = None
) -> DataFrame:
    """Add decoded keys and values; the frame is read twice.

    records: rows of the table `records`, with the columns topic, headers, and key, value or both.
    Raises MissingColumns.
    """
    both = RecordValues(values, keys)
    needed = {"topic", "headers"}
    needed |= {name for name, decoder in (("key", keys), ("value", values)) if decoder is not None}
    if missing := sorted(needed - {*records.columns}):
        raise MissingColumns(tuple(missing))
    decoders = looked_up(records, both)

    @ascii_safe
    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (with_values(batch, decoders) for batch in batches)

    added = from_arrow_schema(schema(pa.schema([]), both))
    return records.mapInArrow(decode, StructType([*records.schema.fields, *added.fields]))


def looked_up(
    rows: DataFrame,
    values: RecordValues,
    records: Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]] = iter,
) -> RecordValues:
    """Return decoders with the schemas that records name, the most frequent ones first.

    rows: those of the table, or what `records` converts to its batches, in the workers.
    """
    # Workers need neither sources nor the credentials of a registry.
    formats = RecordValues(*(one and ValueDecoder(one.format) for one in values))

    @ascii_safe
    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (_named(batch, formats) for batch in records(batches))

    from pyspark.sql.functions import col
    from pyspark.sql.functions import sum as total

    columns = "is_key", "topic", "id", "guid", "kind"
    counted = map_in_arrow(rows, count, NAMED).groupBy(*columns)
    order = [col("count").desc(), *map(col, columns)]
    by_count = counted.agg(total("count").alias("count")).orderBy(*order)
    named = [*map(_of_row, by_count.limit(2 * DEFAULT_BOUNDS.schemas).collect())]

    def known(decoder: ValueDecoder | None, *, is_key: bool) -> ValueDecoder | None:
        if decoder is None:
            return None
        return decoder.looked_up(one for of_key, one in named if of_key is is_key)

    return RecordValues(known(values.values, is_key=False), known(values.keys, is_key=True))


def _named(batch: pa.RecordBatch, values: RecordValues) -> pa.RecordBatch:
    """Count the schemas that the records of a batch name."""
    counts: Counter[tuple[bool, NamedSchema]] = Counter()
    for is_key, decoder in ((True, values.keys), (False, values.values)):
        if decoder is None:
            continue
        for topic, data, headers in record_parts(batch, is_key=is_key):
            if data is None:
                continue
            subject = None if topic is None else Subject(topic, is_key)
            one = decoder.named_schema(data, subject, headers)
            if one is not None:
                counts[is_key, one] += 1
    rows = [_row(is_key, one, count) for (is_key, one), count in counts.items()]
    return pa.RecordBatch.from_pylist(rows, NAMED)


def _row(is_key: bool, named: NamedSchema, count: int) -> dict[str, object]:
    key, subject = named
    return {
        "is_key": is_key,
        "topic": None if subject is None else subject.topic,
        "id": key if isinstance(key, int) else getattr(key, "number", None),
        "kind": key.kind.value if isinstance(key, ApicurioId) else None,
        "guid": str(key) if isinstance(key, UUID) else None,
        "count": count,
    }


def _of_row(row: Row) -> tuple[bool, NamedSchema]:
    key: SchemaKey = row["id"] if row["guid"] is None else UUID(row["guid"])
    if row["kind"] is not None:
        key = ApicurioId(IdKind(row["kind"]), row["id"])
    subject = None if row["topic"] is None else Subject(row["topic"], row["is_key"])
    return row["is_key"], NamedSchema(key, subject)

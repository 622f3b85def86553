"""Columns: where their bytes are, every length around the inline limit, growth, headers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from kafkawire.errors import InvalidText
from kafkawire.records import (
    BatchBuilder,
    Compression,
    MessageSetBuilder,
    RecordBatches,
)
from kafkawire.records.arrow import PLAIN_SCHEMA, SCHEMA
from kafkawire.records.replaced_text import header_row


def field_of(values: list[bytes | None], compression: Compression = Compression.NONE) -> bytes:
    builder = BatchBuilder(compression=compression)
    for value in values:
        builder.append(value, value, 1000)
    return builder.build()


def test_values_point_into_the_field() -> None:
    data = field_of([b"x" * 100, b"y" * 50])
    columns = RecordBatches(data).columns().to_arrow()
    assert columns.schema == SCHEMA
    for name in ("key", "value"):
        _, views, shown = columns[name].buffers()
        assert views.size == 2 * 16
        assert (shown.address, shown.size) == (pa.py_buffer(data).address, len(data))


def test_each_decompressed_batch_is_one_buffer() -> None:
    plain, packed = field_of([b"x" * 100]), field_of([b"y" * 100] * 3, Compression.LZ4)
    columns = RecordBatches(packed + plain + packed).columns().to_arrow()
    buffers = columns["value"].buffers()
    assert len(buffers) == 2 + 3
    assert buffers[2].size == len(plain) + 2 * len(packed)
    assert columns["value"].to_pylist() == [b"y" * 100] * 3 + [b"x" * 100] + [b"y" * 100] * 3
    assert columns["batch"].to_pylist() == [0, 0, 0, 1, 2, 2, 2]


@pytest.mark.parametrize("length", [*range(18), 63, 64, 8191, 8192, 2**20, 2**21])
def test_lengths(length: int) -> None:
    value = bytes(i % 251 for i in range(length))
    data = field_of([value, None, value, b"end"]) + field_of([value])
    columns = RecordBatches(data).columns().to_arrow()
    columns.validate(full=True)
    for name in ("key", "value"):
        assert columns[name].to_pylist() == [value, None, value, b"end", value]


def test_negative_and_long_deltas() -> None:
    builder = BatchBuilder(base_offset=1000, base_timestamp=0)
    expected = []
    for delta in (0, 63, 64, -64, -65, 8191, 8192, -8192, 2**20, -(2**20), 2**31 - 1, -(2**31)):
        for timestamp in (delta, delta * 2**20, delta * 2**31):
            builder.append(None, b"value of one record", timestamp, offset=1000 + delta)
            expected.append((1000 + delta, timestamp))
    columns = RecordBatches(builder.build()).columns().to_arrow()
    read = zip(columns["offset"].to_pylist(), columns["timestamp"].to_pylist(), strict=True)
    assert list(read) == expected


def test_many_batches_of_every_kind() -> None:
    parts, expected = [], []
    for index in range(40):
        value = b"%d" % index * (index + 1)
        codec = list(Compression)[index % 4]
        builder = (
            MessageSetBuilder(index % 2, compression=codec)
            if index % 3
            else BatchBuilder(compression=codec)
        )
        for _ in range(index % 5 + 1):
            builder.append(value, None)
            expected.append(value)
        parts.append(builder.build())
    columns = RecordBatches(b"".join(parts)).columns().to_arrow()
    columns.validate(full=True)
    assert columns["key"].to_pylist() == expected
    assert columns["value"].null_count == len(expected)


def test_headers() -> None:
    builder = BatchBuilder()
    headers = [(), (("k", b"v"),), (("", None), ("grün" * 20, b"x" * 40), ("k", b"")), ()] * 9
    for each in headers:
        builder.append(None, b"v", 0, each)
    data = builder.build()
    columns = RecordBatches(data * 2).columns().to_arrow()
    columns.validate(full=True)
    read = [tuple((h["key"], h["value"]) for h in row) for row in columns["headers"].to_pylist()]
    assert read == headers * 2


def test_header_key_that_is_not_utf8_is_located_where_strict() -> None:
    builder = BatchBuilder()
    builder.append(None, None)
    builder.append(None, None, 0, (("mark", b""),))
    data = builder.build().replace(b"mark", b"m\xffrk")
    field = RecordBatches(data, check_crcs=False, strict=True)
    with pytest.raises(InvalidText, match=r"batch\[0\]\.record\[1\]: the key of a header"):
        field.columns()


def test_arrays_outlive_the_field() -> None:
    columns = RecordBatches(field_of([b"x" * 100] * 10, Compression.ZSTD)).columns().to_arrow()
    assert columns.slice(9)["value"].to_pylist() == [b"x" * 100]


def test_views_can_be_cast_away_and_written(tmp_path: Path) -> None:
    builder = BatchBuilder()
    builder.append(b"key", b"v" * 100, 5, (("h", b"x"), ("n", None)))
    builder.append(None, b"short", 6)
    columns = RecordBatches(builder.build()).columns().to_arrow()
    plain = columns.cast(PLAIN_SCHEMA)
    assert plain.to_pylist() == columns.to_pylist()
    assert plain.take(pa.array([1]))["value"].to_pylist() == [b"short"]
    parquet.write_table(pa.Table.from_batches([columns]), tmp_path / "records.parquet")
    assert parquet.read_table(tmp_path / "records.parquet").to_pylist() == columns.to_pylist()


def test_no_records() -> None:
    assert RecordBatches(b"").columns().to_arrow().num_rows == 0
    assert RecordBatches(b"").columns().to_arrow().schema == SCHEMA


def test_columns_that_start_late() -> None:
    """Keys, headers and batch numbers take memory only from the first row that has one."""
    builder, expected = BatchBuilder(), []
    for index in range(300):
        key = b"key of row %d" % index if index in (150, 299) else None
        value = None if index in (0, 151) else b"value of row %d" % index
        headers = (("place", b"%d" % index),) if index in (200, 298) else ()
        builder.append(key, value, index, headers)
        expected.append((0, key, value, [header_row(*header) for header in headers]))
    later = [(1, key, value, headers) for _, key, value, headers in expected]
    data = builder.build()
    for field, rows in ((data, expected), (data + data, expected + later)):
        columns = RecordBatches(field).columns().to_arrow()
        columns.validate(full=True)
        names = ("batch", "key", "value", "headers")
        assert [tuple(row[name] for name in names) for row in columns.to_pylist()] == rows


@pytest.mark.parametrize("keyed", [False, True])
def test_columns_of_one_kind_of_row(keyed: bool) -> None:
    """All keys null and all values there, or the other way round."""
    builder = BatchBuilder()
    for _ in range(70):
        builder.append(b"only a key here" if keyed else None, None if keyed else b"only a value")
    columns = RecordBatches(builder.build()).columns().to_arrow()
    columns.validate(full=True)
    assert columns["key"].to_pylist() == [b"only a key here" if keyed else None] * 70
    assert columns["value"].to_pylist() == [None if keyed else b"only a value"] * 70
    assert columns["headers"].to_pylist() == [[]] * 70

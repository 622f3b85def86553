"""Header keys that are not UTF-8: delivered with U+FFFD and their bytes, an error where strict."""

from __future__ import annotations

import pickle
from copy import deepcopy
from pathlib import Path

import pytest

from kafkawire.errors import InvalidText, WireError
from kafkawire.records import (
    BatchBuilder,
    Compression,
    RecordBatches,
    ReplacedText,
    reencode,
    text_bytes,
)
from kafkawire.records.arrow import PLAIN_SCHEMA
from kafkawire.records.replaced_text import header_row, replaced_bytes

FIELD = Path("fixtures/field")
SEGMENT = FIELD / "06-header-key/orders-0/00000000000000000000.log"
LATIN = ReplacedText(b"Stra\xdfe")
LONG = ReplacedText(b"l\xe4nger als zw\xf6lf Bytes")
KEYS = (
    "plain",
    LATIN,
    "größe",
    LONG,
    "",
    ReplacedText(b"\xff"),
    "long enough for a view of its own",
)


def field_of(keys: tuple[str, ...], compression: Compression = Compression.NONE) -> bytes:
    """Write a batch with a header a record, and one with all headers in one record."""
    first = BatchBuilder(compression=compression)
    for key in keys:
        first.append(key.encode(), b"value", 1, ((key, b"x"),))
    second = BatchBuilder(compression=compression)
    second.append(None, b"all", 1, tuple((key, None) for key in keys))
    return first.build() + second.build()


def test_text_has_its_bytes_beside_it() -> None:
    assert str(LATIN) == "Stra\ufffde" == LATIN
    assert type(str(LATIN)) is str
    assert (LATIN.raw, text_bytes(LATIN), replaced_bytes(LATIN)) == (b"Stra\xdfe",) * 3
    assert (text_bytes("größe"), replaced_bytes("größe")) == ("größe".encode(), None)
    assert ReplacedText(b"Stra\xfce") != LATIN
    assert eval(repr(LATIN)) == LATIN
    for copy in (deepcopy(LATIN), *(pickle.loads(pickle.dumps(LATIN, p)) for p in range(2, 6))):
        assert (type(copy), copy, copy.raw) == (ReplacedText, LATIN, LATIN.raw)


@pytest.mark.parametrize("compression", list(Compression))
def test_records_columns_and_rows(compression: Compression) -> None:
    data = field_of(KEYS, compression)
    field = RecordBatches(data)
    records = list(field.records())
    expected = [[(key, b"x")] for key in KEYS] + [[(key, None) for key in KEYS]]
    assert [list(record.headers) for record in records] == expected
    raw = [[replaced_bytes(key) for key, _ in record.headers] for record in records]
    assert raw == [[replaced_bytes(key)] for key in KEYS] + [list(map(replaced_bytes, KEYS))]
    columns = field.columns().to_arrow()
    columns.validate(full=True)
    rows = [[header_row(*header) for header in headers] for headers in expected]
    assert columns["headers"].to_pylist() == rows
    assert columns.cast(PLAIN_SCHEMA)["headers"].to_pylist() == rows
    faults: list[WireError] = []
    of_batches = [row for batch in field for row in batch.rows("t", 0, 0, faults)]
    assert ([list(row[6]) for row in of_batches], faults) == (expected, [])


def test_records_are_written_again_with_their_bytes() -> None:
    data = field_of(KEYS)
    assert b"".join(reencode(batch) for batch in RecordBatches(data)) == data
    (batch, _) = RecordBatches(field_of(KEYS))
    packed = reencode(batch, Compression.ZSTD)
    assert list(RecordBatches(packed).records()) == batch.records()


def test_strict_decoding_names_the_key() -> None:
    field = RecordBatches(field_of(KEYS), strict=True)
    for read_all in (lambda: list(field.records()), field.columns):
        with pytest.raises(InvalidText, match=r"batch\[0\]\.record\[1\]: the key of a header"):
            read_all()
    faults: list[WireError] = []
    assert [record.key for record in field.records(faults)] == [b"plain"]
    assert [fault.path for fault in faults] == ["batch[0].record[1]", "batch[1].record[0]"]


def test_an_invalid_key_of_a_corrupt_record_is_taken_back() -> None:
    """A batch after it has headers in the same rows."""
    builder = BatchBuilder()
    builder.append(None, b"good", 1, (("h", b""),))
    builder.append(None, b"bad", 1, ((LATIN, b""), ("last", b"four")))
    damaged = bytearray(builder.build())
    damaged[damaged.index(b"four") - 1] = 0x7F
    after = field_of(("a", "b"))
    faults: list[WireError] = []
    columns = RecordBatches(bytes(damaged) + after, check_crcs=False).columns(faults)
    assert len(faults) == 1
    rows = columns.to_arrow()["headers"].to_pylist()
    assert [[one["key"] for one in row] for row in rows] == [["h"], ["a"], ["b"], ["a", "b"]]
    assert {one["key_bytes"] for row in rows for one in row} == {None}


def test_a_segment_from_the_field() -> None:
    records = list(RecordBatches(SEGMENT.read_bytes()).records())
    assert [record.offset for record in records] == [0, 1, 2, 3, 4]
    assert records[1].headers == ((LATIN, b"x"),)
    assert (list(records[1].headers[0][0]), records[1].headers[0][0].raw) == (
        list("Stra\ufffde"),
        b"Stra\xdfe",
    )

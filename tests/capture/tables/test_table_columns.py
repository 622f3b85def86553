"""Compares `exchanges` and `records` built column by column, and tables read together, with the
rows of decoded messages, each table read alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafkawire.capture import tables
from kafkawire.capture.exchanges.exchanges import Ended
from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.frames.decoding import RawFrame
from kafkawire.capture.multifile import Traffic
from kafkawire.capture.tables.arrow.record_columns import RecordColumns
from kafkawire.capture.tables.arrow.schemas import batches
from kafkawire.capture.tables.context import Context
from kafkawire.capture.tables.extraction.blocks import FIELDS
from kafkawire.capture.tables.extraction.body_facts import body_facts_of
from kafkawire.capture.tables.extraction.record_batches import (
    CorruptRecords,
    RecordsField,
    batches_in,
)
from tests.capture import truth
from tests.conftest import missing
from tests.recordings import ANY_CAPTURE, variants

from . import decoded_rows

FILES = [truth.capture_of(path) for path in truth.captures()]
VARIANTS = variants(ANY_CAPTURE)
SETS = [[path] for path in [*FILES, *VARIANTS]] + [FILES[:5], FILES[5:]]
COLUMNAR = ("exchanges", "partitions", "records")


def named(files: Sequence[Path]) -> str:
    return files[0].name if len(files) == 1 else f"{len(files)} files"


def by_rows(files: Sequence[Path], name: str) -> pa.Table:
    """A table built of decoded messages, row by row."""
    table = tables.TABLES[name]
    context = Context(Traffic(list(files)))
    rows = decoded_rows.ROWS[name](context)
    found = list(batches(table.columns, rows, 512, context.name_topics))
    return pa.Table.from_batches(found, schema=table.schema)


def read_alone(files: Sequence[Path], name: str) -> pa.Table:
    found = list(tables.read(list(files), name))
    for batch in found:
        batch.validate(full=True)
        assert 0 < len(batch) <= tables.BATCH_ROWS
    return pa.Table.from_batches(found, schema=tables.TABLES[name].schema)


def read_together(
    files: Sequence[Path], names: Sequence[str], **options: Any
) -> dict[str, pa.Table]:
    found: dict[str, list[pa.RecordBatch]] = {name: [] for name in names}
    for name, batch in tables.read_tables(list(files), names, **options):
        found[name].append(batch)
    return {
        name: pa.Table.from_batches(each, schema=tables.TABLES[name].schema)
        for name, each in found.items()
    }


def differences(one: pa.Table, other: pa.Table) -> Iterator[tuple[int, str, Any, Any]]:
    if not one.equals(other):  # or strings that no program can compare: then the rows are
        pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
        for at, (mine, theirs) in enumerate(pairs):
            yield from (
                (at, key, mine[key], theirs[key]) for key in mine if mine[key] != theirs[key]
            )


@pytest.mark.parametrize("files", SETS, ids=named)
def test_columns_equal_rows_of_decoded_messages(files: list[Path]) -> None:
    both = read_together(files, COLUMNAR)
    for name in COLUMNAR:
        want = by_rows(files, name)
        assert list(differences(read_alone(files, name), want)) == []
        assert list(differences(both[name], want)) == []


@pytest.mark.parametrize("files", [*SETS[:6], *SETS[-2:]], ids=named)
def test_tables_read_together_equal_tables_read_alone(files: list[Path]) -> None:
    names = [*tables.TABLES, "records"]
    for name, found in read_together(files, names).items():
        assert list(differences(found, read_alone(files, name))) == [], name


def test_a_capture_is_read_once_if_topic_names_come_first() -> None:
    (file,) = (path for path in FILES if path.name.startswith("kcat-kf"))
    read: list[int] = []
    read_together([file], list(tables.TABLES), watch=lambda size, _: read.append(size))
    assert sum(read) == file.stat().st_size


def test_late_topic_names_are_looked_up_once_for_all_tables() -> None:
    """A tail of a capture whose names come behind their ids: two passes, for any tables."""
    (file,) = (path for path in FILES if path.name.startswith("ck-848"))
    want = {name: by_rows([file], name) for name in COLUMNAR}
    assert None not in want["records"].column("topic").to_pylist()
    read: list[int] = []
    small = read_together([file], COLUMNAR, batch_rows=1, watch=lambda size, _: read.append(size))
    for name in COLUMNAR:
        assert list(differences(small[name], want[name])) == []
    assert sum(read) in (file.stat().st_size, 2 * file.stat().st_size)


def test_an_unknown_table() -> None:
    with pytest.raises(KeyError, match="offsets"):
        tables.read_tables(FILES[0], ["exchanges", "offsets"])


# -- records of many fields at once


def fields_of(path: Path) -> list[RecordsField]:
    found: list[RecordsField] = []
    context = Context(Traffic([path]))
    for item in context.traffic.raw_frames():
        if not isinstance(item, Ended) and isinstance(item.item, RawFrame):
            row = item.item.decode()
            found += body_facts_of(row, context.names, FIELDS).fields
    return found


def one_by_one(fields: Iterable[RecordsField]) -> list[tuple[int, bytes | None]]:
    return [
        (record.offset, record.value)
        for field in fields
        for found in batches_in(field)
        if not isinstance(found, CorruptRecords)
        for record in found[1]
    ]


def at_once(fields: Iterable[RecordsField]) -> list[tuple[int, bytes | None]]:
    columns = RecordColumns(lambda: None)
    for field in fields:
        columns.fields.add(
            field, "a.pcap", 1, NO_TIME, 0, "10.0.0.1:5", "10.0.0.2:9092", "produce", None, 7
        )
    made = list(columns.batches())
    assert list(columns.batches()) == []
    for batch in made:
        batch.validate(full=True)
    rows = [row for batch in made for row in batch.to_pylist()]
    return [(row["offset"], row["value"]) for row in rows]


BROKEN = {
    "a wrong checksum": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "an unknown magic": lambda data: data[:16] + b"\x07" + data[17:],
    "a length of nothing": lambda data: data[:8] + bytes(4) + data[12:],
    "a cut batch": lambda data: data[:-3],
    "less than a header": lambda data: data[:9],
    "bytes behind the last batch": lambda data: data + b"\0\0\0\0\0\0\0\0\x7f",
}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("name", ["ck-txn", "fg-max-v0.11.0"])
def test_a_corrupt_field_among_valid_ones(name: str, what: str) -> None:
    found = [path for path in FILES if path.name == f"{name}.pcap"]
    if not found:
        missing(f"{name}.pcap, which is beside the repository,")
    fields = fields_of(found[0])[:12]
    assert len(fields) >= 4
    good = one_by_one(fields)
    assert at_once(fields) == good
    for at in (0, 2, len(fields) - 1):
        bad = list(fields)
        bad[at] = bad[at]._replace(data=BROKEN[what](bad[at].data))
        want = one_by_one(bad)
        assert at_once(bad) == want
        assert (len(want) < len(good)) == (what != "bytes behind the last batch")

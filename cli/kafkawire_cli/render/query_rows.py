"""Writes the rows of an SQL query as a table of text, JSON lines, CSV, Parquet or Arrow.

Rows are written as they come, in memory of one chunk. Text in tables and CSV is escaped, and
formulas in CSV; numbers are unchanged. A table that is too wide for the terminal has one line per
value.
"""

from __future__ import annotations

import csv
import json
import math
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from kafkawire.display import printable
from kafkawire_codegen.whole_files import whole_file

from .report import Section, print_sections
from .table_formats import arrow_writer, cell, parquet_writer, plain

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK: Final = 1000
"""Rows that are laid out together, under one heading."""

NARROW: Final = 8
"""Characters that a column has at least, before a table has one line per value."""

NULL: Final = "NULL"


class Shape(StrEnum):
    """Output formats of a query."""

    TABLE = "table"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"


SUFFIXES: Final = {f".{shape.value}": shape for shape in Shape if shape is not Shape.TABLE}
"""Extension of an output file -> its format."""

BINARY: Final = {Shape.PARQUET: parquet_writer, Shape.ARROW: arrow_writer}
"""Formats that need a file."""


def write(
    reader: pa.RecordBatchReader, shape: Shape, output: Path | None, *, private: bool = False
) -> None:
    """Write rows. output: a file, else standard output. private: only its owner may read it."""
    with ExitStack() as opened:
        if output is not None:
            output = opened.enter_context(whole_file(output, private=private))
        if shape in BINARY:
            add = opened.enter_context(BINARY[shape](output, reader.schema))
            for batch in reader:
                add(batch)
            return
        out = sys.stdout
        if output is not None:
            out = opened.enter_context(output.open("w", encoding="utf-8", newline=""))
        if shape is Shape.TABLE:
            _table(reader, out)
        elif shape is Shape.CSV:
            _csv(reader, out)
        else:
            _jsonl(reader, out)


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a batch; columns may have the same name."""
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _jsonl(reader: pa.RecordBatchReader, out: IO[str]) -> None:
    names = _unique(reader.schema.names)
    for batch in reader:
        for row in _rows(batch):
            obj = dict(zip(names, map(value_json, row), strict=True))
            out.write(json.dumps(obj, separators=(",", ":"), allow_nan=False) + "\n")
        out.flush()


def _unique(names: list[str]) -> list[str]:
    """Number the names that were there before: an object has each name once."""
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        count = seen[name] = seen.get(name, 0) + 1
        unique.append(name if count == 1 else f"{name}_{count}")
    return unique


def _csv(reader: pa.RecordBatchReader, out: IO[str]) -> None:
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow([cell(name) for name in reader.schema.names])
    for batch in reader:
        for row in _rows(batch):
            lines.writerow([_cell(one) for one in row])


def _cell(value: Any) -> Any:
    """Convert a value for CSV; bytes are text, or hexadecimal where they are not UTF-8."""
    return cell(value_text(value) if isinstance(value, bytes) else value_json(value))


def _table(reader: pa.RecordBatchReader, out: IO[str]) -> None:
    head = tuple(
        f">{printable(name)}" if _is_number(field.type) else printable(name)
        for name, field in zip(reader.schema.names, reader.schema, strict=True)
    )
    first = True
    for rows in _chunks(reader):
        texts = [tuple(map(value_text, row)) for row in rows]
        if not first:
            out.write("\n")
        first = False
        if out is sys.stdout and out.isatty() and _is_too_wide(len(head)):
            _write_records(reader.schema.names, texts, out)
        elif out is sys.stdout:
            print_sections([Section("", head, texts)])
        else:
            _write_lines(head, texts, out)
    if first:
        out.write("No rows.\n")
    out.flush()


def _chunks(reader: pa.RecordBatchReader) -> Iterator[list[tuple[Any, ...]]]:
    held: list[tuple[Any, ...]] = []
    for batch in reader:
        for at in range(0, len(batch), CHUNK):
            held += _rows(batch.slice(at, CHUNK))
            if len(held) >= CHUNK:
                yield held
                held = []
    if held:
        yield held


def _is_number(type: pa.DataType) -> bool:
    import pyarrow as pa

    types = pa.types
    return bool(types.is_integer(type) or types.is_floating(type) or types.is_decimal(type))


def _is_too_wide(columns: int) -> bool:
    return columns * (NARROW + 2) > shutil.get_terminal_size().columns


def _write_records(names: list[str], rows: list[tuple[str, ...]], out: IO[str]) -> None:
    """Write each row as lines of a name and a value."""
    width = max(map(len, map(printable, names)))
    room = max(shutil.get_terminal_size().columns - width - 4, 20)
    for number, row in enumerate(rows):
        if number:
            out.write("\n")
        for name, text in zip(names, row, strict=True):
            shown = printable(text)
            parts = [shown[at : at + room] for at in range(0, len(shown), room)] or [""]
            for part, label in zip(parts, [printable(name)] + [""] * len(parts), strict=False):
                out.write(f"  {label:{width}}  {part}".rstrip() + "\n")


def _write_lines(head: tuple[str, ...], rows: list[tuple[str, ...]], out: IO[str]) -> None:
    for line in Section("", head, rows).text_lines():
        out.write(line.rstrip() + "\n")


# -- values


def value_json(value: Any) -> Any:
    """Convert a value of a query for JSON; numbers that JSON does not have are text."""
    if isinstance(value, dict):
        return {key: value_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple) and not hasattr(value, "nanoseconds"):
        return [value_json(one) for one in value]
    if isinstance(value, float | Decimal):
        return _number(value)
    plain_value = plain(value)
    if plain_value is None or isinstance(plain_value, bool | int | str):
        return plain_value
    return _text(plain_value)


def _number(value: float | Decimal) -> int | float | str:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return int(value) if value == value.to_integral_value() else float(value)


def _text(value: Any) -> str:
    """Format a date, a time or an interval (pyarrow's MonthDayNano)."""
    if isinstance(value, date | time):
        return value.isoformat()
    if hasattr(value, "nanoseconds"):
        return f"{value.months} months {value.days} days {value.nanoseconds / 1e9:g} s"
    return str(value)


def value_text(value: Any) -> str:
    """Format a value for a table."""
    if value is None:
        return NULL
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return f"0x{value.hex()}"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="microseconds").removesuffix("+00:00")
    if isinstance(value, float):
        return f"{value:.15g}"
    json_value = value_json(value)
    if isinstance(json_value, str):
        return json_value
    return json.dumps(json_value, separators=(",", ":"), ensure_ascii=False)

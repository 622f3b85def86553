"""Rows of log files as a person or a program reads them: JSON lines, a table, Parquet.

Law: every row says which file it is from; JSON lines and Parquet lose nothing.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Protocol

from ..pipes import make_private
from .contents import form
from .messages import printable, shortened

if TYPE_CHECKING:
    from kafkawire.log import LogFile, LogPart, RecordRow, Row

ROWS_AT_ONCE: Final = 8192
BYTES_AT_ONCE: Final = 1 << 25
"""Rows, and bytes of keys and values, collected before a Parquet row group is written."""

PLURAL: Final = {
    "RecordRow": "records",
    "OffsetIndexEntry": "offset-index",
    "TimeIndexEntry": "time-index",
    "AbortedTransaction": "aborted-transactions",
    "ProducerState": "producers",
    "PartitionOffset": "offsets",
    "LeaderEpoch": "leader-epochs",
    "Property": "properties",
}
"""Kind of row -> what goes into the name of its Parquet file, where there are several."""


class Shape(StrEnum):
    """Forms of output."""

    JSONL = "jsonl"
    TABLE = "table"
    PARQUET = "parquet"


class Sink(Protocol):
    """What takes rows."""

    def add(self, file: LogFile, row: Row) -> None:
        """Take one row."""

    def close(self) -> None:
        """Finish what was begun."""


class JsonLines:
    """One row, one line of JSON."""

    def __init__(self, out: IO[str], secrets: bool = False) -> None:
        self._out = out
        self._secrets = secrets

    def add(self, file: LogFile, row: Row) -> None:
        made = json_row(file, row, self._secrets)
        self._out.write(json.dumps(made, separators=(",", ":"), allow_nan=False) + "\n")

    def close(self) -> None:
        self._out.flush()


class Table:
    """Lines for the eye, under the name of their file."""

    def __init__(self, out: IO[str], secrets: bool = False) -> None:
        self._out = out
        self._secrets = secrets
        self._file: Path | None = None

    def add(self, file: LogFile, row: Row) -> None:
        if file.path != self._file:
            blank = "" if self._file is None else "\n"
            self._file = file.path
            self._out.write(f"{blank}{printable(str(file.path))}  {file.kind}\n{heading(row)}\n")
        self._out.write(printable(line(row, self._secrets)) + "\n")

    def close(self) -> None:
        self._out.flush()


class Parquet:
    """Row groups in a file for each kind of row.

    With one kind of row, it is the file named; with several, `dump.parquet` stands for
    `dump.records.parquet`, `dump.offset-index.parquet` and so on. secrets: whether they are shown;
    then only the owner may read the files.
    """

    def __init__(self, out: Path, kinds: set[type[Row]], secrets: bool = False) -> None:
        import pyarrow.parquet as pq

        from kafkawire.log import arrow

        self._writers: dict[type[Row], Any] = {}
        self._waiting: dict[type[Row], list[tuple[str, Row]]] = {kind: [] for kind in kinds}
        self._bytes = 0
        self._secrets = secrets
        for kind in sorted(kinds, key=lambda kind: kind.__name__):
            name = out.name
            if len(kinds) > 1:
                name = f"{out.stem}.{PLURAL[kind.__name__]}{out.suffix}"
            path = out.with_name(name)
            if secrets:
                make_private(path)
            self._writers[kind] = pq.ParquetWriter(path, arrow.schema(kind))

    def add(self, file: LogFile, row: Row) -> None:
        waiting = self._waiting[type(row)]
        waiting.append((name_of(file), row))
        for data in (getattr(row, "key", None), getattr(row, "value", None)):
            self._bytes += len(data or "")
        if len(waiting) >= ROWS_AT_ONCE or self._bytes >= BYTES_AT_ONCE:
            self._flush()

    def close(self) -> None:
        self._flush()
        for writer in self._writers.values():
            writer.close()

    def _flush(self) -> None:
        from kafkawire.log import arrow

        for kind, rows in self._waiting.items():
            if rows:
                self._writers[kind].write_batch(
                    arrow.record_batch(kind, rows, secrets=self._secrets)
                )
                rows.clear()
        self._bytes = 0


# -- one row


def name_of(file: LogFile) -> str:
    """Write a file's path; bytes of it that are not UTF-8 are escaped."""
    return os.fsencode(file.path).decode("utf-8", "backslashreplace")


def json_row(file: LogFile, row: Row, secrets: bool = False) -> dict[str, Any]:
    """Make the JSON form of a row: keys and values as messages, text or hex, whichever they are."""
    from kafkawire.log import RecordRow

    made: dict[str, Any] = {"file": name_of(file), "kind": file.kind.value} | row._asdict()
    if isinstance(row, RecordRow):
        key, value = made.pop("decoded") or (None, None)
        made["key"] = content(row.key, key, secrets)
        made["value"] = content(row.value, value, secrets)
        made["headers"] = [[name, form(data, redact=False)] for name, data in row.headers]
    return made


def content(data: bytes | None, part: LogPart | None, secrets: bool) -> Any:
    """Show a key or value: the message it is, or else what `form` makes of it."""
    return form(data, redact=False) if part is None else part.to_json(secrets=secrets)


def heading(row: Row) -> str:
    """The line above a file's rows."""
    from kafkawire.log import RecordRow

    if isinstance(row, RecordRow):
        return (
            f"{'position':>10} {'offset':>10} {'time':23} {'codec':6} {'producer':>14} "
            "key and value"
        )
    return "  ".join(f"{name.replace('_', ' '):>{width(name)}}" for name in row._fields)


def width(name: str) -> int:
    """Say how wide the column of an entry's field is: an offset may have 19 digits."""
    return max(12, len(name)) if name not in ("entry", "line") else 8


def line(row: Row, secrets: bool = False) -> str:
    """Write a row as one line of the table."""
    from kafkawire.log import RecordRow

    if isinstance(row, RecordRow):
        return record_line(row, secrets)
    return "  ".join(f"{value!s:>{width(name)}}" for name, value in row._asdict().items())


def record_line(row: RecordRow, secrets: bool = False) -> str:
    """Write a record as one line: `!` marks a batch whose checksum is wrong."""
    producer = ""
    if row.producer_id >= 0:
        producer = f"{row.producer_id}/{row.producer_epoch}/{row.sequence}"
    key, value = row.decoded or (None, None)
    # a control record's key is its type; metadata records have none
    hidden = row.control is not None or (row.key is None and value is not None)
    said = [
        f"{row.position:>10}{'!' if row.crc_valid is False else ' '}{row.offset:>10}",
        f"{time_text(row.timestamp):23} {row.compression:6} {producer:>14}",
        "txn" if row.transactional else "",
        row.control or "",
        "" if hidden else f"{brief(row.key, key, secrets)} ->",
        brief(row.value, value, secrets),
        " ".join(f"{name}={brief(data, None, secrets)}" for name, data in row.headers),
    ]
    return " ".join(word for word in said if word)


def brief(data: bytes | None, part: LogPart | None, secrets: bool) -> str:
    """Show a key or value in a few words."""
    if data is None:
        return "null"
    if part is None:
        return shortened(_plain(form(data, redact=False)))
    made = part.to_json(secrets=secrets)
    text = json.dumps(made.get("message", made), ensure_ascii=False)
    return shortened(f"{part.name or ''}{text}")


def _plain(shown: dict[str, Any]) -> str:
    kind, value = next(iter(shown.items()))
    if kind == "json":
        return json.dumps(value, ensure_ascii=False)
    return str(value) if kind == "text" else f"0x{value}"


def time_text(timestamp: int) -> str:
    """Write milliseconds as ISO 8601 in UTC; the number itself where no calendar has it."""
    if timestamp < 0:
        return "" if timestamp == -1 else str(timestamp)
    try:
        moment = datetime.fromtimestamp(timestamp // 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(timestamp)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{timestamp % 1000:03d}"

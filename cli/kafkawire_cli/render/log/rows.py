"""Writes rows of log files as JSON lines, a table of text, or Parquet.

Every row names its file; JSON lines and Parquet are lossless.
"""

from __future__ import annotations

import json
import os
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Protocol

from kafkawire.display import printable

from ..contents import form, header_form
from .lines import heading, line

if TYPE_CHECKING:
    from kafkawire.log import LogFile, LogPart, Row
    from kafkawire.values.record_values import RecordValues

ROWS_AT_ONCE: Final = 8192
BYTES_AT_ONCE: Final = 1 << 25
"""Rows, and bytes of keys and values, per Parquet row group."""

PLURAL: Final = {
    "RecordRow": "records",
    "BatchRow": "batches",
    "OffsetIndexEntry": "offset-index",
    "TimeIndexEntry": "time-index",
    "AbortedTransaction": "aborted-transactions",
    "ProducerState": "producers",
    "PartitionOffset": "offsets",
    "LeaderEpoch": "leader-epochs",
    "Property": "properties",
}
"""Kind of row -> its part of the Parquet file name, if there are several files."""


class Shape(StrEnum):
    """Output formats."""

    JSONL = "jsonl"
    TABLE = "table"
    PARQUET = "parquet"


class Sink(Protocol):
    """A writer of rows."""

    def add(self, file: LogFile, row: Row) -> None:
        """Write one row."""

    def close(self) -> None:
        """Write buffered rows and finish the output."""


class JsonLines:
    """Writes one line of JSON per row."""

    def __init__(
        self, out: IO[str], secrets: bool = False, values: RecordValues | None = None
    ) -> None:
        self._out = out
        self._secrets = secrets
        self._values = values

    def add(self, file: LogFile, row: Row) -> None:
        obj = json_row(file, row, self._secrets) | _decoded(file, row, self._values)
        self._out.write(json.dumps(obj, separators=(",", ":"), allow_nan=False) + "\n")

    def close(self) -> None:
        self._out.flush()


class Table:
    """Writes a table of text per file."""

    def __init__(
        self, out: IO[str], secrets: bool = False, values: RecordValues | None = None
    ) -> None:
        self._out = out
        self._secrets = secrets
        self._values = values
        self._file: Path | None = None

    def add(self, file: LogFile, row: Row) -> None:
        if file.path != self._file:
            blank = "" if self._file is None else "\n"
            self._file = file.path
            self._out.write(f"{blank}{printable(str(file.path))}  {file.kind}\n{heading(row)}\n")
        decoded = _decoded(file, row, self._values)
        self._out.write(printable(line(row, self._secrets, decoded)) + "\n")

    def close(self) -> None:
        self._out.flush()


def parquet_files(out: Path, kinds: set[type[Row]]) -> dict[type[Row], Path]:
    """Return the file of each kind of row.

    With several kinds, `dump.parquet` becomes `dump.records.parquet`, `dump.offset-index.parquet`
    and so on.
    """
    if len(kinds) == 1:
        return dict.fromkeys(kinds, out)
    return {
        kind: out.with_name(f"{out.stem}.{PLURAL[kind.__name__]}{out.suffix}")
        for kind in sorted(kinds, key=lambda kind: kind.__name__)
    }


class Parquet:
    """Writes one Parquet file per kind of row. secrets: whether secrets are shown."""

    def __init__(self, files: dict[type[Row], Path], secrets: bool = False) -> None:
        from kafkawire.capture.tables.arrow.importing import import_arrow

        import_arrow()

        import pyarrow.parquet as pq

        from kafkawire.log import arrow

        self._writers: dict[type[Row], Any] = {}
        self._buffered: dict[type[Row], list[tuple[str, Row]]] = {kind: [] for kind in files}
        self._bytes = 0
        self._secrets = secrets
        for kind, path in files.items():
            self._writers[kind] = pq.ParquetWriter(path, arrow.schema(kind))

    def add(self, file: LogFile, row: Row) -> None:
        buffered = self._buffered[type(row)]
        buffered.append((name_of(file), row))
        for data in (getattr(row, "key", None), getattr(row, "value", None)):
            self._bytes += len(data or "")
        if len(buffered) >= ROWS_AT_ONCE or self._bytes >= BYTES_AT_ONCE:
            self._flush()

    def close(self) -> None:
        self._flush()
        for writer in self._writers.values():
            writer.close()

    def _flush(self) -> None:
        from kafkawire.log import arrow

        for kind, rows in self._buffered.items():
            if rows:
                self._writers[kind].write_batch(
                    arrow.record_batch(kind, rows, secrets=self._secrets)
                )
                rows.clear()
        self._bytes = 0


# -- one row


def name_of(file: LogFile) -> str:
    """Return the path of a file; invalid UTF-8 is escaped."""
    return os.fsencode(file.path).decode("utf-8", "backslashreplace")


def json_row(file: LogFile, row: Row, secrets: bool = False) -> dict[str, Any]:
    """Return a row as JSON: keys and values as messages, JSON, text or hex, whichever fits."""
    from kafkawire.log import RecordRow

    fields: dict[str, Any] = {"file": name_of(file), "kind": file.kind.value} | row._asdict()
    if isinstance(row, RecordRow):
        key, value = fields.pop("decoded") or (None, None)
        fields["key"] = content(row.key, key, secrets)
        fields["value"] = content(row.value, value, secrets)
        fields["headers"] = [header_form(name, data) for name, data in row.headers]
    return fields


def _decoded(file: LogFile, row: Row, values: RecordValues | None) -> dict[str, Any]:
    """Return keyDecoded and valueDecoded of a record of a user's topic."""
    from kafkawire.log import RecordRow

    if values is None or not isinstance(row, RecordRow) or row.decoded is not None:
        return {}
    if row.control is not None or file.log is not None:
        return {}
    return values.members(file.topic, row.key, row.value, row.headers)


def content(data: bytes | None, part: LogPart | None, secrets: bool) -> Any:
    """Return a key or value as JSON: decoded if it is a known message."""
    return form(data, redact=False) if part is None else part.to_json(secrets=secrets)

"""Describes the tables in Markdown (`kafkawire.reports.tables.documentation` writes the page)."""

from __future__ import annotations

from typing import Final

from .columns import BOOL, Column, Columns, ListOf, StructOf, Type
from .tables import TABLES

INTRODUCTION: Final = """\
# Tables

A capture can be read as tables, with the same columns in Python, on the command line, in Parquet
and in Spark.

```python
from kafkawire.capture import tables

for batch in tables.read("fixtures/captures/ck-848.pcap", "exchanges"):
    print(batch.num_rows, batch.column("api_name"))
```

```sh
kafkawire decode trace*.pcap --table records -o records.parquet
kafkawire decode trace*.pcap --table exchanges --table records -o DIR
```

Several tables can be read in one pass: `tables.read_tables(source, ["exchanges", "records"])`
yields each batch with the name of its table, and the command writes one file per table,
`DIR/exchanges.parquet` and `DIR/records.parquet`. The file name extension sets the format:
`.parquet`, `.csv`, `.jsonl`, or `.arrow`, an Arrow IPC file compressed with lz4, which is the
fastest. Parquet files are compressed with zstd; `--compression snappy` takes about a tenth less CPU
time, for files of up to 1.6 times the size. In `-o 'a-{table}.csv'`, `{table}` is replaced by the
name of the table. Missing directories are created. In a directory, a run replaces its tables; it is
refused if other tables there are of other captures, options or versions: Parquet and Arrow files
have these in their metadata (key `kafkawire`, JSON). With `--strict` the exit code is 1 if anything
is not fully decoded; how much and where is on standard error. Without `-o`, one table is printed
as JSON lines. In CSV, nested columns are JSON strings; in CSV and JSON lines, binary values are
base64.

`--bodies FetchResponse` leaves the messages of one type in the table `messages`, with their bodies
as columns instead of JSON text ([Arrow schemas](arrow.md)).

CSV is made for spreadsheets: control and invisible characters are escaped (`\\x1b`), and a string
that begins with `=`, `+`, `-`, `@`, a tab or a CR is prefixed with `'`; columns of numbers stay
numbers. The other formats hold strings unchanged. Secrets are redacted unless `--show-secrets` is
given (see docs/capture.md); the files are then readable only by their owner (mode 0600).

Several files are read as one capture, in the order of their first packets: connections and messages
may span files. Topic ids are resolved to names from anywhere in the capture, before or after the
message; in a stream, only to names seen so far. Every column may be null. Lists have no null
elements.

The last tables, [absences](#absences), [deliveries](#deliveries), [findings](#findings),
[lag](#lag) and [load](#load), are those of reports: one pass over the whole capture collects
them, and their size grows with clients, groups and partitions, not with messages. They are for
[`kafkawire sql`](capture.md#sql), which also writes them as Parquet
(`kafkawire sql "FROM load" trace.pcap -o load.parquet`), and for notebooks
(`capture.findings.to_pandas()`); `decode --table` and Spark do not have them.
"""


def markdown() -> str:
    """Return the introduction, and the columns of the tables of messages."""
    sections = [section(name, table.description, table.columns) for name, table in TABLES.items()]
    return INTRODUCTION + "".join(sections)


def section(name: str, description: str, columns: Columns) -> str:
    """Return the section of a table."""
    heading = ["", f"## {name}", "", description, "", "| column | type | |", "| --- | --- | --- |"]
    return "\n".join([*heading, *map(_row, columns), ""])


def _row(column: Column) -> str:
    return f"| `{column.name}` | {type_text(column.type)} | {column.description} |"


def type_text(type: Type) -> str:
    """Return the name of a type in Spark SQL."""
    if isinstance(type, ListOf):
        return f"array of {type_text(type.element)}"
    if isinstance(type, StructOf):
        inner = ", ".join(f"{name} {type_text(each)}" for name, each in type.fields)
        return f"struct ({inner})"
    return NAMES.get(type, type)


NAMES: Final = {BOOL: "boolean"}
"""Types with another name in Spark SQL."""

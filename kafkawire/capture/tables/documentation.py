"""Writes docs/tables.md, the columns of all tables, to standard output.

python -m kafkawire.capture.tables.documentation
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .columns import BOOL, ListOf, StructOf, Type
from .tables import TABLES, Table

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
name of the table. Missing directories are created. Without `-o`, one table is printed as JSON
lines. In CSV, nested columns are JSON strings; in CSV and JSON lines, binary values are base64.

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
"""


def markdown() -> str:
    """Return the whole page."""
    return INTRODUCTION + "".join(_section(name, table) for name, table in TABLES.items())


def _section(name: str, table: Table) -> str:
    return "\n".join(
        [
            "",
            f"## {name}",
            "",
            table.description,
            "",
            "| column | type | |",
            "| --- | --- | --- |",
            *_rows(table),
            "",
        ]
    )


def _rows(table: Table) -> Iterator[str]:
    for column in table.columns:
        yield f"| `{column.name}` | {type_text(column.type)} | {column.description} |"


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

if __name__ == "__main__":
    print(markdown(), end="")

"""The columns of all tables as Markdown: `python -m kafkawire.capture.tables.documentation` prints
docs/tables.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from . import TABLES, Table

INTRODUCTION: Final = """\
# Tables

A capture as tables: the same columns from Python, the command line, Parquet and Spark.

```python
from kafkawire.capture import tables

for batch in tables.read("fixtures/captures/ck-848.pcap", "exchanges"):
    print(batch.num_rows, batch.column("api_name"))
```

```sh
kafkawire decode trace*.pcap --table records -o records.parquet
kafkawire decode trace*.pcap --table exchanges --table records -o DIR
```

Several tables take one pass: `tables.read_tables(source, ["exchanges", "records"])` gives batches
with the name of their table, and the command writes a file for each, `DIR/exchanges.parquet` and
`DIR/records.parquet`. The ending of a name says the format: `.parquet`, `.csv`, `.jsonl`, or
`.arrow`, which is Arrow's IPC file, with lz4, and takes least time; in `-o 'a-{table}.csv'`
the table's name takes the place of `{table}`; directories that do not exist are created. Without
`-o`, one table goes to standard output as JSON lines. In CSV nested columns are JSON texts; there
and in JSON lines bytes are base64.
CSV is made for spreadsheets: control and invisible characters of texts are escaped (`\\x1b`), and a
text that begins with `=`, `+`, `-`, `@`, a tab or a CR gets a `'` before it; columns of numbers
stay numbers. The other formats hold texts as they are. Secrets are hidden unless `--show-secrets`
asks for them (see docs/capture.md); then only the owner may read the files (mode 0600).

Several files are read as one capture, in the order of their first packets: connections and messages
may span them. Topics that messages call by id get the name that the capture tells anywhere, before
or after; of a stream, up to then. Every column may be null. Lists have no null elements.
"""


def markdown() -> str:
    """Write the whole page."""
    return INTRODUCTION + "".join(_section(name, table) for name, table in TABLES.items())


def _section(name: str, table: Table) -> str:
    return "\n".join(
        [
            "",
            f"## {name}",
            "",
            f"One row: {table.description[0].lower()}{table.description[1:]}",
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


def type_text(type: Any) -> str:
    """Name an Arrow type as Spark's SQL does."""
    if pa.types.is_list(type):
        return f"array of {type_text(type.value_type)}"
    if pa.types.is_struct(type):
        inner = ", ".join(f"{field.name} {type_text(field.type)}" for field in type)
        return f"struct ({inner})"
    return NAMES.get(str(type), str(type))


NAMES: Final = {"bool": "boolean", "timestamp[us, tz=UTC]": "timestamp"}
"""Types that go by another name."""

if __name__ == "__main__":
    print(markdown(), end="")

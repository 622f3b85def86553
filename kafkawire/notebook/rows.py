"""Rows as Arrow tables and data frames: those of a table of captures, and those of a query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import islice
from typing import Any

import pyarrow as pa

from ..extras import requires
from .html import MAX_ROWS, table_html


class ArrowRows(ABC):
    """Rows that can be converted."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The Arrow schema."""

    @abstractmethod
    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in record batches."""

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def to_pandas(self, **options: Any) -> Any:
        """Return a pandas DataFrame; options: those of `pyarrow.Table.to_pandas`.

        Raises MissingPackage.
        """
        optional("pandas", "notebook")
        return self.to_arrow().to_pandas(**options)

    def to_polars(self) -> Any:
        """Return a polars DataFrame; raises MissingPackage."""
        return optional("polars", "notebook").from_arrow(self.to_arrow())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield each row as a dictionary."""
        for batch in self.batches():
            yield from batch.to_pylist()

    def _first_rows(self) -> Iterator[Sequence[Any]]:
        for row in islice(self, MAX_ROWS + 1):
            yield list(row.values())


class Rows(ArrowRows):
    """The rows of a query."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema."""
        return self._table.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in record batches."""
        yield from self._table.to_batches()

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __repr__(self) -> str:
        return f"<Rows: {len(self)} rows, {', '.join(self.schema.names)}>"

    def _repr_html_(self) -> str:
        return table_html(self.schema.names, self._first_rows(), total=len(self))


class Table(ArrowRows):
    """A table of captures, read each time that its rows are used.

    name: that in `kafkawire.capture.tables.TABLES`.
    """

    def __init__(
        self,
        name: str,
        schema: pa.Schema,
        read: Callable[[str], Iterator[pa.RecordBatch]],
        sql: Callable[[str], Rows],
    ) -> None:
        self.name = name
        self._schema = schema
        self._read = read
        self._sql = sql

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema."""
        return self._schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the captures, and yield the rows in record batches."""
        return self._read(self.name)

    def sql(self, query: str) -> Rows:
        """Run a query, as `Capture.sql`; one that begins with WHERE, ORDER, ... is on this table.

        Raises QueryError, MissingPackage.
        """
        return self._sql(on_table(self.name, query))

    def __repr__(self) -> str:
        return f"<Table {self.name}: {', '.join(self.schema.names)}>"

    def _repr_html_(self) -> str:
        return table_html(self.schema.names, self._first_rows(), title=self.name)


def on_table(name: str, query: str) -> str:
    """Return a query; one that begins with WHERE, GROUP, ORDER or LIMIT is on a table."""
    first = query.split(maxsplit=1)[:1]
    is_rest = bool(first) and first[0].lower() in ("where", "group", "order", "limit")
    return f"FROM {name} {query}" if is_rest else query


def optional(package: str, extra: str) -> Any:
    """Import a package of an extra; raises MissingPackage."""
    with requires(package, extra):
        return import_module(package)

"""Runs SQL statements on captures: makes the tables that a statement needs, and calls DuckDB.

Rows of a table that one query reads once pass through it in batches; all other tables are
kept on disk, in a private temporary folder that is removed at the end. Statements can neither read
nor write other files, and cannot change that.
"""

# over 300 lines: one class for a database and what ends it

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from ..capture.tables import TABLES
from ..errors import QueryError
from ..extras import requires
from .failures import BEGIN, Place, one_line, place_of
from .interruption import interrupted_by_signals
from .needs import Needs, needs_of
from .reserved import hint, quoted
from .topic_values import TopicTable

if TYPE_CHECKING:
    import duckdb

Names = frozenset[str] | None
"""Names of columns that are needed; None for all."""

Read = Callable[[Sequence[str], Names], Iterator[tuple[str, pa.RecordBatch]]]
"""Reads tables of captures in one pass; each batch comes with its table's name. Columns that are
not needed may be null.
"""

MEMORY: Final = "1GB"
"""Memory of DuckDB, beyond which it writes to the temporary folder."""

SETTINGS: Final = (
    "SET TimeZone = 'UTC'",
    f"SET memory_limit = '{MEMORY}'",
    "SET python_enable_replacements = false",  # variables of Python as tables
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
"""Settings of a database; the last ones can no longer be changed."""

ONCE: Final = "standard input can be read only once"

RESERVED: Final = ("offset",)
"""Names of columns that are reserved words of DuckDB's SQL."""

HOME: Final = "capture.main"
"""The schema of the tables."""

INTERRUPTED: Final = "Query interrupted"
"""DuckDB's RuntimeError after a signal."""

BATCH: Final = "kafkawire_batch"
"""Name of the batch that is being inserted."""


class Database:
    """A database with the tables of captures.

    read: reads them. others: schemas of tables besides those of `kafkawire.capture.tables`, which
    it reads, too. repeatable: whether it can be called several times. keep: whether tables are
    kept for later statements; otherwise a query may read a capture again. Close it at the end, or
    use it as a context manager.
    """

    def __init__(
        self,
        read: Read,
        *,
        repeatable: bool = True,
        keep: bool = True,
        others: Mapping[str, pa.Schema] = MappingProxyType({}),
    ) -> None:
        self._read = read
        self._schemas = {name: table.schema for name, table in TABLES.items()} | dict(others)
        self._repeatable = repeatable
        self._keep = keep
        self._folder = TemporaryDirectory(prefix="kafkawire-sql-")
        self._filled: dict[str, Names] = {}
        self._stream: _Stream | None = None
        self._start = BEGIN
        self._result: pa.RecordBatchReader | None = None
        try:
            self._connection = _connected(Path(self._folder.name), self._schemas)
        except BaseException:
            self._folder.cleanup()
            raise

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the database."""
        self._finish()
        self._connection.close()
        self._folder.cleanup()

    def run(self, text: str, start: Place = BEGIN) -> pa.RecordBatchReader | None:
        """Run a statement, or several; return the rows of the last one, None if it has none.

        start: where the text begins in the input, whose places errors name. The rows are computed
        while they are read, until the next statement. Raises QueryError, also if one before the
        last is a query; what reading captures raises.
        """
        self._finish()
        self._start = start
        statements = self._parsed(text)
        if not statements:
            raise QueryError("no statement")
        self._check_rows_are_kept(statements)
        result = None
        for at, statement in enumerate(statements):
            result = self._run(statement, last=at == len(statements) - 1)
        return result

    def _check_rows_are_kept(self, statements: list[duckdb.Statement]) -> None:
        """Check that only the last statement has rows: those of others would be lost."""
        import duckdb

        for number, statement in enumerate(statements[:-1], 1):
            if statement.type == duckdb.StatementType.SELECT:
                raise QueryError(
                    f"statement {number} is a query whose rows would be lost: only the last "
                    "statement may be one"
                )

    @property
    def folder(self) -> Path:
        """The private temporary folder of the tables, which is removed at the end."""
        return Path(self._folder.name)

    def add(self, name: str, table: pa.Table | TopicTable) -> None:
        """Add a table that is in memory, or in files; an older one of that name is replaced.

        A table of captures with the same name stays `capture.main.NAME`.
        """
        self._finish()
        with self._failures():
            self._connection.register(name, table)

    def _parsed(self, text: str) -> list[duckdb.Statement]:
        """Parse statements; if that fails, with quotes around columns that are reserved words."""
        import duckdb

        try:
            return self._connection.extract_statements(text)
        except duckdb.Error as error:
            message = str(error).strip()
        repaired = quoted(text, RESERVED)
        if repaired != text:
            with suppress(duckdb.Error):
                return self._connection.extract_statements(repaired)
        place = place_of(message)
        where = -1 if place is None else place.offset(text)
        advice = hint(text, self._reserved_words(), where)
        raise QueryError(one_line(message, advice, self._start))

    def _reserved_words(self) -> set[str]:
        rows: Any = self._connection.execute(
            "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'"
        )
        return {name for (name,) in rows.fetchall()}

    def _run(self, parsed: duckdb.Statement, *, last: bool) -> pa.RecordBatchReader | None:
        import duckdb

        statement = parsed.query
        needs = self.needs(statement)
        columns = None if self._keep else needs.columns
        missing = [name for name in needs.tables if not self._has(name, columns)]
        with self._failures():
            if parsed.type == duckdb.StatementType.SELECT:
                self._check(statement)  # before captures are read
            if missing and last and needs.once and not self._keep:
                self._open_stream(needs)
            elif missing:
                self._make(missing, columns)
            relation = self._connection.sql(statement)
            is_query = duckdb.ExpectedResultType.QUERY_RESULT in parsed.expected_result_type
            if relation is None or not is_query or not last:
                return None
            self._result = reader = relation.to_arrow_reader()
            return pa.RecordBatchReader.from_batches(reader.schema, self._batches(reader))

    def _check(self, statement: str) -> None:
        """Check the names and types in a query, with empty tables."""
        import duckdb

        try:
            self._connection.sql(statement)
        except duckdb.Error:
            self._connection.execute(statement).fetchall()  # its error points to the place
            raise

    def _finish(self) -> None:
        """End the query whose rows are being read: DuckDB runs one at a time."""
        if self._result is not None:
            self._result.close()
            self._result = None
            self._connection.abort()
        if self._stream is not None:
            self._connection.unregister(self._stream.name)
            self._stream = None

    def needs(self, statement: str) -> Needs:
        """Find the tables and columns that a statement needs."""
        parsed: Any = self._connection.execute("SELECT json_serialize_sql(?)", [statement])
        [(tree,)] = parsed.fetchall()
        return needs_of(statement, tree, self._schemas)

    def _batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        while True:
            with self._failures():
                batch = next(reader, None)
            if batch is None:
                return
            yield batch

    def _open_stream(self, needs: Needs) -> None:
        """Let the one table of a query be read while the query runs."""
        (name,) = needs.tables
        schema = _columns(self._schemas[name], needs.columns)
        self._stream = _Stream(self._read, name, schema, needs.columns, self._repeatable)
        self._connection.register(name, self._stream)

    def _has(self, table: str, columns: Names) -> bool:
        """Whether a table was made with all of these columns."""
        if table not in self._filled:
            return False
        columns_filled = self._filled[table]
        return columns_filled is None or (columns is not None and columns <= columns_filled)

    def _make(self, names: list[str], columns: Names) -> None:
        """Make tables, in one pass over the captures."""
        if not self._repeatable:
            if self._filled:
                raise QueryError(ONCE)
            names = list(self._schemas) if self._keep else names
        connection = self._connection
        chosen = {name: _columns(self._schemas[name], columns).names for name in names}
        connection.begin()
        try:
            for name in names:
                if name in self._filled:
                    connection.execute(f"DELETE FROM {HOME}.{name}")
            for name, batch in self._read(names, columns):
                connection.register(BATCH, batch.select(chosen[name]))
                listed = ", ".join(f'"{one}"' for one in chosen[name])
                connection.execute(
                    f"INSERT INTO {HOME}.{name} ({listed}) SELECT {listed} FROM {BATCH}"
                )
                connection.unregister(BATCH)
        except BaseException:
            connection.rollback()
            raise
        connection.commit()
        self._filled |= dict.fromkeys(names, columns)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Convert errors of DuckDB; an error of reading captures is raised as it was.

        A signal ends the statement: SIGINT raises KeyboardInterrupt, another one SystemExit.
        """
        import duckdb

        numbers: list[int] = []
        try:
            with interrupted_by_signals(self._connection.interrupt) as numbers:
                yield
        except (duckdb.Error, pa.ArrowException, RuntimeError, OSError) as error:
            if self._stream is not None and self._stream.failure is not None:
                raise self._stream.failure from None
            if numbers or isinstance(error, duckdb.InterruptException) or str(error) == INTERRUPTED:
                raise _ended_by(numbers) from None
            if isinstance(error, duckdb.Error):
                raise QueryError(one_line(str(error).strip(), start=self._start)) from None
            raise


class _Stream:
    """A table as a stream of record batches, read anew each time that it is opened and read.

    failure: the exception that reading raised.
    """

    def __init__(
        self, read: Read, name: str, schema: pa.Schema, columns: Names, repeatable: bool
    ) -> None:
        self._schema = schema
        self._columns = columns
        self._read = read
        self.name = name
        self._repeatable = repeatable
        self._reads = 0
        self.failure: BaseException | None = None

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Open the table (Arrow's PyCapsule interface)."""
        reader = pa.RecordBatchReader.from_batches(self._schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        self._reads += 1
        try:
            if self._reads > 1 and not self._repeatable:
                raise QueryError(ONCE)
            for _, batch in self._read([self.name], self._columns):
                yield batch.select(self._schema.names)
        except GeneratorExit:
            raise
        except BaseException as error:
            self.failure = error
            raise


def _ended_by(numbers: list[int]) -> BaseException:
    """Return what the signals raise that ended a statement: DuckDB loses it."""
    ending = [number for number in numbers if number != signal.SIGINT]
    return SystemExit(128 + ending[0]) if ending else KeyboardInterrupt()


def _columns(schema: pa.Schema, columns: Names) -> pa.Schema:
    """Return the columns of a table that are needed, and at least one: count(*) needs rows."""
    if columns is None:
        return schema
    fields = [field for field in schema if field.name in columns]
    return pa.schema(fields or [schema.field(0)])


def _connected(folder: Path, schemas: Mapping[str, pa.Schema]) -> duckdb.DuckDBPyConnection:
    """Open a database in a folder. Raises MissingPackage; QueryError, as for a full disk."""
    with requires("duckdb", "sql"):
        import duckdb
    try:
        return _connect(folder, schemas)
    except duckdb.Error as error:
        raise QueryError(one_line(str(error).strip())) from None


def _connect(folder: Path, schemas: Mapping[str, pa.Schema]) -> duckdb.DuckDBPyConnection:
    """Open a database in a folder, with all tables, empty, and no access to anything else."""
    import duckdb

    connection = duckdb.connect(":memory:")
    quoted = str(folder).replace("'", "''")
    connection.execute(f"ATTACH '{quoted}/tables.duckdb' AS capture")
    connection.execute("USE capture")
    connection.execute(f"SET temp_directory = '{quoted}'")
    for name, schema in schemas.items():
        connection.register(BATCH, schema.empty_table())
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {BATCH}")
        connection.unregister(BATCH)
    for setting in SETTINGS:
        connection.execute(setting)
    return connection

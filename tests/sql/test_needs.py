"""Which tables and columns a statement needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire.capture import tables
from kafkawire.errors import QueryError
from kafkawire.sql import Database, Names, Statements
from tests.conftest import FIXTURES

CAPTURE = FIXTURES / "captures" / "ck-txn.pcap"


class Reads:
    """Reads a capture, and notes each pass over it."""

    def __init__(self) -> None:
        self.passes: list[list[str]] = []

    def __call__(
        self, names: Sequence[str], columns: Names
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        self.passes.append(list(names))
        bodies = columns is None or "body" in columns
        return tables.read_tables(CAPTURE, names, bodies=bodies)


ALL = None
NEEDS: list[tuple[str, tuple[str, ...], set[str] | None]] = [
    ("SELECT api_name, max(latency_ns) FROM exchanges GROUP BY 1", ("exchanges",),
     {"api_name", "latency_ns"}),
    ("SELECT count(*) FROM Exchanges", ("exchanges",), set()),
    ("SELECT * FROM records", ("records",), ALL),
    ("FROM records", ("records",), ALL),
    ("SELECT e FROM exchanges e", ("exchanges",), ALL),
    ("SELECT exchanges FROM exchanges", ("exchanges",), ALL),
    ("SELECT #2 FROM exchanges", ("exchanges",), ALL),
    ("SELECT b FROM exchanges AS e(a, b)", ("exchanges",), ALL),
    ("SELECT count(*) FROM (SELECT DISTINCT * FROM exchanges)", ("exchanges",), ALL),
    ("SELECT 1 FROM exchanges NATURAL JOIN messages", ("exchanges", "messages"), ALL),
    ("SELECT 1 FROM exchanges JOIN messages USING (client_id)", ("exchanges", "messages"),
     {"client_id"}),
    ("SELECT 1 FROM exchanges WHERE packet IN (SELECT m.packet FROM messages m)",
     ("exchanges", "messages"), {"packet", "m"}),
    ("WITH q AS (SELECT packet FROM problems) SELECT packet FROM q", ("problems",), {"packet"}),
    ("SELECT list_filter(topics, lambda t: t = client_id) FROM exchanges", ("exchanges",),
     {"topics", "t", "client_id"}),
    ("SELECT count(*) FROM query_table('records')", ("records",), ALL),
    ("SELECT sum(n) FROM (SELECT count(*) n FROM main.records)", ("records",), {"n"}),
    ("SELECT count FROM histogram('exchanges', api_key)", ("exchanges",), ALL),
    ("SELECT count(u) FROM exchanges, unnest(topics) AS t(u)", ("exchanges",), ALL),
    ("SELECT count(*) FROM exchanges, range(2)", ("exchanges",), set()),
    ("SUMMARIZE connections", ("connections",), ALL),
    ("PIVOT exchanges ON api_name USING count(*)", ("exchanges",), ALL),
    ("CREATE VIEW v AS SELECT packet FROM problems", ("problems",), ALL),
    ("DESCRIBE exchanges", (), ALL),
    ("SELECT 'records'", (), set()),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "names", "columns"), NEEDS)
def test_needs(statement: str, names: tuple[str, ...], columns: set[str] | None) -> None:
    with Database(Reads()) as database:
        found = database.needs(statement)
    assert found.tables == names
    if names:
        assert found.columns == columns


@pytest.mark.parametrize("statement", [each[0] for each in NEEDS])
def test_rows_are_the_same_with_and_without_all_columns(statement: str) -> None:
    found = []
    for keep in (False, True):
        with Database(Reads(), keep=keep) as database:
            result = database.run(statement)
            rows = [] if result is None else result.read_all().to_pylist()
            found.append(sorted(map(str, rows)))
    assert found[0] == found[1]
    assert found[0] or "VIEW" in statement or "NATURAL" in statement


def test_a_qualified_table_is_not_empty() -> None:
    for name in ("main.records", "capture.records", "capture.main.records", "RECORDS", '"records"'):
        with Database(Reads(), keep=False) as database:
            result = database.run(f"SELECT count(*) n FROM {name}")
            assert result is not None
            assert result.read_all().to_pylist() == [{"n": 10}]


def test_a_stream_has_only_the_columns_that_a_query_needs() -> None:
    reads = Reads()
    with Database(reads, keep=False) as database:
        result = database.run("SELECT packet, client FROM exchanges")
        assert result is not None
        assert database._stream is not None
        assert database._stream._schema.names == ["packet", "client"]
        assert result.read_all().num_rows == 25
    assert reads.passes == [["exchanges"]]


def test_other_tables_are_made_with_the_columns_that_a_query_needs() -> None:
    reads = Reads()
    both = "SELECT count(e.client_id), count({}) FROM exchanges e JOIN messages m USING (packet)"
    with Database(reads, keep=False) as database:
        for column in ("m.length", "m.packet", "m.body"):
            database.run(both.format(column))
        database._finish()
        filled = database._connection.execute(
            "SELECT count(packet), count(api_name), count(client_id), count(request_bytes) "
            "FROM exchanges"
        ).fetchall()
    assert filled == [(25, 0, 25, 0)]
    assert (
        reads.passes == [["exchanges", "messages"]] * 2
    )  # the second has the columns of the first


def test_bodies_are_made_only_if_they_are_needed() -> None:
    without = "SELECT count(DISTINCT packet) n, min(length) l, max(status) s FROM messages"
    with Database(Reads(), keep=False) as database:
        found = database.run(without)
        assert found is not None
        rows = found.read_all().to_pylist()
    whole = [row for batch in tables.read(CAPTURE, "messages") for row in batch.to_pylist()]
    assert rows == [
        {
            "n": len({row["packet"] for row in whole}),
            "l": min(row["length"] for row in whole),
            "s": max(row["status"] for row in whole),
        }
    ]
    for name, batch in tables.read_tables(CAPTURE, ["messages"], bodies=False):
        assert name == "messages"
        assert batch.column("body").null_count == len(batch)
    (first, *_) = tables.read_tables(CAPTURE, ["messages", "problems"], bodies=False)
    assert first[1].column("body").null_count < len(first[1])


def test_kept_tables_are_read_once_and_only_when_needed() -> None:
    reads = Reads()
    with Database(reads) as database:
        for statement in (
            "SHOW TABLES",
            "DESCRIBE records",
            "SELECT count(*) FROM exchanges e JOIN records r ON e.packet = r.packet",
            "SELECT count(*) FROM records",
            "CREATE VIEW slow AS SELECT * FROM exchanges",
            "SELECT count(*) FROM slow",
        ):
            database.run(statement)
    assert reads.passes == [["exchanges", "records"]]


@pytest.mark.parametrize("keep", [False, True])
def test_a_wrong_name_is_found_before_captures_are_read(keep: bool) -> None:
    reads = Reads()
    with Database(reads, keep=keep) as database, pytest.raises(QueryError, match="apiname"):
        database.run("SELECT apiname FROM exchanges")
    assert reads.passes == []


def test_a_stream_that_can_be_read_once_is_read_once() -> None:
    reads = Reads()
    with Database(reads, repeatable=False) as database:
        for name in tables.TABLES:
            database.run(f"SELECT count(*) FROM {name}")
    assert reads.passes == [list(tables.TABLES)]


class BrokenReads:
    """Fails after the first batch."""

    def __call__(
        self, names: Sequence[str], columns: Names
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        assert columns in (None, {"packet"})
        yield next(tables.read_tables(CAPTURE, names, batch_rows=1))
        raise OSError(5, "Input/output error", "trace.pcap")


@pytest.mark.parametrize("keep", [False, True])
def test_an_error_of_reading_is_raised_as_it_was(keep: bool) -> None:
    def rows(database: Database) -> None:
        result = database.run("SELECT packet FROM exchanges")
        assert result is not None
        result.read_all()

    with (
        Database(BrokenReads(), keep=keep) as database,
        pytest.raises(OSError, match=r"trace\.pcap"),
    ):
        rows(database)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM '{file}'",
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM glob('{file}')",
        "COPY exchanges TO '{file}'",
        "ATTACH '{file}' AS other",
        "EXPORT DATABASE '{file}'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET temp_directory = '{file}'",
        "SELECT * FROM CAPTURE_FILE",
    ],
)
def test_statements_reach_no_files(statement: str, tmp_path: object) -> None:
    CAPTURE_FILE = pa.table({"a": [1]})  # noqa: F841 - DuckDB would find the variable
    with Database(Reads()) as database, pytest.raises(QueryError):
        database.run(statement.format(file=f"{tmp_path}/out.csv"))


def test_the_folder_is_removed() -> None:
    with Database(Reads()) as database:
        folder = Path(database._folder.name)
        database.run("SELECT count(*) FROM exchanges")
    assert not folder.exists()


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("a; b;", ["a", "b"], ""),
        ("select ';'; x", ["select ';'"], " x"),
        ('select "a;""b" ; ', ['select "a;""b" '], " "),
        ("-- a; b\nc;", ["-- a; b\nc"], ""),
        ("/* ; */ ; ;", [], ""),
        ("select 'open; ", [], "select 'open; "),
        ("$$;$$;", ["$$;$$"], ""),
        ("$a$;$$;$a$;", ["$a$;$$;$a$"], ""),
    ],
)
def test_statements_end_at_semicolons(text: str, statements: list[str], rest: str) -> None:
    split = Statements()
    assert [one.text for one in split.add(text)] == statements
    assert (split.rest, split.size) == (rest, len(rest))


def test_statements_have_the_places_where_they_begin() -> None:
    split = Statements()
    assert split.add("a; bc;\n") == [("a", (1, 0)), ("bc", (1, 3))]
    assert split.add("\n") == []
    assert split.add("  d\n") == []
    assert split.add("e; ; -- f\n") == [("d\ne", (3, 2))]
    assert split.add("  g") == []
    assert split.last == ("-- f\n  g", (4, 5))


@pytest.mark.parametrize(
    ("text", "is_blank"),
    [
        (" \n", True),
        ("-- a", True),
        ("/* a */", True),
        ("/* a", False),
        ("''", False),
        ("a", False),
    ],
)
def test_comments_are_blank(text: str, is_blank: bool) -> None:
    split = Statements()
    split.add("x; ")
    assert split.is_blank
    split.add(text)
    assert split.is_blank is is_blank


@given(st.lists(st.sampled_from(["a", ";", "'", '"', "--", "/*", "*/", "$$", "$t$", " ", "\n"])))
def test_line_by_line_as_at_once(parts: list[str]) -> None:
    text = "".join(parts)
    whole, lines = Statements(), Statements()
    complete = [each for line in text.splitlines(keepends=True) for each in lines.add(line)]
    assert complete == whole.add(text)
    assert (lines.rest, lines.size, lines.is_blank) == (whole.rest, whole.size, whole.is_blank)

"""`kafkawire sql`: queries on captures, in every output format."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import parquet

from kafkawire.capture import tables
from tests.cli.reports import COMMAND, on_a_terminal, read_terminal, run, terminal
from tests.conftest import FIXTURES

CAPTURE = FIXTURES / "captures" / "ck-txn.pcap"
COUNTS = "SELECT api_name, count(*) n FROM exchanges GROUP BY 1 ORDER BY 1"


def wanted() -> dict[str, int]:
    found: dict[str, int] = {}
    for batch in tables.read(CAPTURE, "exchanges"):
        for name in batch.column("api_name").to_pylist():
            found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items()))


def output(*arguments: object, code: int = 0, stdin: bytes | None = None) -> str:
    result = run("sql", *arguments, stdin=stdin)
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


def test_every_format_has_the_same_rows(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in output(COUNTS, CAPTURE).splitlines()]
    assert {row["api_name"]: row["n"] for row in lines} == wanted()
    cells = list(csv.DictReader(io.StringIO(output(COUNTS, CAPTURE, "-f", "csv"))))
    assert {row["api_name"]: int(row["n"]) for row in cells} == wanted()
    file = tmp_path / "out.parquet"
    assert output(COUNTS, CAPTURE, "-o", file) == ""
    assert parquet.read_table(file).to_pylist() == lines
    text = output(COUNTS, CAPTURE, "-f", "table").splitlines()
    assert [line.split() for line in text[1:]] == [[name, str(n)] for name, n in wanted().items()]


def test_statements_from_a_pipe() -> None:
    text = b"CREATE VIEW slow AS FROM exchanges; -- ;\nSELECT count(*) n\nFROM slow;\nSELECT ';' s"
    found = [json.loads(line) for line in output(CAPTURE, stdin=text).splitlines()]
    assert found[-2:] == [{"n": 25}, {"s": ";"}]


def test_a_query_before_the_last_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "two.parquet"
    for to in ([], ["-o", file]):
        result = run("sql", "FROM exchanges; FROM records", CAPTURE, *to)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "statement 1 is a query" in result.stderr
    assert not file.exists()
    assert output("CREATE VIEW a AS SELECT 1 n; FROM a;", CAPTURE) == '{"n":1}\n'


def test_the_first_error_ends_a_pipe() -> None:
    text = b"SELECT 1 a; SELECT x; SELECT 2 b;"
    result = run("sql", CAPTURE, stdin=text)
    assert result.exit_code == 2
    assert result.stdout == '{"a":1}\n'
    assert result.stderr.startswith('kafkawire sql: Referenced column "x"')


def test_an_error_is_a_line_with_the_place() -> None:
    [line] = output("SELECT 1,\n  apiname FROM exchanges", CAPTURE, code=2).splitlines()
    assert line.endswith("(line 2, column 3)")


@pytest.mark.parametrize(
    ("query", "end"),
    [
        ("FROM exchangez", ' (line 1, column 6); did you mean "exchanges"?'),
        ("SELECT\n lenght(api_name) FROM exchanges", ' (line 2, column 2); did you mean "length"?'),
    ],
)
def test_a_suggestion_follows_the_place(query: str, end: str) -> None:
    [line] = output(query, CAPTURE, code=2).splitlines()
    assert line.endswith(f"does not exist{end}")


@pytest.mark.parametrize("column", ["key", "value"])
def test_a_field_of_values_that_are_not_decoded_says_how_to_get_it(column: str) -> None:
    [line] = output(f"SELECT {column}.amount FROM records", CAPTURE, code=2).splitlines()
    advised = f"{column}->>'amount'"
    assert f"of JSON: {advised}" in line
    assert "--topic NAME --values auto" in line
    assert output(f"SELECT {advised} AS amount FROM records LIMIT 1", CAPTURE).startswith("{")
    [line] = output("SELECT api_key.amount FROM exchanges", CAPTURE, code=2).splitlines()
    assert "JSON" not in line


@pytest.mark.parametrize(
    "query",
    [
        "SELECT max(offset) FROM records",
        "SELECT offset FROM records ORDER BY offset DESC LIMIT 1",
        "FROM records SELECT Offset WHERE offset >= 1 ORDER BY offset DESC LIMIT 1 OFFSET 0",
        "SELECT offset, 'offset' FROM records r ORDER BY r.offset DESC, offset LIMIT 1",
    ],
)
def test_a_column_whose_name_is_reserved_needs_no_quotes(query: str) -> None:
    [(name, value), *_] = json.loads(output(query, CAPTURE)).items()
    assert "offset" in name.lower()
    last = json.loads(output('SELECT max("offset") AS n FROM records', CAPTURE))
    assert value == last["n"]


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("SELECT api_name, order FROM exchanges", "order"),
        ("SELECT group FROM exchanges", "group"),
        ("SELECT FROM exchanges WHERE", None),
        ("SELECT api_name FRM exchanges", None),
    ],
)
def test_the_error_says_how_to_quote(query: str, word: str | None) -> None:
    [line] = output(query, CAPTURE, code=2).splitlines()
    assert ("reserved word" in line) == (word is not None)
    if word is not None:
        assert f'write "{word}"' in line


def test_csv_of_bytes_is_text() -> None:
    query = r"SELECT 'a,\x00'::BLOB AS a, '\xff'::BLOB AS b, '=1'::BLOB AS c, NULL::BLOB AS d"
    text = output(query, CAPTURE, "-f", "csv")
    assert list(csv.reader(io.StringIO(text)))[1] == ["a,\\x00", "0xff", "'=1", ""]


def test_a_capture_from_standard_input() -> None:
    query = "SELECT count(*) n FROM records, exchanges"
    assert output(query, "-", stdin=CAPTURE.read_bytes()) == '{"n":250}\n'


def test_reports_of_a_stream_are_read_alone() -> None:
    found = output("SELECT sum(requests) AS n FROM load", "-", stdin=CAPTURE.read_bytes())
    requests = output("SELECT count(request_bytes) AS n FROM exchanges", CAPTURE)
    assert found == requests
    query = "SELECT count(*) FROM load, exchanges"
    result = run("sql", query, "-", stdin=CAPTURE.read_bytes())
    assert result.exit_code == 2
    assert "can be read only once" in result.stderr
    assert int(json.loads(output(query, CAPTURE, "--format", "jsonl"))["count_star()"]) > 0


def test_files_that_are_not_captures(tmp_path: Path) -> None:
    other = tmp_path / "x.pcap"
    other.write_text("nothing")
    result = run("sql", COUNTS, CAPTURE, other)
    assert result.exit_code == 2
    assert "x.pcap: not a capture file" in result.stderr
    assert len(result.stdout.splitlines()) == len(wanted())
    assert "not a capture" in output(COUNTS, other, code=2)
    assert "No such file" in output("nosuch.pcap", code=2)


def test_the_query_comes_before_the_captures() -> None:
    result = run("sql", CAPTURE, "select 1")
    assert result.exit_code == 2
    assert "QUERY: the query comes before the captures" in result.stderr


@pytest.mark.parametrize("first", ["SELECT", "from", "With"])
def test_a_query_without_quotes_is_named(first: str) -> None:
    result = run("sql", first, "count(*)", "FROM", "exchanges", CAPTURE)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "QUERY: a query is one argument, in quotes" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((COUNTS,), "captures come after the query"),
        ((COUNTS, CAPTURE, "-f", "parquet"), "--output"),
        ((COUNTS, CAPTURE, "-o", "x.txt"), "unknown format"),
        ((CAPTURE, "-o", "x.csv"), "only allowed with a query"),
        (("-",), "standard input is the capture"),
    ],
)
def test_usage_errors(arguments: tuple[object, ...], error: str) -> None:
    assert error in output(*arguments, code=2)


HOSTILE = "SELECT '=1+1' AS a, chr(27) || '[2J' AS b, chr(27) AS \"=\u001b\""


def test_hostile_text_is_escaped() -> None:
    text = output(HOSTILE, CAPTURE, "-f", "csv")
    assert "\x1b" not in text
    assert text.splitlines() == ["a,b,'=\\x1b", "'=1+1,\\x1b[2J,\\x1b"]
    assert "\x1b" not in output(HOSTILE, CAPTURE, "-f", "table")
    shown = on_a_terminal("sql", HOSTILE, CAPTURE, columns=80, NO_COLOR="1")
    assert "\x1b[2J" not in shown
    assert "\\x1b[2J" in shown
    assert "\x1b" not in output("SELECT \x1b[2J", CAPTURE, code=2)


def test_a_wide_table_has_a_line_per_value_on_a_terminal() -> None:
    shown = on_a_terminal("sql", "FROM exchanges LIMIT 2", CAPTURE, columns=80)
    lines = shown.replace("\r\n", "\n").splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.split()[:1] == ["api_name"] for line in lines) == 2


def test_numbers_and_nested_values_are_json() -> None:
    query = (
        "SELECT sum(latency_ns)::hugeint s, 1.5::decimal(4, 2) d, 'nan'::double n, "
        "{'a': [1, NULL]} v, DATE '2026-01-02' t, 'x'::blob b, 1 a, 2 a FROM exchanges"
    )
    found = json.loads(output(query, CAPTURE))
    assert isinstance(found.pop("s"), int)
    assert found == {
        "d": 1.5, "n": "nan", "v": {"a": [1, None]}, "t": "2026-01-02", "b": "eA==", "a": 1,
        "a_2": 2,
    }  # fmt: skip


def test_secrets_are_hidden_and_records_redacted(tmp_path: Path) -> None:
    query = "SELECT decode(value) v FROM records LIMIT 1"
    assert json.loads(output(query, CAPTURE)) == {"v": "txn0-1"}
    assert json.loads(output(query, CAPTURE, "--redact"))["v"].startswith("sha256:")
    file = tmp_path / "out.csv"
    output(query, CAPTURE, "--show-secrets", "-o", file)
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_prompt() -> None:
    with terminal(80) as (ours, theirs):
        process = subprocess.Popen(
            [*COMMAND, "sql", str(CAPTURE)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "dumb"},
        )
        os.write(ours, b"SELECT x;\nSELECT count(*) AS n\nFROM exchanges;\nquit\n")
        os.close(theirs)
        shown = b"".join(read_terminal(ours)).decode()
        assert process.wait() == 0, shown
    assert 'Referenced column "x"' in shown
    assert "25" in shown
    assert "nanobind" not in shown


def at_prompt(typed: str) -> str:
    """Type lines at a prompt; return what the terminal shows."""
    with terminal(80) as (ours, theirs):
        process = subprocess.Popen(
            [*COMMAND, "sql", str(CAPTURE)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "dumb"},
        )
        os.write(ours, typed.encode())
        os.close(theirs)
        shown = b"".join(read_terminal(ours)).decode()
        assert process.wait() == 0, shown
    return shown


def test_the_prompt_names_lines_of_the_statement() -> None:
    shown = at_prompt("SELECT 1;\nSELCT 2;\nSELECT 3,\n y;\nSELECT 4; SELECT z;\nquit\n")
    places = re.findall(r"\(line \d+, column \d+\)", " ".join(shown.split()))
    assert places == ["(line 1, column 1)", "(line 2, column 2)", "(line 1, column 18)"]


@pytest.mark.parametrize("word", ["help", "HELP;", "?", ".help", "\\?", ".tables", "\\d"])
def test_the_prompt_has_help(word: str) -> None:
    shown = at_prompt(f"{word}\nquit\n")
    assert "help says more, quit or Ctrl-D" in shown
    assert "SHOW TABLES;" in shown
    assert "Ctrl-C discards" in shown
    assert "...>" not in shown


def test_a_line_within_a_statement_does_not_end_the_prompt() -> None:
    """It stays part of the statement, with a note."""
    shown = at_prompt("SELECT 'a\nquit\n' AS b, 3*7 AS c;\nquit\n")
    assert "This line belongs to the statement" in shown
    assert "21" in shown
    assert "This line" not in at_prompt("SELECT 'a\nb';\nquit\n")


def test_places_are_those_of_the_input() -> None:
    for text, place in (
        ("SELECT 1;\nSELECT 2;\nSELCT 3;\n", "(line 3, column 1)"),
        ("SELECT 1;\n\n-- a\nSELECT 2,\n x;", "(line 5, column 2)"),
        ("SELECT 1; SELECT x", "(line 1, column 18)"),
        ("SELECT 1;\n SELECT CAST(api_name AS INT) FROM exchanges", "(line 2, column 9)"),
    ):
        result = run("sql", CAPTURE, stdin=text.encode())
        assert result.exit_code == 2
        assert result.stderr.rstrip().endswith(place), result.stderr


def test_a_termination_removes_the_temporary_folder(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "sql", str(CAPTURE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"SELECT count(*) n FROM records r, exchanges e;\n")
    process.stdin.flush()
    assert process.stdout.readline() == b'{"n":250}\n'
    (folder,) = tmp_path.glob("kafkawire-sql-*")
    assert folder.stat().st_mode & 0o777 == 0o700
    process.terminate()
    process.communicate()
    assert process.returncode == 143
    assert not folder.exists()


def test_without_duckdb_the_extra_is_named() -> None:
    code = "import sys; sys.modules['duckdb'] = None\nfrom kafkawire_cli.main import main\nmain()"
    found = subprocess.run(
        [sys.executable, "-c", code, "sql", COUNTS, str(CAPTURE)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 2
    assert found.stderr == (
        "kafkawire sql: duckdb is not installed: pip install 'kafkawire[sql]'\n"
    )


ENDLESS = {
    "recursive": "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) FROM t "
    "SELECT count(*)",
    "product": "SELECT count(*) FROM range(10000000000) a, range(100000) b",
    "rows": "SELECT a.range FROM range(10000000000) a WHERE a.range < 0",
    "captures": "WITH RECURSIVE t(n) AS (SELECT count(*) FROM exchanges UNION ALL "
    "SELECT n + 1 FROM t) FROM t SELECT count(*)",
}


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("query", ENDLESS)
def test_a_signal_ends_a_query_that_does_not_end(
    query: str, ending: signal.Signals, tmp_path: Path
) -> None:
    for stdin in (None, subprocess.PIPE):  # a query, and statements
        statement = [ENDLESS[query]] if stdin is None else []
        command = [sys.executable, "-c", COMPUTING, "sql", *statement, str(CAPTURE)]
        with subprocess.Popen(
            command, stdin=stdin, stdout=subprocess.PIPE, env=os.environ | {"TMPDIR": str(tmp_path)}
        ) as process:
            if process.stdin is not None:
                process.stdin.write(ENDLESS[query].encode() + b";\n")
                process.stdin.flush()
            assert process.stdout is not None
            assert process.stdout.readline() == b"computing\n"
            process.send_signal(ending)
            process.wait(timeout=100)
        assert process.returncode == 128 + ending
        assert list(tmp_path.iterdir()) == []


COMPUTING = """
import signal, threading, time
from kafkawire.sql import database
from kafkawire_cli.main import main
signal.signal(signal.SIGINT, signal.default_int_handler)
finish = database.Database._check
def check(*given):
    finish(*given)
    threading.Timer(0.3, print, ["computing"], {"flush": True}).start()
database.Database._check = check
main()
"""
"""The command; it says when DuckDB computes."""


def test_a_full_temporary_folder_is_an_error() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, "sql", COUNTS, str(CAPTURE)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("kafkawire sql: ")
    assert "Traceback" not in done.stderr


FULL = """
import resource, signal, sys
sys.dont_write_bytecode = True  # Python 3.11 keeps a compiled module that was cut off
from kafkawire_cli.main import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
main()
"""


@pytest.mark.parametrize("text", [b"", b" \n;\n-- nothing\n"])
def test_no_query_at_all_is_an_error(text: bytes) -> None:
    result = run("sql", CAPTURE, stdin=text)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no query" in result.stderr

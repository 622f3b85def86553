"""`kafkawire sql`: queries captures in SQL."""

# over 300 lines: one verb, with its options and its prompt

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kafkawire.errors import MissingPackage, QueryError
from kafkawire_codegen.whole_files import ended_by_signals

from ... import pipes
from ...input.captures.query_tables import QueryTables, Shown
from ...input.captures.undecoded import COLUMNS, PROBLEMS, Undecoded
from ...input.inputs import InputError, MissingOption
from ...input.options import (
    ROW_FORMAT,
    BrokerOption,
    KeyLogOption,
    PortOption,
    RedactOption,
    SecretsOption,
    TunnelOption,
)
from ...input.panels import Panel
from ...input.sources import FileProblems, Known, check_output, known, readable, refuse, sources
from ...input.values import NO_TOPICS, VALUES, TopicOptions, topic_decoder
from ...notes import print_note
from ...render.query_rows import BINARY, SUFFIXES, Shape, write

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkawire.sql import Database, Statement

MAX_STATEMENT: Final = 1 << 20
"""Characters of a statement from standard input."""

QUIT: Final = frozenset({"exit", "quit", "\\q", ".quit", ".exit"})
"""What ends the prompt, besides the end of the input."""

HELP: Final = frozenset({"help", "?", ".help", "\\?", "\\h"})
PROMPT: Final = "Statements end with ; - help says more, quit or Ctrl-D ends the prompt."
HELP_TEXT: Final = """\
A statement ends with ; and may have several lines.
  SHOW TABLES;           the tables of the captures
  DESCRIBE exchanges;    the columns of a table
  FROM exchanges;        its rows; LIMIT 10 in front of ; shows ten
Ctrl-C discards the lines of a statement; quit, exit or Ctrl-D ends the prompt."""
CONTINUED: Final = "This line belongs to the statement: end it with ; or discard it with Ctrl-C."


def sql(  # noqa: PLR0913 - options of the verb
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="[QUERY] FILE...",
            help="A query, and capture files or directories; - for stdin. Without a query: "
            "a prompt, or statements from stdin.",
        ),
    ],
    shape: Annotated[Shape | None, ROW_FORMAT] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Output file: .jsonl, .csv, .parquet or .arrow.",
            rich_help_panel=Panel.OUTPUT,
        ),
    ] = None,
    port: PortOption = None,
    broker: BrokerOption = None,
    keylog: KeyLogOption = None,
    tunnel: TunnelOption = None,
    topics: TopicOptions = NO_TOPICS,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Fail if anything in the captures is not fully decoded; reads them once more.",
            rich_help_panel=Panel.CAPTURES,
        ),
    ] = False,
    redact: RedactOption = False,
    show_secrets: SecretsOption = False,
) -> None:
    """Query captures in SQL.

    \b
    kafkawire sql "SELECT api_name, count(*) FROM exchanges GROUP BY 1" *.pcap
    kafkawire sql "FROM records SELECT topic, value LIMIT 5" trace.pcap -o values.csv
    kafkawire sql "SELECT avg(value.amount) FROM orders" t.pcap --topic orders --values auto
    kafkawire sql trace.pcap        # a prompt: SHOW TABLES; DESCRIBE exchanges;
    kafkawire sql trace.pcap < queries.sql

    Tables: exchanges, messages, records, partitions, connections, group_events, problems; absences,
    deliveries, findings, lag, load (docs/tables.md). Only what a query needs is made. The SQL is
    DuckDB's, which needs `pip install 'kafkawire[sql]'`. Queries can neither read nor write files.

    Exit code 1: not everything is decoded (only with --strict); 2: usage error, a statement fails,
    or an input cannot be read.
    """
    (query, files), form = _query(arguments), _form(shape, to)
    if to is not None and query is None:
        raise typer.BadParameter("only allowed with a query", param_hint="--output")
    if query is None and files == ["-"]:
        raise MissingOption("standard input is the capture", param_hint="QUERY")
    if to is not None:
        check_output([to], [*files, keylog])
    from kafkawire.capture.tables.arrow.importing import import_arrow

    pipes.keep_memory()
    pipes.collect_at_exit()
    import_arrow()
    brokers = known(port, broker, keylog, tunnels=tunnel)
    shown = Shown(show_secrets, redact)
    refused = 0
    try:
        with (
            pipes.stop_at_closed_pipe(),
            ended_by_signals(),
            _database(files, brokers, shown, topics, keep=query is None, strict=strict) as opened,
            readable(files, to),
        ):
            database, refused = opened
            if query is not None:
                _show(database.run(query), form, to, private=show_secrets)
            else:
                _prompt(database, form)
    except (QueryError, MissingPackage) as error:
        print_note(str(error).expandtabs(4))
        raise typer.Exit(2) from None
    except InputError as error:
        refuse(error)
        raise typer.Exit(2) from None
    if refused:
        print_note("the result covers the other inputs")
        raise typer.Exit(2)


FIRST_WORDS: Final = frozenset(
    {"DESCRIBE", "EXPLAIN", "FROM", "SELECT", "SHOW", "SUMMARIZE", "WITH"}
)
"""Of statements."""


def _query(arguments: list[str]) -> tuple[str | None, list[str]]:
    """Split the arguments into the query and the files: a query is no file, and has a space."""
    first, *files = arguments
    if first.upper() in FIRST_WORDS and not os.path.exists(first):
        raise typer.BadParameter("a query is one argument, in quotes", param_hint="QUERY")
    if first == "-" or os.path.exists(first) or not any(map(str.isspace, first.strip())):
        if any(" " in each and not os.path.exists(each) for each in files):
            raise typer.BadParameter("the query comes before the captures", param_hint="QUERY")
        return None, arguments
    if not files:
        raise MissingOption("captures come after the query", param_hint="FILE...")
    return first, files


def _form(shape: Shape | None, to: Path | None) -> Shape:
    if shape is not None:
        if to is None and shape in BINARY:
            raise MissingOption(f"required for --format {shape.value}", param_hint="--output")
        return shape
    if to is None:
        return Shape.TABLE if sys.stdout.isatty() else Shape.JSONL
    suffix_format = SUFFIXES.get(to.suffix)
    if suffix_format is None:
        raise typer.BadParameter(
            f"unknown format {str(to)!r}: expected one of {', '.join(SUFFIXES)}",
            param_hint="--output",
        )
    return suffix_format


@contextmanager
def _database(
    files: list[str],
    brokers: Known,
    shown: Shown,
    topics: TopicOptions,
    *,
    keep: bool,
    strict: bool,
) -> Iterator[tuple[Database, int]]:
    """Open a database of captures, and count the files that are not; strict: as the option."""
    from kafkawire.reports.tables import report_schemas
    from kafkawire.sql import Database

    problems = FileProblems()
    captures_to_read, refused = sources(files)
    captures = QueryTables(captures_to_read, brokers, shown, problems.add)
    if strict and not captures.repeatable:
        raise typer.BadParameter("not allowed with standard input", param_hint="--strict")
    with Database(
        captures.read, repeatable=captures.repeatable, keep=keep, others=report_schemas()
    ) as database:
        all_values = _add_topics(database, captures, shown, topics)
        yield database, refused
    undecoded = Undecoded()
    for _, batch in captures.read([PROBLEMS] if strict else [], frozenset(COLUMNS)):
        undecoded.add(batch)
    problems.report()
    if not refused:
        undecoded.check()
        if strict and not all_values:  # a note has said so
            raise typer.Exit(1)


def _add_topics(
    database: Database, captures: QueryTables, shown: Shown, options: TopicOptions
) -> bool:
    """Add a table of each topic whose values are decoded; return whether all of them were."""
    decoder = topic_decoder(options)
    if decoder is None:
        return True
    if shown.redact or not captures.repeatable:
        reason = "--redact" if shown.redact else "standard input"
        raise typer.BadParameter(f"not allowed with {reason}", param_hint=VALUES)
    from kafkawire.sql.topic_values import NEEDED, TopicTable

    all_values = True
    for number, topic in enumerate(options.topics or []):
        batches = (batch for _, batch in captures.read(["records"], NEEDED))
        folder = database.folder / f"topic-{number}"
        folder.mkdir()
        table = TopicTable(batches, topic, decoder, folder)
        database.add(topic, table)
        all_values = all_values and not table.undecoded.errors
        for note in table.notes:
            print_note(f"topic {topic}: {note}")
    return all_values


def _show(
    reader: pa.RecordBatchReader | None,
    form: Shape,
    to: Path | None = None,
    *,
    private: bool = False,
) -> None:
    if reader is not None and reader.schema.names:
        write(reader, form, to, private=private)
        sys.stdout.flush()


def _prompt(database: Database, form: Shape) -> None:
    """Run statements as they are typed; the first error ends those of a pipe."""
    statement = None
    if not sys.stdin.isatty():
        for statement in _statements(prompts=False):
            _show(database.run(*statement), form)
        if statement is None:
            raise QueryError("no query, and no statements in standard input")
        return
    import readline  # noqa: F401 - `input` edits lines with it

    print(PROMPT, file=sys.stderr)
    for text, start in _statements(prompts=True):
        try:
            _show(database.run(text, start._replace(line=1)), form)
        except QueryError as error:
            print_note(str(error).expandtabs(4))
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)


def _statements(prompts: bool) -> Iterator[Statement]:
    """Yield statements from standard input, each ended by `;` or the end of the input."""
    from kafkawire.sql import Statements

    statements = Statements()
    while True:
        try:
            line = _line(prompts, "sql> " if statements.is_blank else "...> ")
        except KeyboardInterrupt:
            if not prompts:
                raise
            print()
            statements = Statements()
            continue
        if line is None:
            break
        word = line.strip().rstrip(";").lower()
        if statements.is_blank and word in QUIT:
            return
        if prompts and statements.is_blank and _is_command(word):
            print(HELP_TEXT, file=sys.stderr)
            continue
        if prompts and word in QUIT | HELP:
            print(CONTINUED, file=sys.stderr)
        yield from statements.add(line)
        if statements.size > MAX_STATEMENT:
            raise QueryError(f"a statement of more than {MAX_STATEMENT} characters")
    if not statements.is_blank:
        yield statements.last


def _is_command(word: str) -> bool:
    """Whether a line is not SQL, but what other prompts have for help and commands."""
    return word in HELP or word.startswith(("\\", "."))


def _line(prompts: bool, prompt: str) -> str | None:
    """Read a line; None at the end of the input."""
    if not prompts:
        return sys.stdin.readline(MAX_STATEMENT + 1) or None
    try:
        return input(prompt) + "\n"
    except EOFError:
        print()
        return None

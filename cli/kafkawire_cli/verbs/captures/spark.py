"""`kafkawire spark`: writes tables of captures as Parquet with Apache Spark."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from kafkawire.display import plural, printable
from kafkawire.extras import requires

from ... import pipes
from ...input.names import complete_table, unknown_table
from ...input.options import BrokerOption, KeyLogOption, PortOption, TunnelOption, pairs
from ...input.panels import Panel
from ...input.sources import INTERRUPTED, known
from ...input.values import NO_VALUES, ValueOptions, record_values
from ...notes import print_note

if TYPE_CHECKING:
    from kafkawire.spark.options import Options
    from kafkawire.spark.watch import Mode
    from kafkawire.values.record_values import RecordValues


def spark(  # noqa: PLR0913 - options of the verb
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="DIR", help="Directory or URI for the tables."),
    ],
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INPUT...",
            help="Captures, directories, glob patterns or URIs.",
            show_default=False,
        ),
    ] = None,
    watch: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Process captures as they arrive in DIR, until interrupted.",
            rich_help_panel=Panel.WATCH,
        ),
    ] = None,
    once: Annotated[
        bool,
        typer.Option(
            "--once",
            help="With --watch: process the complete captures, then exit.",
            rich_help_panel=Panel.WATCH,
        ),
    ] = False,
    end: Annotated[
        bool,
        typer.Option(
            "--end",
            help="With --watch: process all captures as complete, then exit.",
            rich_help_panel=Panel.WATCH,
        ),
    ] = False,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            metavar="NAME",
            help="Write this table: exchanges, records, ... (docs/tables.md); repeatable.",
            autocompletion=complete_table,
        ),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Spark master URL [default: local[*]].", show_default=False
        ),
    ] = None,
    port: PortOption = None,
    broker: BrokerOption = None,
    keylog: KeyLogOption = None,
    tunnel: TunnelOption = None,
    decoding: ValueOptions = NO_VALUES,
    check: Annotated[
        bool,
        typer.Option("--check", help="Compare the files of the tables in DIR with its manifest."),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Also write the table problems, and exit 1 if it has rows."),
    ] = False,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", metavar="NAME=VALUE", help="Reader option (docs/spark.md); repeatable."
        ),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(
            "--conf", metavar="NAME=VALUE", help="Spark configuration property; repeatable."
        ),
    ] = None,
) -> None:
    """Decode captures of any size into Parquet tables with Spark.

    \b
    kafkawire spark captures/ --output tables/ --table exchanges --table connections
    kafkawire spark s3://bucket/2026/*.pcap.gz -o s3://bucket/tables --master spark://host:7077
    kafkawire spark --watch /var/captures --output tables/
    kafkawire spark captures/ -o tables/ --table records --values auto --value-schemas schemas/
    kafkawire spark --check --output tables/
    """
    with requires("pyarrow", "spark"), requires("pyspark", "spark"):
        from kafkawire.spark.errors import SparkError, one_line_errors
        from kafkawire.spark.watch import Mode
    if [bool(files), watch is not None, check].count(True) != 1:
        raise typer.BadParameter("expected one of INPUT, --watch and --check")
    if ((once or end) and watch is None) or (once and end):
        raise typer.BadParameter("expected --watch with at most one of --once and --end")
    if check and decoding.first is not None:
        raise typer.BadParameter("not allowed with --check", param_hint=decoding.first)
    pipes.keep_memory()
    brokers = known(port, broker, keylog, tunnels=tunnel)
    arguments: dict[str, Any] = dict(pairs(option, "--option", "NAME=VALUE"))
    endpoints = (
        ("ports", brokers.ports),
        ("brokers", brokers.addresses),
        ("tunnels", brokers.tunnels),
    )
    arguments |= {name: values for name, values in endpoints if values}
    if keylog is not None:
        arguments["keylog"] = keylog
    wanted = output, table or [], arguments, record_values(decoding)
    start = Start(master, dict(pairs(conf, "--conf", "NAME=VALUE")))
    mode = Mode.ONCE if once else Mode.END if end else Mode.FOREVER
    try:
        with one_line_errors():
            if check:
                status = _check(output, arguments)
            elif watch is None:
                status = _job(start, files or [], *wanted, strict=strict)
            else:
                status = _watch(start, watch, *wanted, mode, strict=strict)
    except (SparkError, OSError, ValueError) as error:
        print_note(str(error))
        raise typer.Exit(2) from None
    except KeyboardInterrupt:  # Spark has cancelled its jobs
        print_note("interrupted")
        raise typer.Exit(INTERRUPTED) from None
    if status:
        raise typer.Exit(status)


class Start(NamedTuple):
    """How a session starts."""

    master: str | None
    settings: dict[str, str]

    def __call__(self) -> Any:
        """Start the session, or return the running one."""
        from kafkawire.spark import session

        return session(self.master, settings=self.settings)


def _job(
    start: Start,
    files: list[str],
    output: str,
    tables: list[str],
    arguments: dict[str, Any],
    values: RecordValues | None,
    *,
    strict: bool,
) -> int:
    """Check the request, start Spark and write the tables; return the exit code."""
    from kafkawire.spark import job
    from kafkawire.spark.describing import exit_code
    from kafkawire.spark.interrupts import interruptible
    from kafkawire.spark.options import parse

    options = parse(arguments)
    names = _tables(tables, options, strict=strict)
    job.check_request(files, output, names, options, values)
    job.require_inputs(files, options)
    session = start()
    manifest = interruptible(
        session, lambda: job.run(session, files, output, names, options, _log, values)
    )
    return exit_code(manifest, strict=strict)


def _watch(
    start: Start,
    directory: str,
    output: str,
    tables: list[str],
    arguments: dict[str, Any],
    values: RecordValues | None,
    mode: Mode,
    *,
    strict: bool,
) -> int:
    """Check the request, start Spark and watch; return the exit code."""
    from kafkawire.spark import watch as watching
    from kafkawire.spark.interrupts import interruptible
    from kafkawire.spark.options import parse

    rules, rest = watching.parse_watch_options(arguments)
    options = parse(rest)
    names = _tables(tables, options, strict=strict)
    watching.check_request(directory, output, names, options, values)
    session = start()
    with watching.sigterm_event() as stopped:
        return interruptible(
            session,
            lambda: watching.watch(
                session, directory, output, names, options, rules, mode=mode, strict=strict,
                clock=time.monotonic, sleep=stopped.wait, stop=stopped.is_set, log=_log,
                values=values,
            ),
            stopped.set,
        )  # fmt: skip


def _check(output: str, arguments: dict[str, Any]) -> int:
    """Print the differences of an output directory to its manifest; return the exit code."""
    from kafkawire.spark import check
    from kafkawire.spark.watch.checking import is_watch

    checked = check(output, **arguments)
    for each in checked.differences:
        typer.echo(printable(str(each)))
    if not checked.differences:
        record = "commit log" if is_watch(Path(output)) else "manifest"
        counts = f"{plural(checked.files, 'file')}, {plural(checked.rows, 'row')}"
        typer.echo(printable(f"{output}: {counts}, as in the {record}"))
    return 1 if checked.differences else 0


def _tables(names: list[str], options: Options, *, strict: bool) -> list[str]:
    from kafkawire.spark.job import known_tables

    try:
        return known_tables(names, options, strict=strict)
    except KeyError as error:
        raise unknown_table(str(error.args[0])) from None


def _log(text: str) -> None:
    print(printable(text), file=sys.stderr, flush=True)

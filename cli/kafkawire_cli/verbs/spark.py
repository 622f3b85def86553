"""`kafkawire spark`: writes tables of captures as Parquet with Apache Spark."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kafkawire.display import printable

from .. import pipes
from ..input.names import complete_table, unknown_table
from ..input.options import BrokerOption, KeyLogOption, PortOption, TunnelOption, pairs
from ..input.sources import known

if TYPE_CHECKING:
    from kafkawire.spark.options import Options


def spark(  # noqa: PLR0913 - options of the verb
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="DIR", help="Directory or URI for the tables."),
    ],
    given: Annotated[
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
            metavar="DIR", help="Process captures as they arrive in DIR, until interrupted."
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="With --watch: process the complete captures, then exit.")
    ] = False,
    end: Annotated[
        bool,
        typer.Option("--end", help="With --watch: process all captures as complete, then exit."),
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
    """
    try:
        from kafkawire.spark import job, session
        from kafkawire.spark import watch as watching
        from kafkawire.spark.errors import SparkError, one_line_errors
        from kafkawire.spark.options import parse
    except ImportError as error:
        typer.echo(f"kafkawire spark: {error}; pip install 'kafkawire[spark]'", err=True)
        raise typer.Exit(2) from None
    if bool(given) == (watch is not None) or ((once or end) and watch is None) or (once and end):
        raise typer.BadParameter("expected INPUT, or --watch with at most one of --once and --end")
    pipes.keep_memory()
    brokers = known(port, broker, keylog, tunnels=tunnel)
    arguments: dict[str, Any] = dict(pairs(option, "--option", "NAME=VALUE"))
    found = (
        ("ports", brokers.ports),
        ("brokers", brokers.addresses),
        ("tunnels", brokers.tunnels),
    )
    arguments |= {name: values for name, values in found if values}
    if keylog is not None:
        arguments["keylog"] = keylog
    mode = watching.Mode.ONCE if once else watching.Mode.END if end else watching.Mode.FOREVER
    try:
        parsed = (None, arguments) if watch is None else watching.parse_watch_options(arguments)
        rules, rest = parsed
        options = parse(rest)
        tables = _tables(table, options, strict=strict)
        settings = pairs(conf, "--conf", "NAME=VALUE")
        with one_line_errors():
            started = session(master, settings=settings)
            if watch is None:
                report = job.run(started, given or [], output, tables, options, _log)
                status = job.exit_code(report, strict=strict)
            else:
                with watching.sigterm_event() as stopped:
                    status = watching.watch(
                        started, watch, output, tables, options, rules, mode=mode, strict=strict,
                        clock=time.monotonic, sleep=stopped.wait, stop=stopped.is_set, log=_log,
                    )  # fmt: skip
    except (SparkError, OSError, ValueError) as error:
        typer.echo(printable(f"kafkawire spark: {error}"), err=True)
        raise typer.Exit(2) from None
    if status:
        raise typer.Exit(status)


def _tables(given: list[str] | None, options: Options, *, strict: bool) -> list[str]:
    from kafkawire.spark.job import known_tables

    try:
        return known_tables(given or [], options, strict=strict)
    except KeyError as error:
        raise unknown_table(str(error.args[0])) from None


def _log(text: str) -> None:
    print(printable(text), file=sys.stderr, flush=True)

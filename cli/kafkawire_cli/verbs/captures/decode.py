"""`kafkawire decode`: decodes every message in captures, frames or hex text."""

# over 300 lines: a third are the options of the verb

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kafkawire.display import plural

from ... import pipes
from ...input.entries import BareBody, Wanted, bare_body, capture_files, each_file, entries
from ...input.filters import (
    NOTHING_MATCHES,
    FilterOption,
    parse_filter,
    unmatched_by,
)
from ...input.inputs import Format, InputError, with_joined_hex
from ...input.names import complete_api, complete_captured, complete_table
from ...input.options import (
    ROW_FORMAT,
    BrokerOption,
    CompressionOption,
    KeyLogOption,
    PortOption,
    RedactOption,
    SecretsOption,
    TunnelOption,
)
from ...input.packages import RegistryOption, registry
from ...input.panels import Panel
from ...input.sources import INTERRUPTED, known, refuse, report_ignored
from ...input.values import NO_VALUES, ValueOptions, all_decoded, shown_values
from ...notes import print_note
from ...parallel.jobs import decoded, records_process, table_batches
from ...parallel.row_batches import DecodeOptions, decode_files, decode_rotated
from ...render.fitting import terminal_width
from ...render.message_table.legend import add_connection, legend, merge_connections
from ...render.message_table.style import Colour, Style, Times, heading, style
from ...render.messages import Shape, View
from ...render.table_columns import TableColumns, table_columns

if TYPE_CHECKING:
    from ...input.options import Compression
    from ...render.message_table.legend import Connections
    from ...render.messages import Printed


def decode(  # noqa: PLR0913 - options of the verb
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...", help="Captures, frames, hex text or directories; - for stdin."
        ),
    ],
    shape: Annotated[Shape | None, ROW_FORMAT] = None,
    input_format: Annotated[Format, typer.Option(help="Input format.")] = Format.AUTO,
    wanted: FilterOption = None,
    port: PortOption = None,
    broker: BrokerOption = None,
    keylog: KeyLogOption = None,
    tunnel: TunnelOption = None,
    package: RegistryOption = None,
    api: Annotated[
        str | None,
        typer.Option(
            metavar="API",
            help="Decode a bare message body of this API.",
            autocompletion=complete_api,
            rich_help_panel=Panel.BARE,
        ),
    ] = None,
    version: Annotated[
        int | None,
        typer.Option(metavar="N", help="With --api: API version.", rich_help_panel=Panel.BARE),
    ] = None,
    direction: Annotated[
        str | None,
        typer.Option(
            metavar="request|response",
            help="With --api: direction [default: request].",
            show_default=False,
            rich_help_panel=Panel.BARE,
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit 1 if any message, key or value is not fully decoded."),
    ] = False,
    records: Annotated[
        bool,
        typer.Option(
            "--records",
            help="Show the records, not only their number; on a terminal as a tree.",
            rich_help_panel=Panel.OUTPUT,
        ),
    ] = False,
    decoding: ValueOptions = NO_VALUES,
    redact: RedactOption = False,
    show_secrets: SecretsOption = False,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=1, metavar="N", help="Use N processors.")
    ] = 1,
    rotated: Annotated[
        bool,
        typer.Option(
            "--rotated", help="Read rotated files as one capture.", rich_help_panel=Panel.CAPTURES
        ),
    ] = False,
    times: Annotated[
        Times,
        typer.Option(
            "--time",
            help="Times in the table: UTC, local, since the first packet, or since the message "
            "before.",
            rich_help_panel=Panel.OUTPUT,
        ),
    ] = Times.UTC,
    colour: Annotated[
        Colour,
        typer.Option(
            "--color", help="Colour the table; auto: on a terminal.", rich_help_panel=Panel.OUTPUT
        ),
    ] = Colour.AUTO,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            metavar="NAME",
            help="Write a table instead of messages: exchanges, records, ... (docs/tables.md); "
            "repeatable.",
            autocompletion=complete_table,
            rich_help_panel=Panel.TABLES,
        ),
    ] = None,
    bodies: Annotated[
        str | None,
        typer.Option(
            "--bodies",
            metavar="MESSAGE",
            help="With --table messages: only this message, FetchRequest, and its body as columns "
            "instead of JSON.",
            autocompletion=complete_captured,
            rich_help_panel=Panel.TABLES,
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE|DIR",
            help="With --table: .jsonl, .csv, .parquet or .arrow file; for several tables a "
            "directory or a name with {table}.",
            rich_help_panel=Panel.TABLES,
        ),
    ] = None,
    compression: CompressionOption = None,
) -> None:
    """Decode every Kafka message in captures, frames or hex text.

    \b
    kafkawire decode trace.pcap
    kafkawire decode *.pcapng.gz --format jsonl --filter 'api == Fetch and error != NONE'
    tcpdump -i any -w - port 9092 | kafkawire decode -
    kafkawire decode 0000001f0019... --format tree
    kafkawire decode trace.pcap --records --values auto --registry-url http://localhost:8081
    kafkawire decode body.bin --api Metadata --version 12 --direction response
    kafkawire decode trace.pcap --registry mine.messages
    kafkawire decode trace*.pcap --table records -o records.parquet
    kafkawire decode trace*.pcap --table exchanges --table records -o DIR
    kafkawire decode t.pcap --table messages --bodies FetchRequest -o f.parquet
    kafkawire decode t.pcap --table records --values json -o values.parquet

    Exit code 1: a message, or a key or value with --keys or --values, is not fully decoded (only
    with --strict); 2: an input cannot be read, or usage error.
    """
    pipes.keep_memory()
    arguments = with_joined_hex(arguments)
    view = View(show_secrets, records, redact)
    messages_of = None if package is None else registry(package)
    brokers = known(port, broker, keylog, package, tunnel)
    where = parse_filter(wanted, package)
    if bodies is not None and package is not None:
        raise typer.BadParameter("not allowed with --registry", param_hint="--bodies")
    if compression is not None and not table and bodies is None:
        raise typer.BadParameter("only allowed with --table", param_hint="--compression")
    if table or bodies is not None or to is not None:
        columns = table_columns(table, bodies, decoding, redact=redact)
        _refuse_with_table({"--format": shape, "--api": api, "--records": records})
        output = (to, compression)
        selected = Wanted(brokers, where)
        _write_tables(arguments, table or [], columns, output, selected, view, jobs, strict=strict)
        return
    values = shown_values(decoding, records, redact, in_table=shape is Shape.TABLE)
    if values is not None:
        view = view._replace(decoded=values.members_text)
    if rotated and jobs > 1:
        raise typer.BadParameter("not allowed with --jobs", param_hint="--rotated")
    form = shape or _default_shape(records)
    look = _look(form, times, colour, arguments)
    unmatched = None if where is None else unmatched_by(where)
    options = DecodeOptions(form, view, where, brokers, look, values, unmatched)
    bare = bare_body(api, version, direction, messages_of)
    messages = Messages(arguments, input_format, bare, options)
    with pipes.stop_at_closed_pipe():
        try:
            messages.print(jobs, rotated=rotated)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
    all_values = options.report_missing()
    if messages.unreadable:
        raise typer.Exit(2)
    if strict and not (messages.clean and all_values):
        raise typer.Exit(1)


def _default_shape(records: bool) -> Shape:
    """Return the format of rows if none is chosen: a table has no place for records."""
    if not sys.stdout.isatty():
        return Shape.JSONL
    return Shape.TREE if records else Shape.TABLE


def _look(form: Shape, times: Times, colour: Colour, arguments: list[str]) -> Style:
    """Return how the table looks; the options of the table need it."""
    if form is not Shape.TABLE:
        if times is not Times.UTC or colour is Colour.ALWAYS:
            option = "--color" if times is Times.UTC else "--time"
            raise typer.BadParameter("only allowed with --format table", param_hint=option)
        return Style(width=terminal_width())
    files = list(dict.fromkeys(each_file(arguments)))
    return style(times, colour, files)


class Messages:
    """Prints the messages in the inputs.

    clean: whether all of them were fully decoded. unreadable: whether an input was refused.
    """

    def __init__(
        self, given: list[str], source: Format, bare: BareBody | None, options: DecodeOptions
    ) -> None:
        self._given = given
        self._source = source
        self._bare = bare
        self._options = options
        self.clean = True
        self.unreadable = False
        self._connections: Connections = {}

    def print(self, jobs: int, *, rotated: bool) -> None:
        """Print the messages; captures are decoded in several processes, or as one capture."""
        if self._options.form is Shape.TABLE:
            print(heading(self._options.look), flush=True)
        files = capture_files(self._given, self._source, self._bare)
        if files:
            self._print_captures(files, jobs, rotated=rotated)
        elif rotated:
            raise typer.BadParameter("only allowed with capture files", param_hint="--rotated")
        else:
            for name in each_file(self._given, report_ignored):
                self._print_input(name)
        if self._connections:
            print(*legend(self._connections, self._options.look), sep="\n")

    def _print_captures(self, files: list[Path], jobs: int, *, rotated: bool) -> None:
        options = self._options
        one = decode_rotated if rotated else decode_files
        rows = decoded(files, options, jobs) if jobs > 1 else one(files, options)
        for printed in rows:
            self.clean = self.clean and printed.clean
            pipes.write(printed.text)
            if printed.counts or printed.compared or printed.matched:
                self._add(printed)
            if printed.connections:
                merge_connections(self._connections, printed.connections)
            if printed.error is not None:
                self._refuse(printed.error)

    def _add(self, printed: Printed) -> None:
        """Add what another process may have counted and compared."""
        values, unmatched = self._options.values, self._options.unmatched
        if values is not None and printed.counts is not None:
            values.add(printed.counts)
        if unmatched is not None:
            unmatched.matched = unmatched.matched or printed.matched
            unmatched.merge(printed.compared or {})

    def _print_input(self, name: str) -> None:
        options = self._options
        text = options.formatter()
        write = sys.stdout.write
        from kafkawire.capture.rows import CLEAN

        try:
            wanted = Wanted(options.brokers, options.where, options.unmatched)
            for entry in entries(name, self._source, self._bare, wanted):
                self.clean = self.clean and entry.row.status in CLEAN
                write(text(entry))
                if options.has_legend:
                    add_connection(self._connections, entry)
                if name == "-":  # show the rows of a live capture at once
                    sys.stdout.flush()
        except InputError as error:
            self._refuse(error)

    def _refuse(self, error: InputError) -> None:
        refuse(error)
        self.unreadable = True


def _refuse_with_table(options: dict[str, object]) -> None:
    """Refuse options that have no effect on tables, by the names that the user typed."""
    options_set = [name for name, value in options.items() if value]
    if options_set:
        raise typer.BadParameter("not allowed with --table", param_hint=", ".join(options_set))


def _write_tables(
    arguments: list[str],
    names: list[str],
    columns: TableColumns,
    output: tuple[Path | None, Compression | None],
    wanted: Wanted,
    view: View,
    jobs: int,
    *,
    strict: bool,
) -> None:
    """Write tables of the captures, read as one capture."""
    from ...render import tables

    with pipes.stop_at_closed_pipe():
        try:
            processes = tables.Processes(jobs, table_batches, records_process)
            output_file = tables.Output(*output)
            written = tables.write(
                arguments, names, columns, output_file, wanted, view, processes, strict=strict
            )
        except InputError as error:
            refuse(error)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:  # the second one
            raise typer.Exit(INTERRUPTED) from None
    if written.interrupted is not None:
        note = f"interrupted after {plural(written.interrupted, 'packet')}"
        print_note(f"{note}: the tables cover these")
        raise typer.Exit(INTERRUPTED)
    if written.refused:
        print_note("the tables cover the other inputs")
        raise typer.Exit(2)
    if wanted.where is not None and not written.matched:
        print_note(NOTHING_MATCHES)
    all_values = all_decoded(columns.values)
    written.undecoded.check()
    if strict and not all_values:
        raise typer.Exit(1)

"""`kafkawire decode`: decodes every message in captures, frames or hex text."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Annotated, BinaryIO, NamedTuple

import typer

from .. import pipes
from ..input import filters, inputs
from ..input.inputs import Entry, Format, InputError
from ..input.names import api_key, direction_of
from ..input.sources import BrokerOption, Known, PortOption, known, refuse
from ..render import messages as output
from ..render.messages import Shape, View
from ..render.progress import progress


class BareBody(NamedTuple):
    """The type of a bare message body: `--api`, `--version`, `--direction`."""

    api_key: int
    version: int
    direction: str


def decode(
    given: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...", help="Captures, frames, hex text or directories; - for stdin."
        ),
    ],
    shape: Annotated[
        Shape | None,
        typer.Option(
            "--format",
            "-f",
            help="Output format [default: table on a terminal, else jsonl].",
            show_default=False,
        ),
    ] = None,
    input_format: Annotated[Format, typer.Option(help="Input format.")] = Format.AUTO,
    wanted: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="FIELD=PATTERN",
            help="Show only matching messages; repeatable. Fields: api, client, broker, "
            "connection, direction, error, status, topic.",
        ),
    ] = None,
    port: PortOption = None,
    broker: BrokerOption = None,
    api: Annotated[
        str | None, typer.Option(metavar="API", help="Decode a bare message body of this API.")
    ] = None,
    version: Annotated[
        int | None, typer.Option(metavar="N", help="With --api: API version.")
    ] = None,
    direction: Annotated[
        str | None,
        typer.Option(
            metavar="request|response",
            help="With --api: direction [default: request].",
            show_default=False,
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 1 if any message is not fully decoded.")
    ] = False,
    records: Annotated[
        bool, typer.Option("--records", help="Show the records, not only their number.")
    ] = False,
    redact: Annotated[
        bool,
        typer.Option("--redact", help="Replace keys and values of records by sizes and hashes."),
    ] = False,
    show_secrets: Annotated[
        bool,
        typer.Option("--show-secrets", help="Show tokens, passwords, keys and secret configs."),
    ] = False,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=1, metavar="N", help="Decode in N processes.")
    ] = 1,
    rotated: Annotated[
        bool,
        typer.Option("--rotated", help="Read rotated files as one capture."),
    ] = False,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            metavar="NAME",
            help="Write a table instead of messages: exchanges, records, ... (docs/tables.md); "
            "repeatable.",
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
        ),
    ] = None,
) -> None:
    """Decode every Kafka message in captures, frames or hex text.

    \b
    kafkawire decode trace.pcap
    kafkawire decode *.pcapng.gz --format jsonl --filter api=Fetch --filter error='*'
    tcpdump -i any -w - port 9092 | kafkawire decode -
    kafkawire decode 0000001f0019... --format tree
    kafkawire decode body.bin --api Metadata --version 12 --direction response
    kafkawire decode trace*.pcap --table records -o records.parquet
    kafkawire decode trace*.pcap --table exchanges --table records -o DIR
    """
    pipes.keep_memory()
    view = View(secrets=show_secrets, records=records, redact=redact)
    if table or to is not None:
        if wanted or shape or api or records or strict:
            raise typer.BadParameter(
                "not allowed with --filter, --format, --api, --records or --strict",
                param_hint="--table",
            )
        if jobs > 1:
            raise typer.BadParameter("not allowed with --table", param_hint="--jobs")
        _table(given, table, to, known(port, broker), view)
        return
    if rotated and jobs > 1:
        raise typer.BadParameter("not allowed with --jobs", param_hint="--rotated")
    bare = _bare(api, version, direction)
    chosen = filters.parse(wanted or [])
    brokers = known(port, broker)
    form = shape or (Shape.TABLE if sys.stdout.isatty() else Shape.JSONL)
    text = output.text(form, view)
    write = sys.stdout.write
    clean = True
    failed = False
    with pipes.stop_at_closed_pipe():
        if form is Shape.TABLE:
            print(output.heading(), flush=True)
        files = _captures(given, input_format, bare)
        if rotated and not files:
            raise typer.BadParameter("only allowed with capture files", param_hint="--rotated")
        for name in [] if files else _each(given):
            try:
                for entry in _entries(name, input_format, bare, brokers):
                    if chosen and not filters.matches(chosen, entry):
                        continue
                    clean = clean and entry.row.status == "ok"
                    write(text(entry))
                    if name == "-":  # show the rows of a live capture at once
                        sys.stdout.flush()
            except InputError as error:
                refuse("decode", error)
                failed = True
        if files:
            from ..parallel.jobs import DecodeOptions, decoded, decoded_as_one

            options = DecodeOptions(form, view, chosen, brokers)
            printed_rows = (
                decoded_as_one(files, options) if rotated else decoded(files, options, jobs)
            )
            for printed in printed_rows:
                clean = clean and printed.clean
                pipes.write(printed.text)
                if printed.error is not None:
                    refuse("decode", printed.error)
                    failed = True
    if failed:
        raise typer.Exit(2)
    if strict and not clean:
        raise typer.Exit(1)


def _table(
    given: list[str], names: list[str] | None, to: Path | None, brokers: Known, view: View
) -> None:
    """Write tables of the captures, read as one capture."""
    from ..render import tables

    if not names:
        raise typer.BadParameter("only allowed with --table", param_hint="--output")
    with pipes.stop_at_closed_pipe():
        try:
            refused = tables.write(given, names, to, brokers, view)
        except InputError as error:
            refuse("decode", error)
            raise typer.Exit(2) from None
    if refused:
        raise typer.Exit(2)


def _each(given: list[str]) -> Iterator[str]:
    """Replace directories by the captures in them, so that an invalid file does not affect the
    others.
    """
    for name in given:
        is_directory = name != "-" and not inputs.is_hex_argument(name) and Path(name).is_dir()
        try:
            files = [str(file) for file in inputs.expand([Path(name)])] if is_directory else [name]
        except InputError:
            files = [name]  # no captures: reported when it is read
        yield from files


def _captures(given: list[str], form: Format, bare: BareBody | None) -> list[Path]:
    """Return the files if all inputs are capture files, otherwise nothing."""
    if bare is not None or any(name == "-" or inputs.is_hex_argument(name) for name in given):
        return []
    try:
        files = list(inputs.expand(Path(name) for name in given))
    except InputError:
        return []  # reported when it is read
    if any(inputs.is_stream(file) for file in files):
        return []
    try:
        kinds = [_kind(form, bare, inputs.first_bytes(file), str(file)) for file in files]
    except InputError:
        return []  # reported when it is read
    return files if all(kind is Format.CAPTURE for kind in kinds) else []


def _bare(api: str | None, version: int | None, direction: str | None) -> BareBody | None:
    if api is None:
        if version is not None or direction is not None:
            raise typer.BadParameter(
                "missing; required by --version and --direction", param_hint="--api"
            )
        return None
    if version is None:
        raise typer.BadParameter("missing; required by --api", param_hint="--version")
    return BareBody(api_key(api), version, direction_of(direction or "request"))


def _entries(name: str, form: Format, bare: BareBody | None, brokers: Known) -> Iterator[Entry]:
    if name == "-":
        yield from _stream(name, inputs.standard_input(), form, bare, brokers)
        return
    if inputs.is_hex_argument(name):
        yield from _bytes("hex argument", name.encode(), Format.HEX, bare)
        return
    for file in inputs.expand([Path(name)]):
        if inputs.is_stream(file):
            with file.open("rb") as stream:
                yield from _stream(name, stream, form, bare, brokers)
            continue
        kind = _kind(form, bare, inputs.first_bytes(file), str(file))
        if kind is Format.CAPTURE:
            yield from _capture(str(file), brokers, file)
        else:
            yield from _bytes(str(file), file.read_bytes(), kind, bare)


def _stream(
    name: str, given: BufferedReader, form: Format, bare: BareBody | None, brokers: Known
) -> Iterator[Entry]:
    head, stream = inputs.peek(given, name)
    kind = _kind(form, bare, head, name)
    if kind is Format.CAPTURE:
        yield from _capture(name, brokers, stream)
    else:
        yield from _bytes(name, stream.read(), kind, bare)


def _kind(form: Format, bare: BareBody | None, head: bytes, name: str) -> Format:
    if form is not Format.AUTO:
        return form
    if bare is not None:
        return Format.HEX if inputs.is_hex(head) else Format.FRAMES
    return inputs.recognise(head, name)


def _bytes(name: str, data: bytes, kind: Format, bare: BareBody | None) -> Iterator[Entry]:
    from kafkawire.capture.frames.bare import decode_body, decode_frames

    data = inputs.unpacked(data, name)
    if kind is Format.HEX:
        data = _digits(data, name)
    rows = decode_frames(data) if bare is None else [decode_body(*bare, data)]
    for row in rows:
        yield Entry(name, None, None, None, row)


def _digits(text: bytes, name: str) -> bytes:
    try:
        return inputs.hex_bytes(text.decode("latin-1"))
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _capture(name: str, brokers: Known, source: Path | BinaryIO) -> Iterator[Entry]:
    from kafkawire.capture.multifile import decode_capture
    from kafkawire.errors import CaptureError

    try:
        with progress([source], drawn=not sys.stdout.isatty()) as watch:
            rows = decode_capture(
                source, ports=brokers.ports, brokers=brokers.addresses, watch=watch
            )
            for found in rows:
                yield Entry(name, found.connection, found.client, found.broker, found.row)
    except CaptureError as error:
        raise InputError(f"{name}: {error}") from None

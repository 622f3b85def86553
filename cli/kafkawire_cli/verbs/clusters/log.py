"""`kafkawire log`: reads and verifies the files of a broker's log directory.

Rows are written to standard output (or --output), findings to standard error; everything
readable is shown despite findings.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from kafkawire.display import printable
from kafkawire.magic_numbers import is_gzip, is_zstd, other_format
from kafkawire.printed import HEAD
from kafkawire_codegen.whole_files import whole_file, whole_files

from ...input.inputs import InputError, MissingOption, is_capture
from ...input.options import ROW_FORMAT, SecretsOption
from ...input.panels import Panel
from ...input.values import NO_VALUES, ValueOptions, check_decoded, counted_values
from ...notes import print_note
from ...pipes import stop_at_closed_pipe
from ...render.log.rows import JsonLines, Parquet, Shape, Sink, Table, parquet_files

if TYPE_CHECKING:
    from kafkawire.log import Finding, InternalLog, LogFile, Row
    from kafkawire.values.record_values import RecordValues


class Decoder(StrEnum):
    """Decoders for the keys and values of a segment."""

    AUTO = "auto"
    NONE = "none"
    OFFSETS = "offsets"
    TRANSACTIONS = "transactions"
    METADATA = "metadata"
    SHARE = "share"
    REMOTE = "remote"


def log(
    given: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Segments, indexes, snapshots, checkpoints; directories are read recursively.",
        ),
    ],
    shape: Annotated[Shape | None, ROW_FORMAT] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Output file; required for parquet.",
            rich_help_panel=Panel.OUTPUT,
        ),
    ] = None,
    batches: Annotated[
        bool,
        typer.Option(
            "--batches",
            help="Show headers of record batches instead of records, and torn or zeroed tails.",
            rich_help_panel=Panel.OUTPUT,
        ),
    ] = False,
    decoder: Annotated[
        Decoder, typer.Option(help="Decoder of keys and values; auto: by directory name.")
    ] = Decoder.AUTO,
    decoding: ValueOptions = NO_VALUES,
    no_verify: Annotated[
        bool,
        typer.Option("--no-verify", help="Do not verify checksums, offsets, order and indexes."),
    ] = False,
    show_secrets: SecretsOption = False,
) -> None:
    """Read and verify the files of a broker's log directory.

    \b
    kafkawire log /var/lib/kafka/orders-0/00000000000000000000.log
    kafkawire log __consumer_offsets-12 --format jsonl | jq 'select(.value == null).key.message'
    kafkawire log /var/lib/kafka --format parquet --output dump.parquet
    kafkawire log orders-0 --values avro --value-schemas schemas
    kafkawire log copied.log --decoder transactions
    kafkawire log /var/lib/kafka/orders-0 --batches

    Exit code 1: a file is corrupt, or with --batches has an incomplete or zeroed end (details on
    standard error), or a key or value was not decoded; 2: usage error.
    """
    form = shape or (Shape.TABLE if out is None and sys.stdout.isatty() else Shape.JSONL)
    if form is Shape.PARQUET and out is None:
        raise MissingOption("required for --format parquet", param_hint="--output")
    values = counted_values(decoding)
    if values is not None and (batches or form is Shape.PARQUET):
        where = "--batches" if batches else "--format parquet"
        raise typer.BadParameter(f"not allowed with {where}", param_hint=decoding.first)
    try:
        with stop_at_closed_pipe():
            files = list(_files(given))
            if batches:
                files = _with_batches(files)
            read = _headers(not no_verify) if batches else _rows(decoder, not no_verify)
            faults = _show(files, _Output(form, out, show_secrets, batches, values), read)
    except (InputError, OSError) as error:  # such as an unreadable directory or a full disk
        print_note(str(error))
        raise typer.Exit(2) from None
    check_decoded(values)
    if faults:
        raise typer.Exit(1)


class _Output(NamedTuple):
    """Output format, path (None: standard output), whether secrets are shown, and what rows are.

    values: what decodes keys and values of records.
    """

    form: Shape
    path: Path | None
    secrets: bool
    batches: bool
    values: RecordValues | None


Read = Callable[["LogFile"], Iterator["Row | Finding"]]


def _rows(decoder: Decoder, verify: bool) -> Read:
    """Return what reads the rows of a file."""
    from kafkawire.log import read

    return lambda file: read(file, _log(decoder, file), verify=verify)


def _headers(verify: bool) -> Read:
    """Return what reads the headers of the batches of a file."""
    from kafkawire.log import read_batches

    return lambda file: read_batches(file, verify=verify)


def _with_batches(files: list[LogFile]) -> list[LogFile]:
    """Return the files that hold record batches."""
    from kafkawire.log.files import RECORD_BATCH_KINDS

    chosen = [file for file in files if file.kind in RECORD_BATCH_KINDS]
    if not chosen:
        raise InputError("no segments or metadata snapshots, which hold record batches")
    return chosen


def _show(files: list[LogFile], to: _Output, read: Read) -> int:
    """Write all rows and report all findings; return the number of faults."""
    from kafkawire.log import Finding

    faults = 0
    with ExitStack() as stack:
        sink = _sink(to, files, stack)
        stack.callback(sink.close)
        for file in files:
            for row in read(file):
                if isinstance(row, Finding):
                    typer.echo(printable(str(row)), err=True)
                    faults += row.is_error
                else:
                    sink.add(file, row)
    return faults


def _files(paths: list[Path]) -> Iterator[LogFile]:
    from kafkawire.log import Finding, Rule, recognise, walk

    for path in paths:
        if not os.path.exists(path):
            raise InputError(f"{path}: No such file or directory")
        if not path.is_dir():
            yield recognise(path) or _without_name(path)
            continue
        recognised = 0
        for file in walk(path):
            log_file = recognise(file)
            if log_file is not None:
                recognised += 1
                yield log_file
            else:
                note = Finding(file, 0, Rule.UNKNOWN_FILE, "unknown file name, skipped")
                typer.echo(printable(str(note)), err=True)
        if not recognised:
            raise InputError(f"{path}: no log files in this directory {EXPECTED}")


EXPECTED: Final = (
    "(expected *.log, *.index, *.timeindex, *.txnindex, *.snapshot, *.checkpoint, *-checkpoint, "
    "partition.metadata, meta.properties, quorum-state)"
)


def _without_name(path: Path) -> LogFile:
    """Recognise a file without a name of Kafka's by its content. Raises InputError."""
    from kafkawire.log.files import recognise_segment

    log_file = recognise_segment(path)
    if log_file is None:
        what = _content(path)
        raise InputError(f"{path}: {what or f'unknown file name {EXPECTED}'}")
    return log_file


def _content(path: Path) -> str:
    """Return what a file is that belongs to no log directory, and what to do; "" if unknown."""
    with path.open("rb") as file:
        head = file.read(HEAD)
    if is_gzip(head) or is_zstd(head):
        name = "gzip" if is_gzip(head) else "zstd"
        return f"compressed with {name}; decompress it first: {name} -d"
    if is_capture(head):
        return "a capture file; read it with kafkawire decode"
    return other_format(head)


def _log(decoder: Decoder, file: LogFile) -> InternalLog | None:
    from kafkawire.log import InternalLog

    if decoder is Decoder.AUTO:
        return file.log
    return None if decoder is Decoder.NONE else InternalLog(decoder.value)


def _sink(to: _Output, files: list[LogFile], stack: ExitStack) -> Sink:
    """Open the output. stack: what completes its files at the end, or removes them."""
    form, out, secrets, batches, values = to
    try:
        if form is Shape.PARQUET:
            assert out is not None  # validated with the options
            paths = parquet_files(out, _kinds(files, batches))
            written = stack.enter_context(whole_files(paths.values(), private=secrets))
            return Parquet({kind: written[path] for kind, path in paths.items()}, secrets)
        stream: IO[str] = sys.stdout
        if out is not None:
            place = stack.enter_context(whole_file(out, private=secrets))
            stream = stack.enter_context(place.open("w", encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{out}: {error.strerror}") from None
    sink = JsonLines if form is Shape.JSONL else Table
    return sink(stream, secrets, values)


def _kinds(files: list[LogFile], batches: bool) -> set[type[Row]]:
    """Return the kinds of rows that are written."""
    from kafkawire.log.reading import ROWS, BatchRow

    return {BatchRow} if batches else {ROWS[file.kind] for file in files}

"""`kafkawire log`: the files a broker keeps, record by record and entry by entry.

Law: rows go to standard output (or --out), findings to standard error; what is readable is shown
whatever is found.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ..input.inputs import InputError
from ..pipes import make_private, until_the_reader_leaves
from ..render.log_rows import JsonLines, Parquet, Shape, Sink, Table
from ..render.messages import printable

if TYPE_CHECKING:
    from kafkawire.log import InternalLog, LogFile


class Decoder(StrEnum):
    """Whose records those of a segment are."""

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
            help="Segments, indexes, snapshots, checkpoints; a directory stands for all below it.",
        ),
    ],
    shape: Annotated[
        Shape | None,
        typer.Option(
            "--format",
            "-f",
            help="[default: table on a terminal, jsonl in a pipe or file]",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write here; Parquet needs it.")
    ] = None,
    decoder: Annotated[
        Decoder, typer.Option(help="What keys and values are; auto: by the directory's name.")
    ] = Decoder.AUTO,
    no_verify: Annotated[
        bool,
        typer.Option("--no-verify", help="Do not check checksums, offsets, order and indexes."),
    ] = False,
    show_secrets: Annotated[
        bool,
        typer.Option("--show-secrets", help="Show passwords and SCRAM keys of the metadata log."),
    ] = False,
) -> None:
    """Read and verify the files of a broker's log directory.

    \b
    kafkawire log /var/lib/kafka/orders-0/00000000000000000000.log
    kafkawire log __consumer_offsets-12 --format jsonl | jq 'select(.value == null).key.message'
    kafkawire log /var/lib/kafka --format parquet --out dump.parquet
    kafkawire log copied.log --decoder transactions

    Exit code 1: something is wrong with a file (standard error says where). 2: usage.
    """
    form = shape or (Shape.TABLE if out is None and sys.stdout.isatty() else Shape.JSONL)
    if form is Shape.PARQUET and out is None:
        raise typer.BadParameter("parquet needs a file to write to", param_hint="--out")
    try:
        with until_the_reader_leaves():
            files = list(_files(given))
            faults = _show(files, _Output(form, out, show_secrets), decoder, not no_verify)
    except (InputError, OSError) as error:  # a folder that may not be listed, a disk that is full
        typer.echo(printable(f"kafkawire log: {error}"), err=True)
        raise typer.Exit(2) from None
    if faults:
        raise typer.Exit(1)


class _Output(NamedTuple):
    """How rows are written, where to (None: standard output), and whether secrets are shown."""

    form: Shape
    path: Path | None
    secrets: bool


def _show(files: list[LogFile], to: _Output, decoder: Decoder, verify: bool) -> int:
    """Write all rows and report all findings; return how many are faults."""
    from kafkawire.log import Finding, read

    faults = 0
    with ExitStack() as stack:
        sink = _sink(to, files, stack)
        stack.callback(sink.close)
        for file in files:
            for found in read(file, _log(decoder, file), verify=verify):
                if isinstance(found, Finding):
                    typer.echo(printable(str(found)), err=True)
                    faults += found.is_error
                else:
                    sink.add(file, found)
    return faults


def _files(given: list[Path]) -> Iterator[LogFile]:
    from kafkawire.log import Finding, Rule, recognise, walk

    for path in given:
        if not path.exists():
            raise InputError(f"{path}: no such file or directory")
        known = 0
        for file in walk(path) if path.is_dir() else [path]:
            found = recognise(file)
            if found is not None:
                known += 1
                yield found
            elif path.is_dir():
                note = Finding(file, 0, Rule.UNKNOWN_FILE, "not a file of Kafka's log, left out")
                typer.echo(printable(str(note)), err=True)
        if not known:
            what = "a directory without files of Kafka's" if path.is_dir() else "no name of Kafka's"
            raise InputError(
                f"{path}: {what} (*.log, *.index, *.timeindex, *.txnindex, *.snapshot, "
                "*.checkpoint, *-checkpoint, partition.metadata, meta.properties, quorum-state)"
            )


def _log(decoder: Decoder, file: LogFile) -> InternalLog | None:
    from kafkawire.log import InternalLog

    if decoder is Decoder.AUTO:
        return file.log
    return None if decoder is Decoder.NONE else InternalLog(decoder.value)


def _sink(to: _Output, files: list[LogFile], stack: ExitStack) -> Sink:
    form, out, secrets = to
    try:
        if out is not None and secrets:
            make_private(out)
        if form is Shape.PARQUET:
            assert out is not None  # checked with the options
            return _parquet(out, files, secrets)
        stream = sys.stdout if out is None else stack.enter_context(out.open("w", encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{out}: {error.strerror}") from None
    return JsonLines(stream, secrets) if form is Shape.JSONL else Table(stream, secrets)


def _parquet(out: Path, files: list[LogFile], secrets: bool) -> Sink:
    from kafkawire.log.reading import ROWS

    return Parquet(out, {ROWS[file.kind] for file in files}, secrets)

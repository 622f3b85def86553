"""`kafkawire values infer`: a JSON Schema of values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BufferedReader, RawIOBase
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final

import typer

from kafkawire.display import printable
from kafkawire.errors import InvalidRecordValue

from ...input.inputs import InputError
from ...input.sources import refuse
from ...notes import print_note

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_LINE: Final = 1 << 27
"""Bytes of a line; a message of Kafka's protocol has fewer."""

STDIN: Final = "<stdin>"
"""The name of Python's standard input."""

app = typer.Typer(
    help="Infer the schema of values.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def values() -> None:
    """Infer the schema of values."""


@app.command()
def infer(
    source: Annotated[
        typer.FileBinaryRead,
        typer.Argument(
            metavar="FILE",
            help="Values, a line of JSON each, also compressed with gzip or zstd; - for stdin.",
        ),
    ] = "-",  # type: ignore[assignment]  # typer opens it
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the schema.")] = None,
) -> None:
    """Infer a JSON Schema from values, as a starting point where none is registered.

    \b
    kafkawire consume orders -e -f value | kafkawire values infer --title Order > orders.json
    kafkawire values infer orders.jsonl.gz

    Every value is valid in the schema. Exit code 1: without values, or if a line is not JSON (the
    others are used); 2: an input cannot be read, or usage error.
    """
    from kafkawire.values.inference import Inference
    from kafkawire.values.plain import decode_json

    inference = Inference()
    valid = invalid = 0
    try:
        for number, line in enumerate(
            _lines(BufferedReader(_UnpackedStream(source, _name(source)))), 1
        ):
            if not line.strip():
                continue
            try:
                inference.add(decode_json(line))
                valid += 1
            except InvalidRecordValue as error:
                invalid += 1
                typer.echo(printable(f"line {number}: {error}"), err=True)
    except InputError as error:
        refuse(error)
        raise typer.Exit(2) from None
    if not valid:
        print_note("no values, so no schema")
        raise typer.Exit(1)
    schema = inference.schema()
    if title is not None:
        schema = {"$schema": schema.pop("$schema"), "title": title} | schema
    typer.echo(json.dumps(schema, indent=2))
    if invalid:
        raise typer.Exit(1)


def _name(source: BinaryIO) -> str:
    """Return the name of the input, as given."""
    name = getattr(source, "name", STDIN)
    return "-" if name == STDIN else str(name)


def _lines(source: BinaryIO) -> Iterator[bytes]:
    """Read lines of bounded length."""
    while line := source.readline(MAX_LINE + 1):
        if len(line) > MAX_LINE:
            raise typer.BadParameter(f"a line of more than {MAX_LINE} bytes", param_hint="FILE")
        yield line


class _UnpackedStream(RawIOBase):
    """What is in gzip or zstd data, or other data as it is, as it comes; InputError if corrupt."""

    def __init__(self, source: BinaryIO, name: str) -> None:
        from kafkawire.capture.files.source import decompressed, read_stream

        self._name = name
        _, self._chunks, self._layers = decompressed(read_stream(source))
        self._chunk = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        self._chunk = self._chunk or memoryview(next(self._chunks, b""))
        size = min(len(view), len(self._chunk))
        for problem in [layer.problem for layer in self._layers if layer.problem and not size]:
            raise InputError(f"{self._name}: {problem.reason}")
        view[:size], self._chunk = self._chunk[:size], self._chunk[size:]
        return size

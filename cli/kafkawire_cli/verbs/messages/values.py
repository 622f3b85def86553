"""`kafkawire values infer`: a JSON Schema of values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, BinaryIO, Final

import typer

from kafkawire.display import printable
from kafkawire.errors import InvalidRecordValue

from ...notes import print_note

MAX_LINE: Final = 1 << 27
"""Bytes of a line; a message of Kafka's protocol has fewer."""

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
        typer.Argument(metavar="FILE", help="Values, a line of JSON each; - for stdin."),
    ] = "-",  # type: ignore[assignment]  # typer opens it
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the schema.")] = None,
) -> None:
    """Infer a JSON Schema from values, as a starting point where none is registered.

    \b
    kafkawire consume orders -e -f value | kafkawire values infer --title Order > orders.json

    Every value is valid in the schema. Exit code 1: without values, or if a line is not JSON (the
    others are used); 2: usage error.
    """
    from kafkawire.values.inference import Inference
    from kafkawire.values.plain import decode_json

    inference = Inference()
    valid = invalid = 0
    for number, line in enumerate(_lines(source), 1):
        if not line.strip():
            continue
        try:
            inference.add(decode_json(line))
            valid += 1
        except InvalidRecordValue as error:
            invalid += 1
            typer.echo(printable(f"line {number}: {error}"), err=True)
    if not valid:
        print_note("no values, so no schema")
        raise typer.Exit(1)
    schema = inference.schema()
    if title is not None:
        schema = {"$schema": schema.pop("$schema"), "title": title} | schema
    typer.echo(json.dumps(schema, indent=2))
    if invalid:
        raise typer.Exit(1)


def _lines(source: BinaryIO) -> Iterator[bytes]:
    """Read lines of bounded length."""
    while line := source.readline(MAX_LINE + 1):
        if len(line) > MAX_LINE:
            raise typer.BadParameter(f"a line of more than {MAX_LINE} bytes", param_hint="FILE")
        yield line

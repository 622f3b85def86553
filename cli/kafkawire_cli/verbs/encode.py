"""`kafkawire encode`: JSON -> bytes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from kafkawire.escaping import printable

from ..input.names import direction_of, message_name


def encode(
    text: Annotated[
        str, typer.Argument(metavar="JSON", help="The message as JSON, @FILE, or - for stdin.")
    ],
    api: Annotated[str, typer.Option(help="API or message: Fetch, FetchRequest, TopicRecord, 1.")],
    version: Annotated[int, typer.Option(help="API version.")],
    direction: Annotated[str, typer.Option(help="request or response.")] = "request",
    frame: Annotated[
        bool, typer.Option("--frame", help="With size and header, not the body alone.")
    ] = False,
    correlation_id: Annotated[int, typer.Option(help="For --frame.")] = 0,
    client_id: Annotated[str | None, typer.Option(help="For --frame, of a request.")] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Write the bytes themselves, not hex.")
    ] = False,
) -> None:
    """Encode a message given in Kafka's JSON form; fields left out take their defaults.

    \b
    kafkawire encode '{"groupId": "g", "memberId": "m"}' --api Heartbeat --version 4
    kafkawire encode @metadata.json --api Metadata --version 12 --frame --raw | nc localhost 9092
    """
    import kafkawire

    name = message_name(api, direction_of(direction))
    written = _text(text)
    try:
        obj = json.loads(written)
    except (ValueError, RecursionError) as error:  # also numbers too long, nesting too deep
        raise typer.BadParameter(f"not JSON: {error}", param_hint="JSON") from None
    try:
        message = kafkawire.from_json(name, version, obj)
        if frame:
            data = kafkawire.encode_frame(message, version, correlation_id, client_id=client_id)
        else:
            data = message.encode(version)
    except kafkawire.WireError as error:
        typer.echo(printable(f"kafkawire encode: {error}"), err=True)
        raise typer.Exit(1) from None
    if raw:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        typer.echo(data.hex())


def _text(given: str) -> str:
    if given != "-" and not given.startswith("@"):
        return given
    name = "standard input" if given == "-" else given[1:]
    try:
        data = sys.stdin.buffer.read() if given == "-" else Path(name).read_bytes()
        return data.decode("utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{name}: {error.strerror}", param_hint="JSON") from None
    except UnicodeDecodeError as error:
        reason = f"{name}: byte {error.start} is not UTF-8"
        raise typer.BadParameter(reason, param_hint="JSON") from None

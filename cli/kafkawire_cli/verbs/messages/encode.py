"""`kafkawire encode`: encodes a message from JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from ...input.inputs import InputError, read_limited
from ...input.names import checked_version, complete_message, direction_of, message_name
from ...input.packages import RegistryOption, registry
from ...input.panels import Panel
from ...notes import print_note


def encode(  # noqa: PLR0913 - options of the verb
    text: Annotated[
        str, typer.Argument(metavar="JSON", help="The message as JSON, @FILE, or - for stdin.")
    ],
    api: Annotated[
        str,
        typer.Option(
            metavar="API",
            help="API or message: Fetch, FetchRequest, TopicRecord, 1.",
            autocompletion=complete_message,
        ),
    ],
    version: Annotated[
        int | None, typer.Option(metavar="N", help="API version; required.", show_default=False)
    ] = None,
    direction: Annotated[
        str, typer.Option(metavar="request|response", help="Direction.")
    ] = "request",
    frame: Annotated[
        bool,
        typer.Option(
            "--frame",
            help="Encode a whole frame with size and header.",
            rich_help_panel=Panel.FRAME,
        ),
    ] = False,
    correlation_id: Annotated[
        int,
        typer.Option(
            metavar="N", help="With --frame: correlation id.", rich_help_panel=Panel.FRAME
        ),
    ] = 0,
    client_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="With --frame: client id of a request.", rich_help_panel=Panel.FRAME
        ),
    ] = None,
    package: RegistryOption = None,
    raw: Annotated[bool, typer.Option("--raw", help="Write raw bytes instead of hex.")] = False,
) -> None:
    """Encode a message from JSON.

    \b
    kafkawire encode '{"groupId": "g", "memberId": "m"}' --api Heartbeat --version 4
    kafkawire encode @metadata.json --api Metadata --version 12 --frame --raw | nc localhost 9092

    The JSON form is that of Apache Kafka's JsonConverter classes. Missing fields have their
    default values.
    """
    import kafkawire

    if not frame and (correlation_id or client_id is not None):
        raise typer.BadParameter(
            "only allowed with --frame", param_hint="--correlation-id, --client-id"
        )
    messages = registry(package)
    name = message_name(api, direction_of(direction), messages)
    version = checked_version(messages.get(name), version)
    json_text = _text(text)
    try:
        obj = json.loads(json_text)
    except (
        ValueError,
        RecursionError,
    ) as error:  # also for numbers that are too long and nesting that is too deep
        raise typer.BadParameter(f"invalid JSON: {error}", param_hint="JSON") from None
    try:
        message = messages.from_json(name, version, obj)
        if frame:
            data = messages.encode_frame(message, version, correlation_id, client_id=client_id)
        else:
            data = message.encode(version)
    except kafkawire.WireError as error:
        print_note(str(error))
        raise typer.Exit(1) from None
    if raw:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        typer.echo(data.hex())


def _text(argument: str) -> str:
    if argument != "-" and not argument.startswith("@"):
        return argument
    name = "standard input" if argument == "-" else argument[1:]
    try:
        if argument == "-":
            return read_limited(sys.stdin.buffer, name).decode("utf-8")
        with Path(name).open("rb") as file:
            return read_limited(file, name).decode("utf-8")
    except InputError as error:
        raise typer.BadParameter(str(error), param_hint="JSON") from None
    except OSError as error:
        raise typer.BadParameter(f"{name}: {error.strerror}", param_hint="JSON") from None
    except UnicodeDecodeError as error:
        reason = f"{name}: invalid UTF-8 at byte {error.start}"
        raise typer.BadParameter(reason, param_hint="JSON") from None

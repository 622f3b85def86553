"""`kafkawire explain`: shows the bytes of a message field by field, with the first bad byte marked.

Law: invalid arguments are usage errors that name the valid values (exit code 2); malformed data is
explained up to the first error (exit code 1).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kafkawire.display import printable, printable_lines

from ..input.inputs import InputError, hex_bytes
from ..input.names import checked_version, complete_message, direction_of, message_name

if TYPE_CHECKING:
    from kafkawire.primitives import MessageInfo
    from kafkawire.reference import Explanation

UNDECODABLE: Final = 1

STYLES: Final = {
    "offset": "dim",
    "bytes": "cyan",
    "bad": "bold white on red",
    "field": "bold",
    "type": "dim",
    "value": "green",
    "note": "yellow",
    "error": "bold red",
}


def explain(
    hexadecimal: Annotated[
        list[str],
        typer.Argument(
            metavar="HEX...",
            help="Bytes as hex; spaces, colons, dashes, 0x, ... are ignored. "
            "- reads standard input, @FILE a file.",
        ),
    ],
    api: Annotated[
        str | None,
        typer.Option(
            metavar="API",
            help="API, message name or API key: Fetch, FetchRequest, 1.",
            autocompletion=complete_message,
        ),
    ] = None,
    version: Annotated[int | None, typer.Option(metavar="N", help="API version.")] = None,
    frame: Annotated[
        bool, typer.Option("--frame", help="The bytes are a whole frame with size and header.")
    ] = False,
    direction: Annotated[
        str | None,
        typer.Option(
            metavar="request|response",
            help="Direction [default: from the message name, else request].",
            show_default=False,
        ),
    ] = None,
    tree: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
    show_secrets: Annotated[
        bool, typer.Option("--show-secrets", help="Show SASL tokens, passwords and keys.")
    ] = False,
) -> None:
    """Explain a message body or a whole frame, byte by byte.

    \b
    kafkawire explain --api ApiVersions --version 3 02 61 02 62 00
    kafkawire explain --frame 0000000b00120000000000010001 63
    xxd -p frame.bin | kafkawire explain --frame --direction response --api Fetch --version 12 -
    """
    from kafkawire.reference import explain, explain_frame

    data = parse_hex(read_input(hexadecimal))
    if frame:
        explanation = explain_frame(data, request_of(api, version, direction), secrets=show_secrets)
    else:
        info = find_message(api, direction)
        known = checked_version(info, version)
        explanation = explain(info.name, known, data, secrets=show_secrets)
    show(explanation, tree)
    if explanation.error is not None:
        raise typer.Exit(UNDECODABLE)


# -- message type


def request_of(
    api: str | None, version: int | None, direction: str | None
) -> tuple[int, int] | None:
    """Return the API key and version of the request of a response frame; None for a request."""
    if direction is None or direction_of(direction) == "request":
        if api is not None or version is not None:
            raise typer.BadParameter(
                "--api and --version are only allowed with --direction response: a request frame "
                "contains them",
                param_hint="--frame",
            )
        return None
    info = find_message(api, direction, "with --direction response")
    assert info.api_key is not None  # every response has an API key
    return info.api_key, checked_version(info, version)


def find_message(
    api: str | None, direction: str | None, required: str = "without --frame"
) -> MessageInfo:
    """Find the message type named by --api and --direction."""
    from kafkawire.messages import REGISTRY

    if api is None:
        raise typer.BadParameter(f"missing; required {required}", param_hint="--api")
    expected = None if direction is None else direction_of(direction)
    info = REGISTRY.get(message_name(api, expected or "request"))
    if expected is not None and info.type != expected:
        raise typer.BadParameter(
            f"{info.name} is a {info.type}, not a {expected}", param_hint="--direction"
        )
    return info


# -- input


def read_input(arguments: list[str]) -> str:
    """Read hex text from the command line, standard input (`-`) or a file (`@FILE`)."""
    if arguments == ["-"]:
        return sys.stdin.read()
    if len(arguments) == 1 and arguments[0].startswith("@"):
        path = Path(arguments[0][1:])
        try:
            return path.read_text("ascii")
        except OSError as error:
            raise typer.BadParameter(f"{path}: {error.strerror}", param_hint="HEX") from None
        except UnicodeDecodeError:
            raise typer.BadParameter(
                f"{path} is not hex text (try: xxd -p {path} | kafkawire explain ... -)",
                param_hint="HEX",
            ) from None
    return " ".join(arguments)


def parse_hex(text: str) -> bytes:
    """Parse hex text; invalid text is a usage error."""
    try:
        return hex_bytes(text)
    except InputError as error:
        raise typer.BadParameter(str(error), param_hint="HEX") from None


# -- output


def show(explanation: Explanation, tree: bool) -> None:
    """Print as JSON, or as text: in colour on a terminal unless NO_COLOR is set."""
    import json

    from kafkawire.reference import as_json

    if tree:
        typer.echo(json.dumps(as_json(explanation), indent=2))
    elif sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        in_colour(explanation)
    else:
        typer.echo(printable_lines(str(explanation)))


def in_colour(explanation: Explanation) -> None:
    """Print in colour."""
    from rich.console import Console
    from rich.text import Text

    from kafkawire.reference.rendering import lines

    console = Console(highlight=False, soft_wrap=True)
    for line in lines(explanation):
        console.print(Text.assemble(*((printable(span.text), STYLES[span.kind]) for span in line)))

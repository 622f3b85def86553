"""`kafkawire explain`: bytes as hex, one row for every field, the first bad byte marked.

Law: a wrong question is a usage error that says what would be right (exit code 2); what cannot be
decoded is explained as far as it goes (exit code 1).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kafkawire.escaping import printable, printable_lines

from ..input.inputs import InputError, hex_bytes
from ..input.names import direction_of, message_name

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
            metavar="HEX",
            help="Bytes as hex; spaces, newlines, colons, dashes, 0x, ... do not matter. "
            "- reads standard input, @FILE a file.",
        ),
    ],
    api: Annotated[
        str | None,
        typer.Option(help="Fetch, FetchRequest, any other message's name, or an API key."),
    ] = None,
    version: Annotated[int | None, typer.Option(help="The API version of the bytes.")] = None,
    frame: Annotated[
        bool, typer.Option("--frame", help="The bytes begin with a size and a header.")
    ] = False,
    direction: Annotated[
        str | None,
        typer.Option(
            help="request or response [default: as the name says, else request]",
            show_default=False,
        ),
    ] = None,
    tree: Annotated[bool, typer.Option("--json", help="Print the tree as JSON.")] = False,
    show_secrets: Annotated[
        bool, typer.Option("--show-secrets", help="Print SASL tokens, passwords and keys.")
    ] = False,
) -> None:
    """Explain a message body, or a whole frame, byte by byte.

    \b
    kafkawire explain --api ApiVersions --version 3 02 61 02 62 00
    kafkawire explain --frame 0000000b00120000000000010001 63
    xxd -p frame.bin | kafkawire explain --frame --direction response --api Fetch --version 12 -
    """
    from kafkawire.reference import explain, explain_frame

    data = parse_hex(read_input(hexadecimal))
    if frame:
        explanation = explain_frame(data, answered(api, version, direction), secrets=show_secrets)
    else:
        info = find_message(api, direction)
        known = checked_version(info, version)
        explanation = explain(info.name, known, data, secrets=show_secrets)
    show(explanation, tree)
    if explanation.error is not None:
        raise typer.Exit(UNDECODABLE)


# -- what the bytes are


def answered(api: str | None, version: int | None, direction: str | None) -> tuple[int, int] | None:
    """Find the API key and version that a response frame answers; None for a request."""
    if direction is None or direction_of(direction) == "request":
        if api is not None or version is not None:
            raise typer.BadParameter(
                "a request's header says what it is: leave out --api and --version, "
                "or say --direction response",
                param_hint="--frame",
            )
        return None
    info = find_message(api, direction)
    assert info.api_key is not None  # every response has one
    return info.api_key, checked_version(info, version)


def find_message(api: str | None, direction: str | None) -> MessageInfo:
    """Find the message that --api and --direction name."""
    from kafkawire.messages import REGISTRY

    if api is None:
        raise typer.BadParameter("say what the bytes are, or --frame", param_hint="--api")
    wanted = None if direction is None else direction_of(direction)
    info = REGISTRY.get(message_name(api, wanted or "request"))
    if wanted is not None and info.type != wanted:
        raise typer.BadParameter(
            f"{info.name} is a {info.type}, not a {wanted}", param_hint="--direction"
        )
    return info


def checked_version(info: MessageInfo, version: int | None) -> int:
    """Check that a message has a version; a usage error says which it has."""
    has = f"{info.name} has versions {info.first}-{info.last}"
    if version is None:
        raise typer.BadParameter(f"is needed: {has}", param_hint="--version")
    if not info.first <= version <= info.last:
        raise typer.BadParameter(f"{has}, not {version}", param_hint="--version")
    return version


# -- the bytes


def read_input(words: list[str]) -> str:
    """Take hex text from the command line, standard input (`-`) or a file (`@FILE`)."""
    if words == ["-"]:
        return sys.stdin.read()
    if len(words) == 1 and words[0].startswith("@"):
        path = Path(words[0][1:])
        try:
            return path.read_text("ascii")
        except OSError as error:
            raise typer.BadParameter(f"{path}: {error.strerror}", param_hint="HEX") from None
        except UnicodeDecodeError:
            raise typer.BadParameter(
                f"{path} is not hex text (try: xxd -p {path} | kafkawire explain ... -)",
                param_hint="HEX",
            ) from None
    return " ".join(words)


def parse_hex(text: str) -> bytes:
    """Read hex text; what is none of it is a usage error."""
    try:
        return hex_bytes(text)
    except InputError as error:
        raise typer.BadParameter(str(error), param_hint="HEX") from None


# -- the answer


def show(explanation: Explanation, tree: bool) -> None:
    """Print as JSON, in colour where a person looks, as plain text in a pipe or under NO_COLOR."""
    import json

    from kafkawire.reference import as_json

    if tree:
        typer.echo(json.dumps(as_json(explanation), indent=2))
    elif sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        in_colour(explanation)
    else:
        typer.echo(printable_lines(str(explanation)))


def in_colour(explanation: Explanation) -> None:
    from rich.console import Console
    from rich.text import Text

    from kafkawire.reference.rendering import lines

    console = Console(highlight=False, soft_wrap=True)
    for line in lines(explanation):
        console.print(Text.assemble(*((printable(span.text), STYLES[span.kind]) for span in line)))

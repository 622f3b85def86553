"""`kafkawire explain`: shows the bytes of a message field by field, with the first bad byte marked.

Invalid arguments are usage errors that name the valid values (exit code 2); malformed data is
explained up to the first error (exit code 1).
"""

# over 300 lines: one verb with three kinds of input

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Final

import typer

from ...input import inputs
from ...input.hex_text import is_hex
from ...input.names import checked_version, complete_message, direction_of, message_name
from ...input.options import BrokerOption, KeyLogOption, PortOption, SecretsOption, TunnelOption
from ...input.packages import RegistryOption, registry
from ...input.panels import Panel
from ...input.sources import Known, known, readable, refuse
from ...notes import print_note
from ...render.explanation.output import print_explanation, print_lines

if TYPE_CHECKING:
    from kafkawire import Registry
    from kafkawire.capture.packet_messages import PacketMessage
    from kafkawire.primitives import MessageInfo
    from kafkawire.reference import Explanation

UNDECODABLE: Final = 1


def explain(  # noqa: PLR0913 - options of the verb
    hexadecimal: Annotated[
        list[str],
        typer.Argument(
            metavar="HEX...|CAPTURE",
            help="Bytes as hex, a dump with offsets, an array or a string literal. "
            "- reads standard input, @FILE a file. With --packet or --exchange: a capture file.",
        ),
    ],
    api: Annotated[
        str | None,
        typer.Option(
            metavar="API",
            help="API, message name or API key: Fetch, FetchRequest, 1.",
            autocompletion=complete_message,
            rich_help_panel=Panel.BARE,
        ),
    ] = None,
    version: Annotated[
        int | None, typer.Option(metavar="N", help="API version.", rich_help_panel=Panel.BARE)
    ] = None,
    frame: Annotated[
        bool,
        typer.Option(
            "--frame",
            help="The bytes are a whole frame with size and header.",
            rich_help_panel=Panel.BARE,
        ),
    ] = False,
    direction: Annotated[
        str | None,
        typer.Option(
            metavar="request|response",
            help="Direction [default: from the message name, else request].",
            show_default=False,
            rich_help_panel=Panel.BARE,
        ),
    ] = None,
    tree: Annotated[
        bool, typer.Option("--json", help="Print as JSON.", rich_help_panel=Panel.OUTPUT)
    ] = False,
    show_secrets: SecretsOption = False,
    packet: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Explain the messages that end in this packet.",
            rich_help_panel=Panel.CAPTURES,
        ),
    ] = None,
    exchange: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Explain the requests and responses of the exchanges of which a message ends in "
            "this packet.",
            rich_help_panel=Panel.CAPTURES,
        ),
    ] = None,
    port: PortOption = None,
    broker: BrokerOption = None,
    keylog: KeyLogOption = None,
    tunnel: TunnelOption = None,
    package: RegistryOption = None,
) -> None:
    """Explain a message body or a whole frame, byte by byte.

    \b
    kafkawire explain --api ApiVersions --version 3 02 61 02 62 00
    kafkawire explain --frame 0000000b00120000000000010001 63
    xxd -p frame.bin | kafkawire explain --frame --direction response --api Fetch --version 12 -
    kafkawire explain trace.pcap --packet 116
    kafkawire explain trace.pcap --exchange 116

    Exit code 1: the bytes are not valid; 2: no message ends in the packet, or usage error.
    """
    messages = registry(package)
    if packet is not None or exchange is not None:
        if api or version is not None or frame or direction:
            raise typer.BadParameter(
                "not allowed with --api, --version, --frame or --direction",
                param_hint="--packet, --exchange",
            )
        brokers = known(port, broker, keylog, package, tunnel)
        _explain_captured(hexadecimal, packet, exchange, brokers, tree, show_secrets)
        return
    if port or broker or keylog or tunnel:
        raise typer.BadParameter(
            "only allowed with --packet or --exchange",
            param_hint="--port, --broker, --keylog, --tunnel",
        )
    data, request = parse_hex(read_input(hexadecimal)), None
    if api is None and not frame and inputs.looks_like_frame(data):
        raise inputs.MissingOption(
            f"the {len(data)} bytes begin with their size, as a whole frame does",
            param_hint="--frame",
        )
    if frame:
        request = request_of(api, version, direction, messages)
        explanation = messages.explain_frame(data, request, secrets=show_secrets)
    else:
        info = find_message(messages, api, direction)
        supported = checked_version(info, version)
        explanation = messages.explain(info.name, supported, data, secrets=show_secrets)
    show(explanation, tree)
    if explanation.error is not None:
        if frame and request is None:
            print_note(
                "the frame was read as a request; for a response, add "
                "--direction response --api API --version N"
            )
        raise typer.Exit(UNDECODABLE)


# -- captured messages


def _explain_captured(
    given: list[str],
    packet: int | None,
    exchange: int | None,
    brokers: Known,
    tree: bool,
    secrets: bool,
) -> None:
    """Explain the messages that end in a packet, or their exchanges."""
    if len(given) != 1 or (packet is not None and exchange is not None):
        what = "one capture file" if len(given) != 1 else "one of --packet and --exchange"
        raise typer.BadParameter(f"expected {what}", param_hint="--packet, --exchange")
    number = packet or exchange or 0
    try:
        found = _captured(given[0], number, exchange is not None, brokers)
    except inputs.InputError as error:
        refuse(error)
        raise typer.Exit(2) from None
    if not _show_captured(found, registry(brokers.package), tree, secrets):
        raise typer.Exit(UNDECODABLE)


def _captured(path: str, number: int, whole: bool, brokers: Known) -> list[PacketMessage]:
    """Find the messages. Raises inputs.InputError if there are none."""
    from kafkawire.capture.packet_messages import Known as KnownBrokers
    from kafkawire.capture.packet_messages import Search

    if path == "-" or inputs.is_stream(Path(path)):
        raise inputs.InputError(f"{path}: a stream can be read only once; expected a capture file")
    if not inputs.is_capture(inputs.first_bytes(Path(path))):
        raise inputs.InputError(f"{path}: not a capture file; --packet and --exchange need one")
    search = Search(path, KnownBrokers(*brokers[:-1]))  # without the path of the key log
    with readable([path]):
        found = search.exchange(number) if whole else search.packet(number)
    if found:
        return found
    if number > search.packets:
        raise inputs.InputError(f"{path}: no packet {number}: the capture has {search.packets}")
    near = [str(each) for each in (search.before, search.after) if each]
    one = "does" if len(near) == 1 else "do"
    hint = f"; the nearest that {one}: {' and '.join(near)}" if near else ""
    raise inputs.InputError(
        f"{path}: no {'Kafka ' * (brokers.package is None)}message ends in packet {number}{hint}"
    )


def _show_captured(
    found: list[PacketMessage], messages: Registry, tree: bool, secrets: bool
) -> bool:
    """Print messages; returns whether all of them are valid."""
    import json

    from kafkawire.capture.frames.decoding import located

    from ...render.explanation import captured

    valid = True
    shown: list[dict[str, object]] = []
    for at, message in enumerate(found):
        row = located(message.located).row
        explanation = captured.explanation(message, row, messages, secrets)
        valid = valid and (explanation is None or explanation.error is None)
        if tree:
            shown.append(captured.as_json(message, row, explanation))
            continue
        if at:
            typer.echo()
        print_lines(captured.heading(message, row))
        if explanation is None:
            status = row.status.value
            print_lines([f"  its {row.length} bytes cannot be explained: status {status}"])
        else:
            show(explanation, tree=False)
    if tree:
        typer.echo(json.dumps(shown, indent=2))
    return valid


# -- message type


def request_of(
    api: str | None, version: int | None, direction: str | None, messages: Registry
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
    info = find_message(messages, api, direction, "with --direction response")
    assert info.api_key is not None  # every response has an API key
    return info.api_key, checked_version(info, version)


def find_message(
    messages: Registry, api: str | None, direction: str | None, required: str = "without --frame"
) -> MessageInfo:
    """Find the message type named by --api and --direction."""
    if api is None:
        raise inputs.MissingOption(f"required {required}", param_hint="--api")
    expected = None if direction is None else direction_of(direction)
    info = messages.get(message_name(api, expected or "request", messages))
    if expected is not None and info.type != expected:
        raise typer.BadParameter(
            f"{info.name} is a {info.type}, not a {expected}", param_hint="--direction"
        )
    return info


# -- input


def read_input(arguments: list[str]) -> str:
    """Read hex text from the command line, standard input (`-`) or a file (`@FILE`)."""
    if arguments == ["-"]:
        return _limited(sys.stdin.buffer, "standard input").decode("utf-8", "replace")
    if len(arguments) == 1 and arguments[0].startswith("@"):
        path = Path(arguments[0][1:])
        try:
            with path.open("rb") as file:
                return _limited(file, str(path)).decode("ascii")
        except OSError as error:
            raise typer.BadParameter(f"{path}: {error.strerror}", param_hint="HEX") from None
        except UnicodeDecodeError:
            raise typer.BadParameter(
                f"{path} is not hex text (try: xxd -p {path} | kafkawire explain ... -)",
                param_hint="HEX",
            ) from None
    name = arguments[0]
    if len(arguments) == 1 and not is_hex(os.fsencode(name)) and os.path.isfile(name):
        raise inputs.MissingOption(
            f"{name} is a file: which packet of a capture? (@{name} reads hex text)",
            param_hint="--packet or --exchange",
        )
    return " ".join(arguments)


def _limited(file: IO[bytes], name: str) -> bytes:
    try:
        return inputs.read_limited(file, name)
    except inputs.InputError as error:
        raise typer.BadParameter(str(error), param_hint="HEX") from None


def parse_hex(text: str) -> bytes:
    """Parse hex text; invalid text is a usage error."""
    try:
        return inputs.hex_bytes(text)
    except inputs.InputError as error:
        raise typer.BadParameter(str(error), param_hint="HEX") from None


# -- output


def show(explanation: Explanation, tree: bool) -> None:
    """Print as JSON, or as text."""
    import json

    from kafkawire.reference import as_json

    if tree:
        typer.echo(json.dumps(as_json(explanation), indent=2))
    else:
        print_explanation(explanation)

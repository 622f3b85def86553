"""Options, inputs and output shared by the verbs that report on captures.

Law: all files are read as one capture; a file that is not a capture is reported on standard error
and skipped.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Final, Generic, NamedTuple, TypeVar

import typer

from kafkawire.escaping import printable

from ..pipes import drop_output
from ..render.progress import progress
from . import inputs
from .inputs import InputError

if TYPE_CHECKING:
    from kafkawire.reports.reading import Reading

    from ..render.report import Section


T = TypeVar("T")


class Form(StrEnum):
    """Output formats of a report."""

    TABLE = "table"
    JSON = "json"


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...", help="Capture files or directories, read as one capture; - for stdin."
    ),
]
FormOption = Annotated[Form, typer.Option("--format", "-f", help="Output format.")]
PortOption = Annotated[
    list[int] | None,
    typer.Option(
        min=1,
        max=65535,
        metavar="PORT",
        help="Broker port [default: detect Kafka on any port]; repeatable.",
        show_default=False,
    ),
]
BrokerOption = Annotated[
    list[str] | None, typer.Option(metavar="HOST:PORT", help="Broker address; repeatable.")
]
TopOption = Annotated[
    int | None,
    typer.Option(
        "--top",
        min=1,
        metavar="N",
        help="Show at most N entries of each list [default: 10; all with --format json]",
        show_default=False,
    ),
]
AllOption = Annotated[bool, typer.Option("--all", help="Show all entries of each list.")]
SHOWN: Final = 10
"""Entries of a list shown as text, without --top and --all."""


class Shown(NamedTuple, Generic[T]):
    """The first entries of a list, and the number of the others."""

    first: list[T]
    left_out: int

    def more(self, noun: str) -> tuple[str, ...]:
        """Describe how many entries are not shown, and how to see them."""
        if not self.left_out:
            return ()
        total = len(self.first) + self.left_out
        return (f"... and {self.left_out:,} more {noun} (--top {total} or --all shows them)",)


def limit(most: int | None, every: bool, form: Form) -> int | None:
    """Return the number of entries of each list to show, from `--top` and `--all`; None for all."""
    if every and most is not None:
        raise typer.BadParameter("not allowed together with --top", param_hint="--all")
    if every or (most is None and form is Form.JSON):
        return None
    return SHOWN if most is None else most


def top(found: Sequence[T], most: int | None) -> Shown[T]:
    """Return the first `most` entries of a list; None for all."""
    first = list(found[:most])
    return Shown(first, len(found) - len(first))


@contextmanager
def reading(
    verb: str, given: list[str], ports: list[int] | None, brokers: list[str] | None
) -> Iterator[Reading]:
    """Open the captures; unreadable input ends the verb with exit code 2."""
    try:
        from kafkawire.capture.multifile import Traffic
        from kafkawire.reports.reading import Reading

        endpoints, found = known(ports, brokers), sources(verb, given)
        with progress(found.captures) as watch, readable(given):
            traffic = Traffic(
                found.captures, endpoints.ports, brokers=endpoints.addresses, watch=watch
            )
            yield Reading(traffic, watch, found.refused)
    except InputError as error:
        refuse(verb, error)
        raise typer.Exit(2) from None


def refuse(verb: str, error: InputError) -> None:
    """Report an input that cannot be read."""
    typer.echo(printable(f"kafkawire {verb}: {error}"), err=True)


@contextmanager
def readable(given: list[str], output: Path | None = None) -> Iterator[None]:
    """Convert errors of reading captures and writing output into InputErrors that name the file."""
    from kafkawire.errors import CaptureError

    try:
        yield
    except CaptureError as error:
        raise InputError(f"{', '.join(given)}: {error}") from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"{error.filename or output or 'output'}: {error.strerror}") from None


class Sources(NamedTuple):
    """Captures to be read as one. refused: the number of inputs that are not captures."""

    captures: list[Path | BinaryIO]
    refused: int


def sources(verb: str, given: list[str]) -> Sources:
    """Find the captures to be read as one: files, or a single stream.

    Files that are not captures are reported and skipped; InputError if none is left.
    """
    paths = [Path("-")] if given == ["-"] else list(inputs.expand(Path(name) for name in given))
    streams = [path for path in paths if str(path) == "-" or inputs.is_stream(path)]
    if streams:
        if len(paths) > 1:
            raise typer.BadParameter(f"{streams[0]} is a stream: it must be the only input")
        return Sources([_stream(str(streams[0]))], 0)
    found: list[Path | BinaryIO] = []
    for path in paths:
        try:
            _must_be_capture(inputs.first_bytes(path), str(path))
        except InputError as error:
            if len(paths) == 1:
                raise
            refuse(verb, error)
        else:
            found.append(path)
    if not found:
        raise InputError("no capture files among the inputs")
    return Sources(found, len(paths) - len(found))


def _stream(name: str) -> BinaryIO:
    path = Path(name)  # a pipe, which is read to its end
    stream = inputs.standard_input() if name == "-" else path.open("rb")
    head, whole = inputs.peek(stream, name)
    _must_be_capture(head, name)
    return whole


def _must_be_capture(head: bytes, name: str) -> None:
    from kafkawire.capture.files.recognition import check_head
    from kafkawire.errors import CaptureError

    try:
        check_head(head)
    except CaptureError as error:
        raise InputError(f"{name}: {error.reason}") from None


class Known(NamedTuple):
    """Known brokers: their ports, and their addresses as `address:port`."""

    ports: list[int]
    addresses: list[str]


def known(ports: list[int] | None, brokers: list[str] | None) -> Known:
    """Parse `--port` and `--broker`. Host names are resolved."""
    if not brokers:
        return Known(ports or [], [])
    from kafkawire.capture.engine import endpoint

    found: list[str] = []
    for text in brokers:
        try:
            endpoint(text)
            found.append(text)
        except ValueError:
            found += _resolved(text)
    return Known(ports or [], found)


def _resolved(text: str) -> list[str]:
    import socket

    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise typer.BadParameter(
            f"invalid address {text!r}: expected HOST:PORT", param_hint="--broker"
        )
    try:
        addresses = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise typer.BadParameter(f"{host!r}: {reason}", param_hint="--broker") from None
    return [
        f"[{address[0]}]:{port}" if family == socket.AF_INET6 else f"{address[0]}:{port}"
        for family, *_, address in addresses
    ]


def show(
    captures: Reading,
    form: Form,
    sections: Callable[[], Iterable[Section]],
    as_json: Callable[[], dict[str, Any]],
) -> None:
    """Print a report as text or as one JSON object; only the form printed is computed.

    Exit 2 if a file was refused, because the report is incomplete, also if the output pipe was
    closed.
    """
    from ..render.report import print_sections

    try:
        if form is Form.JSON:
            print(json.dumps(as_json(), indent=2, allow_nan=False))
        else:
            print_sections(sections())
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
    if captures.refused:
        raise typer.Exit(2)

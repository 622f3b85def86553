"""What the verbs about captures have in common: options, the captures given, the report printed.

Law: every file given is part of one capture; a file that is none is named, and nothing is read.
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


Found = TypeVar("Found")


class Form(StrEnum):
    """Forms of a report."""

    TABLE = "table"
    JSON = "json"


Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE", help="Captures, read as one; directories of them; - for stdin."),
]
FormOption = Annotated[Form, typer.Option("--format", "-f", help="For people, or for programs.")]
PortOption = Annotated[
    list[int] | None,
    typer.Option(min=1, max=65535, help="Broker port; otherwise Kafka is recognised on any port."),
]
BrokerOption = Annotated[
    list[str] | None, typer.Option(metavar="HOST:PORT", help="A broker's address and port.")
]
TopOption = Annotated[
    int | None,
    typer.Option(
        "--top",
        min=1,
        metavar="N",
        help="Entries of each list to show [default: 10; as JSON all]",
        show_default=False,
    ),
]
AllOption = Annotated[bool, typer.Option("--all", help="Show all entries of each list.")]
SHOWN: Final = 10
"""Entries of a list that a person sees, unless --top or --all says otherwise."""


class Shown(NamedTuple, Generic[Found]):
    """The first of a list, and how many more there are."""

    first: list[Found]
    left_out: int

    def more(self, noun: str) -> tuple[str, ...]:
        """Say how many are not shown, and how to see them; nothing where all are."""
        if not self.left_out:
            return ()
        total = len(self.first) + self.left_out
        return (f"... and {self.left_out:,} more {noun}: --top {total} or --all",)


def limit(most: int | None, every: bool, form: Form) -> int | None:
    """Return how many entries of each list to show, by `--top` and `--all`; None for all."""
    if every and most is not None:
        raise typer.BadParameter("not together with --top", param_hint="--all")
    if every or (most is None and form is Form.JSON):
        return None
    return SHOWN if most is None else most


def top(found: Sequence[Found], most: int | None) -> Shown[Found]:
    """Take the first `most` of a list; None for all."""
    first = list(found[:most])
    return Shown(first, len(found) - len(first))


@contextmanager
def reading(
    verb: str, given: list[str], ports: list[int] | None, brokers: list[str] | None
) -> Iterator[Reading]:
    """Open the captures given; what cannot be read at all ends the verb with exit code 2."""
    try:
        from kafkawire.capture.multifile import Traffic
        from kafkawire.reports.reading import Reading

        said, found = known(ports, brokers), sources(verb, given)
        with progress(found.captures) as watch, readable(given):
            traffic = Traffic(found.captures, said.ports, brokers=said.addresses, watch=watch)
            yield Reading(traffic, watch, found.refused)
    except InputError as error:
        refuse(verb, error)
        raise typer.Exit(2) from None


def refuse(verb: str, error: InputError) -> None:
    """Say what cannot be read."""
    typer.echo(printable(f"kafkawire {verb}: {error}"), err=True)


@contextmanager
def readable(given: list[str], output: Path | None = None) -> Iterator[None]:
    """Turn what reading captures and writing what they say may raise into an InputError that names
    the file.
    """
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
    """Captures to be read as one; refused: how many more were given that are none."""

    captures: list[Path | BinaryIO]
    refused: int


def sources(verb: str, given: list[str]) -> Sources:
    """Find the captures that are read as one: files, or one stream alone. What is none is named,
    and the rest is read; InputError where there is no rest.
    """
    paths = [Path("-")] if given == ["-"] else list(inputs.expand(Path(name) for name in given))
    streams = [path for path in paths if str(path) == "-" or inputs.is_stream(path)]
    if streams:
        if len(paths) > 1:
            raise typer.BadParameter(f"{streams[0]} is a stream, and no part of a set of files")
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
    path = Path(name)  # a pipe: it is read to its end
    stream = inputs.standard_input() if name == "-" else path.open("rb")
    head, whole = inputs.looked_at(stream, name)
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
    """Brokers that are known: their ports, and their addresses as `address:port`."""

    ports: list[int]
    addresses: list[str]


def known(ports: list[int] | None, brokers: list[str] | None) -> Known:
    """Read `--port` and `--broker`; a host's name stands for its addresses, as this machine knows
    them.
    """
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
        raise typer.BadParameter(f"{text!r} is no HOST:PORT", param_hint="--broker")
    try:
        told = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise typer.BadParameter(f"{host!r}: {reason}", param_hint="--broker") from None
    return [
        f"[{address[0]}]:{port}" if family == socket.AF_INET6 else f"{address[0]}:{port}"
        for family, *_, address in told
    ]


def show(
    captures: Reading,
    form: Form,
    sections: Callable[[], Iterable[Section]],
    made: Callable[[], dict[str, Any]],
) -> None:
    """Print a report: its sections for a person, or one JSON object; only that is made which is
    printed. Exit 2 where a file was refused, as the report is not of all then. A reader that leaves
    early changes nothing about it.
    """
    from ..render.report import print_sections

    try:
        if form is Form.JSON:
            print(json.dumps(made(), indent=2, allow_nan=False))
        else:
            print_sections(sections())
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
    if captures.refused:
        raise typer.Exit(2)

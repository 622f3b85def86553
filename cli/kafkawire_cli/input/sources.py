"""Opens captures, for the verbs that read several files as one.

All files are read as one capture; a file that is not a capture is reported on standard error
and skipped.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

import typer

from kafkawire.display import host_and_port, plural, printable
from kafkawire.whole_numbers import whole_number

from .. import pipes
from ..notes import print_note
from . import inputs
from .captures.progress import progress
from .directories import expand
from .filters import parse_filter
from .inputs import InputError
from .options import ReportOptions

if TYPE_CHECKING:
    from kafkawire.capture.files.listing import Directory
    from kafkawire.capture.tls.keylog import KeyLog
    from kafkawire.errors import CaptureError
    from kafkawire.reports.reading import Reading


INTERRUPTED: Final = 130
"""Exit code after an interrupt: 128 and the number of SIGINT, as shells have it."""


@contextmanager
def reading(files: list[str], options: ReportOptions) -> Iterator[Reading]:
    """Open the captures; unreadable input ends the verb with exit code 2.

    An interrupt ends the captures: the report covers what was read.
    """
    pipes.keep_memory()
    try:
        from kafkawire.capture.multifile import Traffic
        from kafkawire.reports.reading import Reading

        from .captures.interrupts import InterruptibleTraffic, interrupts

        where = parse_filter(options.filters)
        endpoints = known(options.port, options.broker, options.keylog, tunnels=options.tunnel)
        inputs_of_verb = sources(files)
        with progress(inputs_of_verb.captures) as watch, readable(files):
            traffic = Traffic(
                inputs_of_verb.captures,
                endpoints.ports,
                brokers=endpoints.addresses,
                watch=watch,
                keylog=endpoints.keylog,
                tunnels=endpoints.tunnels,
            )
            with interrupts() as noted:
                captures = Reading(
                    InterruptibleTraffic.of(traffic, noted), watch, inputs_of_verb.refused, where
                )
                yield captures
        captures.interrupted = noted.requested
    except InputError as error:
        refuse(error)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:  # before the first packet, or the second one
        raise typer.Exit(INTERRUPTED) from None


def refuse(error: InputError) -> None:
    """Report an input that cannot be read."""
    print_note(str(error))


@contextmanager
def readable(files: list[str], output: Path | None = None) -> Iterator[None]:
    """Convert errors of reading captures and writing output into InputErrors that name the file."""
    from kafkawire.errors import CaptureError

    try:
        yield
    except CaptureError as error:
        raise InputError(f"{', '.join(files)}: {error}") from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"{error.filename or output or 'output'}: {error.strerror}") from None


class FileProblems:
    """Collects the problems of files that are truncated or corrupt, each once; see `Traffic`."""

    def __init__(self) -> None:
        self._problems: dict[str, None] = {}  # several passes find the same

    def add(self, file: str, problem: CaptureError) -> None:
        """Add a problem of a file."""
        self._problems[f"{file}: {problem}"] = None

    @property
    def all(self) -> list[str]:
        """The problems, each with its file."""
        return list(self._problems)

    def report(self) -> None:
        """Report the problems, a line each: what was read before the damage is in the output."""
        for text in self._problems:
            refuse(InputError(text))


def report_ignored(directory: Path, listed: Directory) -> None:
    """Report what a directory has that is not read: files that are not captures, directories."""
    from kafkawire.capture.files.listing import SHOWN, links_not_read, not_read

    files, subdirectories = listed.ignored, listed.subdirectories
    if files:
        names = [file.name for file in files[:SHOWN]] + ["..."] * (len(files) > SHOWN)
        note = f"{plural(len(files), 'file')} ignored, not captures by name or content"
        print_note(f"{directory}: {note}: {', '.join(names)}")
    if subdirectories:
        print_note(f"{directory}: {not_read([each.name for each in subdirectories])}")
    if listed.links:
        print_note(f"{directory}: {links_not_read(listed.links)}")


def check_output(outputs: Iterable[Path], files: Iterable[str | Path | None]) -> None:
    """Check that no output file is an input, also by a link: writing it would destroy the input.

    files: inputs as given, standard input as `-`; those that do not exist are reported when they
    are read. Raises a usage error.
    """
    existing = {_identity(to.stat()): to for to in outputs if os.path.exists(to)}
    if not existing:
        return
    for about in _inputs(each for each in files if each is not None):
        to = existing.get(_identity(about))
        if to is not None:
            raise typer.BadParameter(printable(f"{to} is one of the inputs"), param_hint="--output")


def _inputs(files: Iterable[str | Path]) -> Iterator[os.stat_result]:
    for name in files:
        if str(name) == "-":
            with suppress(OSError):  # tests replace standard input
                yield os.fstat(sys.stdin.fileno())
            continue
        with suppress(OSError, ValueError, InputError):
            yield from [path.stat() for path in expand([Path(name)])]


def _identity(about: os.stat_result) -> tuple[int, int]:
    return about.st_dev, about.st_ino


class Sources(NamedTuple):
    """Captures to be read as one. refused: the number of inputs that are not captures."""

    captures: list[Path | BinaryIO]
    refused: int


def sources(files: list[str]) -> Sources:
    """Find the captures to be read as one: files, or a single stream.

    Files that are not captures are reported and skipped; InputError if none is left.
    """
    paths = [Path("-")] if files == ["-"] else list(expand(map(Path, files), report_ignored))
    streams = [path for path in paths if str(path) == "-" or inputs.is_stream(path)]
    if streams:
        if len(paths) > 1:
            raise typer.BadParameter(f"{streams[0]} is a stream: it must be the only input")
        return Sources([_stream(str(streams[0]))], 0)
    captures: list[Path | BinaryIO] = []
    for path in paths:
        try:
            with inputs.opened(path) as file:
                _must_be_capture(inputs.parts(file), str(path))
        except InputError as error:
            if len(paths) == 1:
                raise
            refuse(error)
        else:
            captures.append(path)
    if not captures:
        raise InputError("no capture files among the inputs")
    return Sources(captures, len(paths) - len(captures))


def _stream(name: str) -> BinaryIO:
    path = Path(name)  # a pipe, which is read to its end
    stream = inputs.standard_input() if name == "-" else path.open("rb")
    peeked = inputs.Peeked(stream)
    _must_be_capture(peeked, name)
    return peeked.whole()


def _must_be_capture(stored: Iterable[bytes], name: str) -> None:
    from kafkawire.capture.files.recognition import check_head
    from kafkawire.errors import CaptureError

    try:
        check_head(stored)
    except CaptureError as error:
        raise InputError(f"{name}: {error.reason}") from None


class Known(NamedTuple):
    """Known brokers: their ports, and their addresses as `address:port`; a TLS key log.

    key_log: as read once, since it may be a pipe. package: the import name of the messages'
    package; None for Kafka's. tunnels: those on other UDP ports. keylog_file: of the key log.
    """

    ports: list[int]
    addresses: list[str]
    key_log: KeyLog | None = None
    package: str | None = None
    tunnels: Sequence[str] = ()
    keylog_file: Path | None = None

    @property
    def keylog(self) -> KeyLog | None:
        """The key log for one reading of captures, whose own secrets are added to it."""
        return None if self.key_log is None else self.key_log.copy()


def known(
    ports: list[int] | None,
    brokers: list[str] | None,
    keylog: Path | None = None,
    package: str | None = None,
    tunnels: list[str] | None = None,
) -> Known:
    """Parse `--port`, `--broker`, `--keylog` and `--tunnel`. Host names are resolved."""
    key_log = None if keylog is None else _key_log(keylog)
    if tunnels:
        _check_tunnels(tunnels)
    if not brokers:
        return Known(ports or [], [], key_log, package, tunnels or (), keylog)
    from kafkawire.capture.tcp.connection import endpoint

    endpoints: list[str] = []
    for text in brokers:
        try:
            endpoint(text)
            endpoints.append(text)
        except ValueError:
            endpoints += _resolved(text)
    return Known(ports or [], endpoints, key_log, package, tunnels or (), keylog)


def _check_tunnels(tunnels: list[str]) -> None:
    from kafkawire.capture.packets.kinds import udp_ports

    try:
        udp_ports(tunnels)
    except ValueError as error:
        raise typer.BadParameter(printable(str(error)), param_hint="--tunnel") from None


def _key_log(path: Path) -> KeyLog:
    from kafkawire.capture.tls.keylog import KeyLogError, read_key_log

    try:
        return read_key_log(path)
    except KeyLogError as error:
        reason = error.reason
    except OSError as error:
        reason = error.strerror or str(error)
    raise typer.BadParameter(printable(f"{path}: {reason}"), param_hint="--keylog")


def _resolved(text: str) -> list[str]:
    import socket

    host, _, port = text.rpartition(":")
    number = whole_number(port, 0xFFFF)
    if not (host and number):
        raise typer.BadParameter(
            f"invalid address {text!r}: expected HOST:PORT", param_hint="--broker"
        )
    try:
        addresses = socket.getaddrinfo(host, number, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise typer.BadParameter(f"{host!r}: {reason}", param_hint="--broker") from None
    return [host_and_port(str(address[0]), number) for *_, address in addresses]

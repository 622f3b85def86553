"""Reads the inputs of `decode` one by one as rows: captures, frames, hex text.

An input that cannot be read raises an InputError that names it and the reason.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from kafkawire.display import plural

from ..notes import print_note
from . import inputs
from .captures.progress import note_without_rows, progress
from .directories import Ignored, expand
from .inputs import Entry, Format, InputError, MissingOption
from .names import checked_version, direction_of, message_of
from .packages import registry
from .sources import Known, report_ignored

if TYPE_CHECKING:
    from kafkawire import Registry
    from kafkawire.capture.files.listing import Directory
    from kafkawire.capture.filters import Filter
    from kafkawire.capture.filters.unmatched import Unmatched
    from kafkawire.capture.rows import Row


class BareBody(NamedTuple):
    """The type of a bare message body: `--api`, `--version`, `--direction`."""

    api_key: int
    version: int
    direction: str


def bare_body(
    api: str | None, version: int | None, direction: str | None, messages_of: Registry | None
) -> BareBody | None:
    """Return the type that options name, None without `--api`; usage errors for what is unknown."""
    if api is None:
        if version is not None or direction is not None:
            raise MissingOption("required by --version and --direction", param_hint="--api")
        return None
    towards = direction_of(direction or "request")
    info = message_of(api, towards, messages_of)
    assert info.api_key is not None  # every request and response has one
    if version is None:
        name = info.name.removesuffix("Request").removesuffix("Response")
        versions = f"{info.name} has versions {info.first}-{info.last}"
        raise MissingOption(
            f"{versions}; to select from captures: --filter 'api == {name}'",
            param_hint="--version",
        )
    return BareBody(info.api_key, checked_version(info, version), towards)


def each_file(arguments: list[str], ignored: Ignored | None = None) -> Iterator[str]:
    """Replace directories and patterns by the captures they stand for.

    So an invalid file does not affect the others.
    """
    for name in arguments:
        is_text = name == "-" or inputs.is_hex_argument(name)
        try:
            files = [name] if is_text else list(map(str, expand([Path(name)], ignored)))
        except InputError:
            files = [name]  # no captures: reported when it is read
        yield from files


def capture_files(arguments: list[str], form: Format, bare: BareBody | None) -> list[Path]:
    """Return the files if all inputs are capture files, otherwise nothing."""
    if bare is not None or any(name == "-" or inputs.is_hex_argument(name) for name in arguments):
        return []
    ignored: list[tuple[Path, Directory]] = []
    try:
        files = list(expand(map(Path, arguments), lambda *each: ignored.append(each)))
    except InputError:
        return []  # reported when it is read
    if any(inputs.is_stream(file) for file in files):
        return []
    try:
        kinds = [_kind(form, bare, inputs.first_bytes(file), str(file)) for file in files]
    except InputError:
        return []  # reported when it is read
    if not all(kind is Format.CAPTURE for kind in kinds):
        return []
    for each in ignored:
        report_ignored(*each)
    return files


class Wanted(NamedTuple):
    """What to read of an input: the known brokers, and the filter.

    unmatched: gets what the filter compares until something matches.
    """

    brokers: Known
    where: Filter | None
    unmatched: Unmatched | None = None


def entries(name: str, form: Format, bare: BareBody | None, wanted: Wanted) -> Iterator[Entry]:
    """Decode an input: a file, a directory, hex text, or `-` for standard input."""
    if name == "-":
        yield from _stream(name, inputs.standard_input(), form, bare, wanted)
        return
    if inputs.is_hex_argument(name):
        yield from _bytes("hex argument", name.encode(), Format.HEX, bare, wanted)
        return
    from kafkawire.capture.files.listing import PATTERN

    if not os.path.exists(name) and not PATTERN.search(name):
        raise inputs.InputError(f"{name}: No such file or directory, and not hex text")
    for file in expand([Path(name)]):
        if inputs.is_stream(file):
            with file.open("rb") as stream:
                yield from _stream(name, stream, form, bare, wanted)
            continue
        kind = _kind(form, bare, inputs.first_bytes(file), str(file))
        if kind in CAPTURES:
            yield from _capture(str(file), wanted, file, kind)
        else:
            yield from _bytes(str(file), file.read_bytes(), kind, bare, wanted)


def _stream(
    name: str, source: BufferedReader, form: Format, bare: BareBody | None, wanted: Wanted
) -> Iterator[Entry]:
    head, stream = inputs.peek(source, name)
    kind = _kind(form, bare, head, name)
    if kind in CAPTURES:
        yield from _capture(name, wanted, stream, kind)
    else:
        yield from _bytes(name, inputs.read_limited(stream, name), kind, bare, wanted)


def _kind(form: Format, bare: BareBody | None, head: bytes, name: str) -> Format:
    if form is not Format.AUTO:
        return form
    if bare is not None:
        from .hex_text import is_hex

        return Format.HEX if is_hex(head) else Format.FRAMES
    return inputs.recognise(head, name)


def _bytes(
    name: str, data: bytes, kind: Format, bare: BareBody | None, wanted: Wanted
) -> Iterator[Entry]:
    from kafkawire.capture.frames.bare import decode_body

    data = inputs.unpacked(data, name)
    if kind is Format.HEX:
        data = _digits(data, name)
    package = wanted.brokers.package
    messages = None if package is None else registry(package)
    rows: Iterable[Row]
    if bare is None:
        rows = _frames(name, data, kind, messages)
    else:
        rows = [decode_body(*bare, data, registry=messages)]
        if inputs.looks_like_frame(data):
            _note(name, f"the {len(data)} bytes begin with their size, as a frame does; {RESPONSE}")
    undecoded = False
    for row in _selected(rows, wanted):
        undecoded = undecoded or row.status in UNDECODED
        yield Entry(name, None, None, None, row)
    if undecoded and bare is None and kind is Format.HEX:
        _note(name, f"frames are read as requests that begin with their sizes; {RESPONSE}; {BODY}")


def _frames(name: str, data: bytes, kind: Format, messages: Registry | None) -> Iterable[Row]:
    """Decode frames; hex text of one request may begin without its size.

    Raises InputError for hex text that is shorter than the size and the header of any frame.
    """
    from kafkawire.capture.frames.bare import decode_frames
    from kafkawire.capture.rows import CLEAN

    if kind is not Format.HEX:
        return decode_frames(data, registry=messages)
    if len(data) < inputs.SHORTEST_FRAME:
        size = plural(len(data), "byte")
        raise InputError(
            f"{name}: {size}: too short for a frame, which begins with its size and a header of "
            f"{inputs.SHORTEST_FRAME} bytes or more together; {BODY}"
        )
    if int.from_bytes(data[:4], "big") > len(data):
        whole = len(data).to_bytes(4, "big") + data
        rows = list(decode_frames(whole, registry=messages))
        if len(rows) == 1 and rows[0].status in CLEAN:
            read = f"read as one request of {plural(len(data), 'byte')}"
            _note(name, f"no size in front (frames begin with their sizes): {read}")
            return rows
    return decode_frames(data, registry=messages)


RESPONSE: Final = (
    "for a response: kafkawire explain --frame --direction response --api API --version N"
)
BODY: Final = "for a body without a header: kafkawire explain --api API --version N"
CAPTURES: Final = frozenset({Format.CAPTURE, Format.TEXT})
UNDECODED: Final = frozenset(
    {"malformed", "truncated", "unknown_api", "unknown_version", "guessed"}
)
"""Statuses of what may not be a frame of a request."""


def _note(name: str, text: str) -> None:
    print_note(f"{name}: {text}")


def _selected(rows: Iterable[Row], wanted: Wanted) -> Iterator[Row]:
    """Apply a filter to rows without packets."""
    if wanted.where is None:
        yield from rows
        return
    from kafkawire.capture.rows import Located
    from kafkawire.capture.selection.selecting import Selection

    selection = Selection[Located](wanted.where, unmatched=wanted.unmatched)
    for row in rows:
        for item in selection.handle([Located(None, None, None, row)]):
            if isinstance(item, Located):
                yield item.row


def _digits(text: bytes, name: str) -> bytes:
    try:
        return inputs.hex_bytes(text.decode("latin-1"))
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _capture(name: str, wanted: Wanted, source: Path | BinaryIO, kind: Format) -> Iterator[Entry]:
    from kafkawire.capture.frames.decoding import located
    from kafkawire.capture.multifile import Traffic
    from kafkawire.capture.selection.reading import item_batches
    from kafkawire.errors import CaptureError

    from .captures.printed import PrintedTraffic

    reader = PrintedTraffic if kind is Format.TEXT else Traffic
    brokers = wanted.brokers
    try:
        with progress([source], drawn=not sys.stdout.isatty()) as watch:
            traffic = reader(
                [source],
                brokers.ports,
                brokers=brokers.addresses,
                watch=watch,
                keylog=brokers.keylog,
                package=brokers.package,
                tunnels=brokers.tunnels,
            )
            for items in item_batches(traffic, wanted.where, wanted.unmatched):
                for placed in map(located, items):
                    yield Entry(name, *placed, traffic.first_ns)
        note_without_rows(traffic, watch.packets, name)
    except CaptureError as error:
        raise InputError(f"{name}: {error}") from None

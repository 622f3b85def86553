"""Reads the inputs of `decode` one by one as rows: captures, frames, hex text.

Law: an input that cannot be read raises an InputError that names it and the reason.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, NamedTuple

from . import inputs
from .inputs import Entry, Format, InputError
from .progress import progress
from .sources import Known


class BareBody(NamedTuple):
    """The type of a bare message body: `--api`, `--version`, `--direction`."""

    api_key: int
    version: int
    direction: str


def each_file(given: list[str]) -> Iterator[str]:
    """Replace directories by the captures in them.

    So an invalid file does not affect the others.
    """
    for name in given:
        is_directory = name != "-" and not inputs.is_hex_argument(name) and Path(name).is_dir()
        try:
            files = [str(file) for file in inputs.expand([Path(name)])] if is_directory else [name]
        except InputError:
            files = [name]  # no captures: reported when it is read
        yield from files


def capture_files(given: list[str], form: Format, bare: BareBody | None) -> list[Path]:
    """Return the files if all inputs are capture files, otherwise nothing."""
    if bare is not None or any(name == "-" or inputs.is_hex_argument(name) for name in given):
        return []
    try:
        files = list(inputs.expand(Path(name) for name in given))
    except InputError:
        return []  # reported when it is read
    if any(inputs.is_stream(file) for file in files):
        return []
    try:
        kinds = [_kind(form, bare, inputs.first_bytes(file), str(file)) for file in files]
    except InputError:
        return []  # reported when it is read
    return files if all(kind is Format.CAPTURE for kind in kinds) else []


def entries(name: str, form: Format, bare: BareBody | None, brokers: Known) -> Iterator[Entry]:
    """Decode an input: a file, a directory, hex text, or `-` for standard input."""
    if name == "-":
        yield from _stream(name, inputs.standard_input(), form, bare, brokers)
        return
    if inputs.is_hex_argument(name):
        yield from _bytes("hex argument", name.encode(), Format.HEX, bare)
        return
    for file in inputs.expand([Path(name)]):
        if inputs.is_stream(file):
            with file.open("rb") as stream:
                yield from _stream(name, stream, form, bare, brokers)
            continue
        kind = _kind(form, bare, inputs.first_bytes(file), str(file))
        if kind is Format.CAPTURE:
            yield from _capture(str(file), brokers, file)
        else:
            yield from _bytes(str(file), file.read_bytes(), kind, bare)


def _stream(
    name: str, given: BufferedReader, form: Format, bare: BareBody | None, brokers: Known
) -> Iterator[Entry]:
    head, stream = inputs.peek(given, name)
    kind = _kind(form, bare, head, name)
    if kind is Format.CAPTURE:
        yield from _capture(name, brokers, stream)
    else:
        yield from _bytes(name, stream.read(), kind, bare)


def _kind(form: Format, bare: BareBody | None, head: bytes, name: str) -> Format:
    if form is not Format.AUTO:
        return form
    if bare is not None:
        return Format.HEX if inputs.is_hex(head) else Format.FRAMES
    return inputs.recognise(head, name)


def _bytes(name: str, data: bytes, kind: Format, bare: BareBody | None) -> Iterator[Entry]:
    from kafkawire.capture.frames.bare import decode_body, decode_frames

    data = inputs.unpacked(data, name)
    if kind is Format.HEX:
        data = _digits(data, name)
    rows = decode_frames(data) if bare is None else [decode_body(*bare, data)]
    for row in rows:
        yield Entry(name, None, None, None, row)


def _digits(text: bytes, name: str) -> bytes:
    try:
        return inputs.hex_bytes(text.decode("latin-1"))
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _capture(name: str, brokers: Known, source: Path | BinaryIO) -> Iterator[Entry]:
    from kafkawire.capture.multifile import decode_capture
    from kafkawire.errors import CaptureError

    try:
        with progress([source], drawn=not sys.stdout.isatty()) as watch:
            rows = decode_capture(
                source,
                ports=brokers.ports,
                brokers=brokers.addresses,
                watch=watch,
                keylog=brokers.keylog,
            )
            for found in rows:
                yield Entry(name, found.connection, found.client, found.broker, found.row)
    except CaptureError as error:
        raise InputError(f"{name}: {error}") from None

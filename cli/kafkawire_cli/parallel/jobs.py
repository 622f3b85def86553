"""Captures in files, decoded a batch of rows at a time; `--jobs N`: by several processes.

Law: what is printed is what one process prints, byte for byte and in the same order; how much waits
is bounded, so memory does not grow with the captures.

    one process     batch by batch, framed, opened and printed
    a few           this process frames and pairs --parcels--> others open and print, and so does
                    this one while they have enough
    many files      each is decoded by one of them
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Final, NamedTuple

from ..input import filters
from ..input.inputs import Entry, InputError
from ..input.sources import Known
from ..render import messages as output
from ..render.messages import Printed, Shape, View
from ..render.progress import progress

if TYPE_CHECKING:
    from kafkawire.capture.frames.serialised import LocatedItem, SerialisedFrames
    from kafkawire.capture.jsonl.rows import Lines

BATCH_ROWS: Final = 512
"""Rows printed at a time."""

AHEAD: Final = 16
"""Batches that another process may have waiting; beyond that, this one prints the next itself."""

FILES_AHEAD: Final = 2
"""Files that another process may have waiting."""

FEW: Final = 3
"""Processes that one which reads for all of them keeps busy: reading is up to half of the work."""


class DecodeOptions(NamedTuple):
    """What to print of each capture: the form, how much of it, which rows, which brokers."""

    form: Shape
    view: View
    wanted: dict[str, list[str]]
    brokers: Known


def decoded(files: Sequence[Path], asked: DecodeOptions, jobs: int) -> Iterator[Printed]:
    """Decode captures with so many processes."""
    if jobs > 1:
        from .ordered_output import can_fork
    if jobs == 1 or not can_fork():
        for file in files:
            yield from _here(file, asked, _drawn())
        return
    yield from (_each if FEW < jobs <= len(files) else _shared)(files, asked, jobs)


def decoded_as_one(files: Sequence[Path], asked: DecodeOptions) -> Iterator[Printed]:
    """Decode captures that are one, in the order of their first packets."""
    from kafkawire.capture.frames.serialised import LocatedItem
    from kafkawire.capture.multifile import Traffic, file_and_packet
    from kafkawire.errors import CaptureError

    def file_of(told: LocatedItem) -> int:
        return file_and_packet(told.item.packet)[0]

    try:
        with progress(files, drawn=_drawn()) as watch:
            traffic = Traffic(
                files, asked.brokers.ports, brokers=asked.brokers.addresses, watch=watch
            )
            for batch in traffic.batches():
                told = [one for one in batch if isinstance(one, LocatedItem)]
                for file, some in groupby(told, file_of):
                    name = str(traffic.sources[file])
                    yield _printed(name, [_within(one) for one in some], asked)
    except CaptureError as error:
        yield Printed(b"", True, InputError(str(error)))


def _within(told: LocatedItem) -> LocatedItem:
    """Number a packet as its file does."""
    from kafkawire.capture.frames.decoding import RawFrame
    from kafkawire.capture.multifile import file_and_packet

    item = told.item
    number = file_and_packet(item.packet)[1]
    if isinstance(item, RawFrame):
        item.packet = number
    else:
        told.item = item._replace(packet=number)
    return told


def _here(file: Path, asked: DecodeOptions, drawn: bool = False) -> Iterator[Printed]:
    """Decode a capture."""
    try:
        for told in _batches(file, asked.brokers, drawn):
            yield from _views(str(file), told, asked)
    except InputError as error:
        yield Printed(b"", True, error)


def _each(files: Sequence[Path], asked: DecodeOptions, jobs: int) -> Iterator[Printed]:
    """Have each capture decoded by a process."""
    from .ordered_output import Turns

    turns = Turns[Path](jobs, partial(_here, asked=asked), FILES_AHEAD)
    try:
        for file in files:
            while not turns.give(partial(Path, file)):
                yield from turns.wait()
        yield from turns.rest()
    finally:
        turns.end()


class _Batch(NamedTuple):
    """Rows of a capture, on their way to another process; frames: those of the parcel, which are
    not copied into a pickle, and arrive as the bytes they were.
    """

    name: str
    parcel: SerialisedFrames
    frames: PickleBuffer


def _shared(files: Sequence[Path], asked: DecodeOptions, jobs: int) -> Iterator[Printed]:
    """Read captures, and share the rest of the work."""
    from kafkawire.capture.jsonl import rows as row_text  # noqa: F401  # the others have them, too

    from .ordered_output import Turns

    turns = Turns[_Batch](jobs - 1, partial(_opened, asked=asked), AHEAD)
    try:
        for file in files:
            name = str(file)
            try:
                for told in _batches(file, asked.brokers, _drawn()):
                    yield from turns.ready()
                    if not turns.give(partial(_packed, name, told)):
                        yield from turns.say(_printed(name, told, asked))
            except InputError as error:
                yield from turns.say(Printed(b"", True, error))
        yield from turns.rest()
    finally:
        turns.end()


def _packed(name: str, told: list[LocatedItem]) -> _Batch:
    from kafkawire.capture.frames.serialised import pack

    parcel = pack(told)
    return _Batch(name, parcel._replace(frames=b""), PickleBuffer(parcel.frames))


def _opened(batch: _Batch, asked: DecodeOptions) -> Iterator[Printed]:
    """Open and print what was read."""
    from kafkawire.capture.frames.serialised import unpack

    told = unpack(batch.parcel._replace(frames=bytes(batch.frames)))
    return _views(batch.name, told, asked)


def _views(name: str, told: list[LocatedItem], asked: DecodeOptions) -> Iterator[Printed]:
    """Give the text of some rows where it was written: it is to be used before the next."""
    if asked.form is not Shape.JSONL or asked.wanted:
        yield _printed(name, told, asked)
        return
    lines = _lines(name, asked.view)
    lines.clean = True
    with lines.view(told) as text:
        yield Printed(text, lines.clean)


def _printed(name: str, told: list[LocatedItem], asked: DecodeOptions) -> Printed:
    from kafkawire.capture.engine import located

    if asked.form is Shape.JSONL and not asked.wanted:
        lines = _lines(name, asked.view)
        lines.clean = True
        return Printed(lines.text(told), lines.clean)
    text = output.text(asked.form, asked.view)
    clean = True
    texts = []
    for one in told:
        found = located(one)
        entry = Entry(name, found.connection, found.client, found.broker, found.row)
        if not asked.wanted or filters.keeps(asked.wanted, entry):
            clean = clean and entry.row.status == "ok"
            texts.append(text(entry))
    stdout = sys.stdout
    return Printed("".join(texts).encode(stdout.encoding, stdout.errors or "strict"), clean)


@lru_cache(maxsize=1)
def _lines(name: str, view: View) -> Lines:
    from kafkawire.capture.jsonl.rows import Lines

    return Lines(name, *view)


def _drawn() -> bool:
    return not sys.stdout.isatty()  # rows on the terminal, and a bar would stand among them


def _batches(file: Path, brokers: Known, drawn: bool = False) -> Iterator[list[LocatedItem]]:
    """Read a capture, some rows at a time."""
    from kafkawire.capture.engine import read_batches
    from kafkawire.errors import CaptureError

    try:
        with progress([file], drawn=drawn) as watch:
            for told in read_batches(
                file, ports=brokers.ports, brokers=brokers.addresses, watch=watch
            ):
                for at in range(0, len(told), BATCH_ROWS):
                    yield told[at : at + BATCH_ROWS]
    except CaptureError as error:
        raise InputError(f"{file}: {error}") from None

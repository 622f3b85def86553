"""Decodes capture files in batches of rows, with `--jobs N` in several processes.

Law: the output is that of one process, byte for byte and in the same order. The queues are bounded,
so memory does not grow with the captures.

    one process     reads, decodes and prints batch by batch
    a few           this process reads and pairs --work items--> workers decode and print, and so
                    does this process while the queues are full
    many files      each file is decoded by one worker
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Final, NamedTuple

from ..input.inputs import Entry, InputError
from ..input.progress import progress
from ..input.sources import Known
from ..render import filters, messages
from ..render.messages import Printed, Shape, View

if TYPE_CHECKING:
    from kafkawire.capture.frames.decoding import LocatedItem
    from kafkawire.capture.frames.serialised import SerialisedFrames
    from kafkawire.capture.jsonl.rows import Lines

BATCH_ROWS: Final = 512
"""Rows printed at a time."""

BATCHES_AHEAD: Final = 16
"""Batches queued per worker; while all queues are full, this process prints batches itself."""

FILES_AHEAD: Final = 2
"""Files queued per worker."""

MAX_SHARED_JOBS: Final = 3
"""Processes that one reader can keep busy: reading is up to half of the work."""


class DecodeOptions(NamedTuple):
    """What to print of each capture: the format, the view, the filters, the known brokers."""

    form: Shape
    view: View
    filters: dict[str, list[str]]
    brokers: Known


def decoded(files: Sequence[Path], options: DecodeOptions, jobs: int) -> Iterator[Printed]:
    """Decode captures in `jobs` processes."""
    if jobs > 1:
        from .ordered_output import can_fork
    if jobs == 1 or not can_fork():
        for file in files:
            yield from _decode_file(file, options, _show_progress())
        return
    yield from (_file_per_task if MAX_SHARED_JOBS < jobs <= len(files) else _batch_per_task)(
        files, options, jobs
    )


def decoded_as_one(files: Sequence[Path], options: DecodeOptions) -> Iterator[Printed]:
    """Decode files as one capture (`--rotated`), in the order of their first packets."""
    from kafkawire.capture.frames.decoding import LocatedItem
    from kafkawire.capture.multifile import Traffic, file_and_packet
    from kafkawire.errors import CaptureError

    def file_of(one: LocatedItem) -> int:
        return file_and_packet(one.item.packet)[0]

    try:
        with progress(files, drawn=_show_progress()) as watch:
            brokers = options.brokers
            traffic = Traffic(
                files,
                brokers.ports,
                brokers=brokers.addresses,
                watch=watch,
                keylog=brokers.keylog,
            )
            for batch in traffic.batches():
                items = [one for one in batch if isinstance(one, LocatedItem)]
                for file, some in groupby(items, file_of):
                    name = str(traffic.sources[file])
                    yield _render(name, [_renumbered(one) for one in some], options)
    except CaptureError as error:
        yield Printed(b"", True, InputError(str(error)))


def _renumbered(located: LocatedItem) -> LocatedItem:
    """Replace the packet number in the set of files by that in its file."""
    from kafkawire.capture.frames.decoding import RawFrame
    from kafkawire.capture.multifile import file_and_packet

    item = located.item
    number = file_and_packet(item.packet)[1]
    if isinstance(item, RawFrame):
        item.packet = number
    else:
        located.item = item._replace(packet=number)
    return located


def _decode_file(file: Path, options: DecodeOptions, drawn: bool = False) -> Iterator[Printed]:
    """Decode a capture."""
    try:
        for items in _batches(file, options.brokers, drawn):
            yield from _render_views(str(file), items, options)
    except InputError as error:
        yield Printed(b"", True, error)


def _file_per_task(files: Sequence[Path], options: DecodeOptions, jobs: int) -> Iterator[Printed]:
    """Decode each capture in one worker."""
    from .ordered_output import OrderedOutput

    output = OrderedOutput[Path](jobs, partial(_decode_file, options=options), FILES_AHEAD)
    try:
        for file in files:
            while not output.submit(partial(Path, file)):
                yield from output.wait()
        yield from output.drain()
    finally:
        output.close()


class _WorkItem(NamedTuple):
    """A batch of a capture, serialised for a worker.

    frames: the bytes of the frames, pickled out of band, so that they are not copied.
    """

    name: str
    header: SerialisedFrames
    frames: PickleBuffer


def _batch_per_task(files: Sequence[Path], options: DecodeOptions, jobs: int) -> Iterator[Printed]:
    """Read the captures in this process, and share the decoding with the workers."""
    from kafkawire.capture.jsonl import rows as row_text  # noqa: F401  # imported before the fork

    from .ordered_output import OrderedOutput

    output = OrderedOutput[_WorkItem](
        jobs - 1, partial(_decode_item, options=options), BATCHES_AHEAD
    )
    try:
        for file in files:
            name = str(file)
            try:
                for items in _batches(file, options.brokers, _show_progress()):
                    yield from output.ready()
                    if not output.submit(partial(_serialise, name, items)):
                        yield from output.write(_render(name, items, options))
            except InputError as error:
                yield from output.write(Printed(b"", True, error))
        yield from output.drain()
    finally:
        output.close()


def _serialise(name: str, items: list[LocatedItem]) -> _WorkItem:
    from kafkawire.capture.frames.serialised import pack

    packed = pack(items)
    return _WorkItem(name, packed._replace(frames=b""), PickleBuffer(packed.frames))


def _decode_item(batch: _WorkItem, options: DecodeOptions) -> Iterator[Printed]:
    """Decode and render a batch in a worker."""
    from kafkawire.capture.frames.serialised import unpack

    items = unpack(batch.header._replace(frames=bytes(batch.frames)))
    return _render_views(batch.name, items, options)


def _render_views(name: str, items: list[LocatedItem], options: DecodeOptions) -> Iterator[Printed]:
    """Render rows without copying the text: it is valid until the next batch is rendered."""
    if options.form is not Shape.JSONL or options.filters:
        yield _render(name, items, options)
        return
    lines = _lines(name, options.view)
    lines.clean = True
    with lines.view(items) as text:
        yield Printed(text, lines.clean)


def _render(name: str, items: list[LocatedItem], options: DecodeOptions) -> Printed:
    """Render rows as encoded text."""
    from kafkawire.capture.frames.decoding import located

    if options.form is Shape.JSONL and not options.filters:
        lines = _lines(name, options.view)
        lines.clean = True
        return Printed(lines.text(items), lines.clean)
    text = messages.text(options.form, options.view)
    clean = True
    texts = []
    for one in items:
        found = located(one)
        entry = Entry(name, found.connection, found.client, found.broker, found.row)
        if not options.filters or filters.matches(options.filters, entry):
            clean = clean and entry.row.status in ("ok", "tls")
            texts.append(text(entry))
    stdout = sys.stdout
    return Printed("".join(texts).encode(stdout.encoding, stdout.errors or "strict"), clean)


@lru_cache(maxsize=1)
def _lines(name: str, view: View) -> Lines:
    from kafkawire.capture.jsonl.rows import Lines

    return Lines(name, *view)


def _show_progress() -> bool:
    return not sys.stdout.isatty()  # on a terminal the bar would appear among the rows


def _batches(file: Path, brokers: Known, drawn: bool = False) -> Iterator[list[LocatedItem]]:
    """Read a capture in batches of rows."""
    from kafkawire.capture.multifile import Traffic
    from kafkawire.errors import CaptureError

    try:
        with progress([file], drawn=drawn) as watch:
            traffic = Traffic(
                [file],
                brokers.ports,
                brokers=brokers.addresses,
                watch=watch,
                keylog=brokers.keylog,
            )
            for items in traffic.item_batches():
                for at in range(0, len(items), BATCH_ROWS):
                    yield items[at : at + BATCH_ROWS]
    except CaptureError as error:
        raise InputError(f"{file}: {error}") from None

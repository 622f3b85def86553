"""Decodes capture files in batches of rows, with `--jobs N` in several processes.

Law: the output is that of one process, byte for byte and in the same order. The queues are bounded,
so memory does not grow with the captures.

    one process     reads, decodes and prints batch by batch
    a few           this process reads and pairs --work items--> workers decode and print, and so
                    does this process while the queues are full
    many files      each file is decoded by one worker
    tables          see `table_jobs`
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Final, NamedTuple

from ..input.inputs import Entry, InputError
from ..input.progress import progress
from ..input.sources import Known
from ..render import message_table, messages
from ..render.messages import Printed, Shape, View
from ..render.table_style import Style

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkawire.capture.filters import Filter
    from kafkawire.capture.frames.decoding import LocatedItem
    from kafkawire.capture.frames.serialised import SerialisedFrames
    from kafkawire.capture.jsonl.rows import Lines
    from kafkawire.capture.multifile import Traffic

    from ..render.tables import Reading, Rendering

BATCH_ROWS: Final = 512
"""Rows printed at a time."""

BATCHES_AHEAD: Final = 16
"""Batches queued per worker; while all queues are full, this process prints batches itself."""

FILES_AHEAD: Final = 2
"""Files queued per worker."""

MAX_SHARED_JOBS: Final = 3
"""Processes that one reader can keep busy: reading is up to half of the work."""


class DecodeOptions(NamedTuple):
    """What to print of each capture: the format, the view, the filter, the known brokers.

    look: of the table.
    """

    form: Shape
    view: View
    where: Filter | None
    brokers: Known
    look: Style = Style()

    def formatter(self, previous_ns: int = 0) -> Callable[[Entry], str]:
        """Return a function that formats rows, in order, with line feeds.

        previous_ns: time of the row before the first one.
        """
        if self.form is Shape.TREE:
            return lambda entry: messages.tree_text(entry, self.view)
        if self.form is Shape.TABLE:
            return message_table.lines(self.look, previous_ns)
        return messages.jsonl(self.view)


class Batch(NamedTuple):
    """Some rows of a capture, and what formatting them needs of the others.

    first_ns: time of the first packet. previous_ns: time of the row before; 0 for none.
    """

    items: list[LocatedItem]
    first_ns: int | None
    previous_ns: int

    @property
    def last_ns(self) -> int:
        """The time of the last row that has one."""
        times = (one.item.time_ns for one in reversed(self.items))
        return next((time_ns for time_ns in times if time_ns > 0), self.previous_ns)


def decoded(files: Sequence[Path], options: DecodeOptions, jobs: int) -> Iterator[Printed]:
    """Decode captures in `jobs` processes."""
    if jobs > 1:
        from .forked import can_fork
    if jobs == 1 or not can_fork():
        for file in files:
            yield from _decode_file(file, options, _show_progress())
        return
    yield from (_file_per_task if MAX_SHARED_JOBS < jobs <= len(files) else _batch_per_task)(
        files, options, jobs
    )


def decoded_as_one(files: Sequence[Path], options: DecodeOptions) -> Iterator[Printed]:
    """Decode files as one capture (`--rotated`), in the order of their first packets."""
    from kafkawire.capture.multifile import Traffic, file_and_packet
    from kafkawire.capture.selection.reading import item_batches
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
                package=brokers.package,
            )
            previous_ns = 0
            for items in item_batches(traffic, options.where):
                for file, some in groupby(items, file_of):
                    name = str(traffic.sources[file])
                    found = [_renumbered(one) for one in some]
                    batch = Batch(found, traffic.first_ns, previous_ns)
                    yield _render(name, batch, options)
                    previous_ns = batch.last_ns
    except CaptureError as error:
        yield Printed(b"", True, InputError(str(error)))


def table_batches(
    jobs: int, traffic: Traffic, reading: Reading, rendering: Rendering
) -> Iterator[tuple[str, pa.RecordBatch | str]]:
    """Read tables in several processes; those of a stream in one.

    Of a stream, only the topic names seen so far are known when a batch is made: in tasks, they
    would be others.
    """
    if jobs > 1 and traffic.repeatable:
        from .forked import can_fork

        if can_fork():
            from .table_jobs import read_tables

            yield from read_tables(traffic, reading, rendering, jobs)
            return
    from kafkawire.capture.tables.context import Context
    from kafkawire.capture.tables.multiple import read_together

    context = Context(traffic, reading.secrets)
    for name, batch in read_together(context, reading.tables, reading.size):
        for made in rendering.render(name, batch, traffic.first_ns):
            yield name, made


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
        for batch in _batches(file, options, drawn):
            yield from _render_views(str(file), batch, options)
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
    first_ns: int | None
    previous_ns: int


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
                for batch in _batches(file, options, _show_progress()):
                    yield from output.ready()
                    if not output.submit(partial(_serialise, name, batch)):
                        yield from output.write(_render(name, batch, options))
            except InputError as error:
                yield from output.write(Printed(b"", True, error))
        yield from output.drain()
    finally:
        output.close()


def _serialise(name: str, batch: Batch) -> _WorkItem:
    from kafkawire.capture.frames.serialised import pack

    packed = pack(batch.items)
    header, frames = packed._replace(frames=b""), PickleBuffer(packed.frames)
    return _WorkItem(name, header, frames, batch.first_ns, batch.previous_ns)


def _decode_item(work: _WorkItem, options: DecodeOptions) -> Iterator[Printed]:
    """Decode and render a batch in a worker."""
    from kafkawire.capture.frames.serialised import unpack

    items = unpack(work.header._replace(frames=bytes(work.frames)))
    return _render_views(work.name, Batch(items, work.first_ns, work.previous_ns), options)


def _render_views(name: str, batch: Batch, options: DecodeOptions) -> Iterator[Printed]:
    """Render rows without copying the text: it is valid until the next batch is rendered."""
    if options.form is not Shape.JSONL:
        yield _render(name, batch, options)
        return
    lines = _lines(name, options.view)
    lines.clean = True
    with lines.view(batch.items) as text:
        yield Printed(text, lines.clean)


def _render(name: str, batch: Batch, options: DecodeOptions) -> Printed:
    """Render rows as encoded text."""
    from kafkawire.capture.frames.decoding import located

    if options.form is Shape.JSONL:
        lines = _lines(name, options.view)
        lines.clean = True
        return Printed(lines.text(batch.items), lines.clean)
    text = options.formatter(batch.previous_ns)
    clean = True
    texts = []
    for one in batch.items:
        entry = Entry(name, *located(one), batch.first_ns)
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


def _batches(file: Path, options: DecodeOptions, drawn: bool = False) -> Iterator[Batch]:
    """Read a capture in batches of rows that match the filter."""
    from kafkawire.capture.multifile import Traffic
    from kafkawire.capture.selection.reading import item_batches
    from kafkawire.errors import CaptureError

    try:
        with progress([file], drawn=drawn) as watch:
            brokers = options.brokers
            traffic = Traffic(
                [file],
                brokers.ports,
                brokers=brokers.addresses,
                watch=watch,
                keylog=brokers.keylog,
                package=brokers.package,
            )
            previous_ns = 0
            where = options.where
            read = traffic.item_batches() if where is None else item_batches(traffic, where)
            for items in read:
                for at in range(0, len(items), BATCH_ROWS):
                    batch = Batch(items[at : at + BATCH_ROWS], traffic.first_ns, previous_ns)
                    yield batch
                    previous_ns = batch.last_ns
    except CaptureError as error:
        raise InputError(f"{file}: {error}") from None

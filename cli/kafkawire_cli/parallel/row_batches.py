"""Reads captures in batches of rows, and formats the rows, in any process.

The text of a batch depends on the batch alone: what it needs of earlier rows comes with it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ..input.captures.progress import note_without_rows, progress
from ..input.filters import note_unmatched
from ..input.inputs import Entry, InputError
from ..input.sources import Known
from ..input.values import all_decoded
from ..render import messages
from ..render.message_table.legend import Connections, add_connection
from ..render.message_table.lines import lines
from ..render.message_table.style import Style
from ..render.messages import Printed, Shape, View

if TYPE_CHECKING:
    from kafkawire.capture.files.source import Watch
    from kafkawire.capture.filters import Filter
    from kafkawire.capture.filters.unmatched import Unmatched
    from kafkawire.capture.frames.decoding import LocatedItem
    from kafkawire.capture.frames.serialised import SerialisedReader
    from kafkawire.capture.jsonl.rows import Lines
    from kafkawire.capture.multifile import Traffic
    from kafkawire.values.record_values import CountedValues

    from ..input.captures.interrupts import Interrupts

BATCH_ROWS: Final = 512
"""Rows printed at a time."""


class DecodeOptions(NamedTuple):
    """What to print of each capture: the format, the view, the filter, the known brokers.

    look: of the table; its width, also of trees. values: what decodes keys and values, if these
    are. unmatched: what the filter has compared, if there is one.
    """

    form: Shape
    view: View
    where: Filter | None
    brokers: Known
    look: Style = Style()
    values: CountedValues | None = None
    unmatched: Unmatched | None = None

    def printed(self, text: bytes | memoryview, clean: bool) -> Printed:
        """Return the text of rows with the counts of keys and values in them."""
        return Printed(text, clean, counts=None if self.values is None else self.values.take())

    def report_missing(self) -> bool:
        """Say what was not decoded or matched; return whether all keys and values were decoded."""
        if self.unmatched is not None:
            note_unmatched(self.unmatched)
        return self.values is None or all_decoded(self.values)

    @property
    def has_legend(self) -> bool:
        """Whether the connections of the rows are shown after them."""
        return self.form is Shape.TABLE and self.look.width is not None

    def formatter(self, previous_ns: int = 0) -> Callable[[Entry], str]:
        """Return a function that formats rows, in order, with line feeds.

        previous_ns: time of the row before the first one.
        """
        if self.form is Shape.TREE:
            return lambda entry: messages.tree_text(entry, self.view, self.look.width)
        if self.form is Shape.TABLE:
            return lines(self.look, previous_ns)
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


def _traffic(
    files: Sequence[Path], options: DecodeOptions, noted: Interrupts | None, watch: Watch
) -> Traffic:
    """Make a reader of captures, which a noted interrupt ends."""
    from kafkawire.capture.multifile import Traffic

    brokers = options.brokers
    traffic = Traffic(
        files,
        brokers.ports,
        brokers=brokers.addresses,
        watch=watch,
        keylog=brokers.keylog,
        package=brokers.package,
        tunnels=brokers.tunnels,
    )
    if noted is None:
        return traffic
    from ..input.captures.interrupts import InterruptibleTraffic

    return InterruptibleTraffic.of(traffic, noted)


def read_batches(
    file: Path, options: DecodeOptions, noted: Interrupts | None, drawn: bool
) -> Iterator[Batch]:
    """Read a capture in batches of rows that match the filter."""
    from kafkawire.capture.selection.reading import item_batches
    from kafkawire.errors import CaptureError

    try:
        with progress([file], drawn=drawn) as watch:
            traffic = _traffic([file], options, noted, watch)
            previous_ns = 0
            read = traffic.item_batches()
            if options.where is not None:
                read = item_batches(traffic, options.where, options.unmatched)
            for items in read:
                for at in range(0, len(items), BATCH_ROWS):
                    batch = Batch(items[at : at + BATCH_ROWS], traffic.first_ns, previous_ns)
                    yield batch
                    previous_ns = batch.last_ns
        note_without_rows(traffic, watch.packets, str(file))
    except CaptureError as error:
        raise InputError(f"{file}: {error}") from None


def decode_rotated(files: Sequence[Path], options: DecodeOptions) -> Iterator[Printed]:
    """Decode files as one capture, in the order of their first packets."""
    from kafkawire.capture.multifile import file_and_packet
    from kafkawire.capture.selection.reading import item_batches
    from kafkawire.errors import CaptureError

    def file_of(one: LocatedItem) -> int:
        return file_and_packet(one.item.packet)[0]

    try:
        with progress(files, drawn=show_progress()) as watch:
            traffic = _traffic(files, options, None, watch)
            previous_ns = 0
            for items in item_batches(traffic, options.where, options.unmatched):
                for file, some in groupby(items, file_of):
                    name = str(traffic.sources[file])
                    rows = [_renumbered(one) for one in some]
                    batch = Batch(rows, traffic.first_ns, previous_ns)
                    yield render(name, batch, options)
                    previous_ns = batch.last_ns
        note_without_rows(traffic, watch.packets)
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


def render_views(name: str, batch: Batch, options: DecodeOptions) -> Iterator[Printed]:
    """Render rows without copying the text: it is valid while something views it."""
    if options.form is not Shape.JSONL:
        yield render(name, batch, options)
        return
    lines = _lines(name, options.view)
    lines.clean = True
    with lines.view(batch.items) as text:
        yield options.printed(text, lines.clean)


def render_serialised(
    name: str, items: SerialisedReader, options: DecodeOptions
) -> Iterator[Printed]:
    """Do as `render_views` for the JSON lines of serialised items."""
    lines = _lines(name, options.view)
    lines.clean = True
    with lines.view_serialised(items) as text:
        yield options.printed(text, lines.clean)


def render(name: str, batch: Batch, options: DecodeOptions) -> Printed:
    """Render rows as encoded text."""
    from kafkawire.capture.frames.decoding import located
    from kafkawire.capture.rows import CLEAN

    if options.form is Shape.JSONL:
        lines = _lines(name, options.view)
        lines.clean = True
        return options.printed(lines.text(batch.items), lines.clean)
    text = options.formatter(batch.previous_ns)
    clean = True
    texts = []
    connections: Connections = {}
    for one in batch.items:
        entry = Entry(name, *located(one), batch.first_ns)
        clean = clean and entry.row.status in CLEAN
        texts.append(text(entry))
        if options.has_legend:
            add_connection(connections, entry)
    stdout = sys.stdout
    encoded = "".join(texts).encode(stdout.encoding, stdout.errors or "strict")
    return options.printed(encoded, clean)._replace(connections=connections)


@lru_cache(maxsize=1)
def _lines(name: str, view: View) -> Lines:
    from kafkawire.capture.jsonl.rows import Lines

    return Lines(name, *view)


def show_progress() -> bool:
    """Return whether a progress bar may be shown."""
    return not sys.stdout.isatty()  # on a terminal the bar would appear among the rows


def decode_file(
    file: Path, options: DecodeOptions, noted: Interrupts | None, drawn: bool = False
) -> Iterator[Printed]:
    """Decode a capture."""
    try:
        for batch in read_batches(file, options, noted, drawn):
            yield from render_views(str(file), batch, options)
    except InputError as error:
        yield Printed(b"", True, error)


def decode_files(files: Sequence[Path], options: DecodeOptions) -> Iterator[Printed]:
    """Decode captures, one after the other."""
    for file in files:
        yield from decode_file(file, options, None, show_progress())

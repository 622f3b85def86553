"""Decodes capture files in batches of rows, with `--jobs N` in several processes.

The output is that of one process, byte for byte and in the same order. The queues are bounded,
so memory does not grow with the captures.

    one process     reads, decodes and prints batch by batch
    a few           this process reads and pairs --work items--> workers decode and print, and so
                    does this process while the queues are full
    many files      each file is decoded by one worker
    tables          a process of its own writes `records`, see `records_file`; without it, see
                    `table_jobs`
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ..input.inputs import InputError
from ..render.messages import Printed, Shape
from .row_batches import (
    BATCH_ROWS,
    Batch,
    DecodeOptions,
    decode_file,
    read_batches,
    render_serialised,
    render_views,
    show_progress,
)
from .shared_memory import Apart, Joined

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkawire.capture.frames.serialised import Packer, SerialisedFrames, Shared
    from kafkawire.capture.multifile import Traffic
    from kafkawire.capture.tables.arrow.record_fields import Fields

    from ..input.captures.interrupts import Interrupts
    from ..render.table_formats import Write
    from ..render.tables import Reading, Rendering
    from .pool import Pool

BATCHES_AHEAD: Final = 6
"""Batches queued per worker; while all queues are full, this process prints batches itself. Few, so
that what waits for its turn is still in the caches of the processors when it is written.
"""

TASK_BYTES: Final = 1 << 18
"""Bytes of messages that are worth a task."""

SHARED_BYTES: Final = 1 << 22
"""Bytes of memory shared with each worker, for tasks."""

FILES_AHEAD: Final = 2
"""Files queued per worker."""

MAX_SHARED_JOBS: Final = 3
"""Processes that one reader can keep busy: reading is up to half of the work. More would wait for
it, and take twice the CPU time (docs/internals/speed.md).
"""

DIVIDED: Final = frozenset({"messages", "problems"})
"""Tables that take longer to make than to divide the work; the others are made as they are read."""

RECORDS: Final = "records"


def decoded(files: Sequence[Path], options: DecodeOptions, jobs: int) -> Iterator[Printed]:
    """Decode captures in `jobs` processes.

    An interrupt ends the captures; raises KeyboardInterrupt when the rows until then have been
    yielded.
    """
    with _until_interrupt() as noted:
        if jobs > 1:
            from .forked import can_fork

            if can_fork():
                if min(jobs, len(files)) > MAX_SHARED_JOBS:
                    yield from _file_per_task(files, options, min(jobs, len(files)), noted)
                else:
                    yield from _batch_per_task(files, options, min(jobs, MAX_SHARED_JOBS), noted)
                return
        for file in files:
            yield from decode_file(file, options, noted, show_progress())


@contextmanager
def _until_interrupt() -> Iterator[Interrupts]:
    """Note an interrupt, and raise it at the end."""
    from ..input.captures.interrupts import interrupts

    with interrupts() as noted:
        yield noted
        if noted.requested:
            raise KeyboardInterrupt


def table_batches(
    traffic: Traffic, reading: Reading, rendering: Rendering
) -> Iterator[tuple[str, pa.RecordBatch | str]]:
    """Read tables in several processes; those of a stream, and those that are not DIVIDED, in one.

    Of a stream, only the topic names seen so far are known when a batch is made: in tasks, they
    would be others.
    """
    workers = _table_workers(reading, rendering)
    if workers > 0 and traffic.repeatable:
        from .forked import can_fork

        if can_fork():
            from .table_jobs import read_tables

            yield from read_tables(traffic, reading, rendering, workers)
            return
    from kafkawire.capture.tables.context import Context
    from kafkawire.capture.tables.multiple import read_together

    context = Context(traffic, reading.secrets)
    take_records = reading.take_records
    rows = read_together(context, reading.tables, reading.size, take_records=take_records)
    for name, batch in rows:
        for part in rendering.render(name, batch, traffic.first_ns):
            yield name, part


def _table_workers(reading: Reading, rendering: Rendering) -> int:
    """Return how many workers make tables, besides this process and the thread that writes."""
    if rendering.is_light and DIVIDED.isdisjoint(reading.tables):
        return 0
    return reading.jobs - 1


def records_process(
    opened: Callable[[], AbstractContextManager[Write]], reading: Reading, rendering: Rendering
) -> AbstractContextManager[Callable[[Fields], None]] | None:
    """Return what starts a process for the table `records`; None if workers make it, or none."""
    if reading.jobs > 1 and RECORDS in reading.tables and not _table_workers(reading, rendering):
        from .forked import can_fork

        if can_fork():
            from .records_file import Content, records_file

            return records_file(opened, Content(reading.size, reading.secrets))
    return None


def _file_per_task(
    files: Sequence[Path], options: DecodeOptions, jobs: int, noted: Interrupts
) -> Iterator[Printed]:
    """Decode each capture in one worker."""
    from .pool import Pool

    run_task = partial(_whole_file, options=options, noted=noted)
    pool = Pool[Path, Printed](jobs, run_task, FILES_AHEAD, SHARED_BYTES, is_output=True)
    try:
        for file in files:
            if noted.requested:
                break
            while pool.submit(partial(_file, file)) is None:
                yield from pool.wait()
        yield from pool.drain()
    finally:
        pool.close()


def _whole_file(file: Path, options: DecodeOptions, noted: Interrupts) -> Iterator[Printed]:
    """Decode a capture in a worker, and return what the filter has compared there in vain."""
    yield from decode_file(file, options, noted)
    unmatched = options.unmatched
    if unmatched is not None:
        compared = None if unmatched.matched else unmatched.compared
        yield Printed(b"", True, compared=compared, matched=unmatched.matched)


def _file(file: Path, _at: int) -> Path:
    return file


class _WorkItem(NamedTuple):
    """A batch of a capture, serialised for a worker; the frames are the pieces behind it."""

    name: str
    header: SerialisedFrames
    first_ns: int | None
    previous_ns: int


def _batch_per_task(
    files: Sequence[Path], options: DecodeOptions, jobs: int, noted: Interrupts
) -> Iterator[Printed]:
    """Read the captures in this process, and share the decoding with the workers."""
    from kafkawire.capture.frames.serialised import Packer
    from kafkawire.capture.jsonl import rows as row_text  # noqa: F401  # imported before the fork

    from .pool import Pool

    decode = partial(_decode_item, options=options, known=[])
    pool = Pool[Joined, Printed](jobs - 1, decode, BATCHES_AHEAD, SHARED_BYTES, is_output=True)
    packers = [Packer() for _ in range(jobs - 1)]
    try:
        for file in files:
            name = str(file)
            try:
                for batch in combined(read_batches(file, options, noted, show_progress())):
                    yield from _released(pool.ready())
                    worker = pool.submit(partial(_serialise, name, batch, packers))
                    if worker is not None:
                        packers[worker].delivered = True
                        continue
                    for printed in render_views(name, batch, options):
                        yield from _added(printed, pool)
            except InputError as error:
                yield from _added(Printed(b"", True, error), pool)
        yield from _released(pool.drain())
    finally:
        pool.close()


def _added(printed: Printed, pool: Pool[Joined, Printed]) -> Iterator[Printed]:
    """Yield output of this process, or keep it until its turn, without a copy."""
    kept = printed._replace(text=memoryview(printed.text))
    return _released(pool.add(kept, len(printed.text)))


def _released(results: Iterable[Printed]) -> Iterator[Printed]:
    """Yield output; its buffers may be used again when it is written."""
    for printed in results:
        yield printed
        if isinstance(printed.text, memoryview):
            printed.text.release()


def combined(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Combine small batches: to pass one on takes as long as to decode a few of its messages."""
    from kafkawire.capture.exchanges.endings import count_frames

    held: Batch | None = None
    size = 0
    try:
        for batch in batches:
            if held is not None and held.first_ns != batch.first_ns:
                yield held
                held, size = None, 0
            size += count_frames(batch.items)[1]
            held = batch if held is None else held._replace(items=held.items + batch.items)
            if size >= TASK_BYTES or len(held.items) >= BATCH_ROWS:
                yield held
                held, size = None, 0
    except InputError:
        if held is not None:
            yield held
        raise
    if held is not None:
        yield held


def _serialise(name: str, batch: Batch, packers: list[Packer], at: int) -> Apart:
    header, frames = packers[at].pack_apart(batch.items)
    return Apart(_WorkItem(name, header, batch.first_ns, batch.previous_ns), frames)


def _decode_item(joined: Joined, options: DecodeOptions, known: list[Shared]) -> Iterator[Printed]:
    """Decode and render a batch in a worker. known: what the worker knows of connections."""
    from kafkawire.capture.frames.serialised import SerialisedReader

    work: _WorkItem = joined.value
    reader = SerialisedReader(work.header._replace(frames=joined.pieces), known)
    if options.form is Shape.JSONL:
        return render_serialised(work.name, reader, options)
    batch = Batch(reader.items(), work.first_ns, work.previous_ns)
    return render_views(work.name, batch, options)

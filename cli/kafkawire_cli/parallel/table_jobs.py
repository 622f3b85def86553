"""Makes tables of captures in several processes, for `decode --table ... --jobs N`.

The rows are those of one process, in the same order. Queues are bounded, so memory does not
grow with the captures.

    this process   reads, pairs --> tasks --.--> workers: bodies, records, columns --.
                                             `-> itself, while the queues are full --+--> in order
                   events of groups, rows of connections ----------------------------'
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from copy import copy
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import pyarrow as pa

from kafkawire.capture.tables.arrow.record_columns import record_batches
from kafkawire.capture.tables.arrow.record_fields import Fields
from kafkawire.capture.tables.context import Context
from kafkawire.capture.tables.passes import slices
from kafkawire.capture.tables.tasks import splitting
from kafkawire.capture.tables.tasks.making import Counted, Made, Maker
from kafkawire.capture.tables.tasks.merging import Merger
from kafkawire.capture.tables.tasks.splitting import GROUP_EVENTS, Splitter
from kafkawire.capture.tables.tasks.task import (
    Recipient,
    SerialisedTask,
    Task,
    deserialise,
    serialise,
)
from kafkawire.errors import CaptureError

from ..render.tables import Reading, Rendering
from .pool import Pool
from .shared_memory import Apart, Joined

if TYPE_CHECKING:
    from kafkawire.capture.multifile import Traffic
    from kafkawire.values.record_values import ValueCounts

HERE: Final = -1
"""Stands for this process, in place of the index of a worker."""

TASK_ITEMS: Final = splitting.TASK_ITEMS
TASK_BYTES: Final = splitting.TASK_BYTES
TASKS_AHEAD: Final = 5
"""Tasks queued per worker; while all queues are full, this process makes tasks itself."""

SHARED_BYTES: Final = 1 << 24
"""Bytes of memory shared with each worker, for tasks."""


Written: TypeAlias = str | pa.RecordBatch | pa.Buffer | Fields


class _WorkItem(NamedTuple):
    """A task, serialised; the frames are the pieces behind it.

    first_ns: when the first packet was captured.
    """

    task: SerialisedTask
    first_ns: int | None


class _Result(NamedTuple):
    """What is made of a task.

    written: by table. From a worker, batches come in Arrow's IPC format, pickled out of band.
    Fields: of records that take much memory, of which the process that writes makes the batches.
    counts: of keys and values that were not decoded, if these are.
    """

    written: list[tuple[str, Written]]
    connections: list[Counted]
    counts: ValueCounts | None

    @property
    def size(self) -> int:
        """The bytes of what is written."""
        return sum(_size(written) for _, written in self.written)


def _size(written: Written) -> int:
    if isinstance(written, str):
        return len(written)
    if isinstance(written, Fields):
        return int(written.bytes)
    return int(written.nbytes if isinstance(written, pa.RecordBatch) else written.size)


def read_tables(
    traffic: Traffic, reading: Reading, rendering: Rendering, workers: int
) -> Iterator[tuple[str, pa.RecordBatch | str]]:
    """Read several tables of captures, which can be read several times, in one pass."""
    unwatched = copy(traffic)
    unwatched.watch = None  # each process looks up topic names itself, without progress
    tables = [name for name in reading.tables if name != GROUP_EVENTS]
    context = Context(unwatched, reading.secrets, traffic.limits)
    maker = Maker(context, tables, reading.size, defer_records=True)
    run_task = partial(_run, maker, rendering)
    pool = Pool[Joined, _Result](workers, run_task, TASKS_AHEAD, SHARED_BYTES)
    try:
        yield from _Reader(traffic, reading, rendering, maker, pool).batches()
    finally:
        pool.close()


class _Reader:
    """The process that reads."""

    def __init__(
        self,
        traffic: Traffic,
        reading: Reading,
        rendering: Rendering,
        maker: Maker,
        pool: Pool[Joined, _Result],
    ) -> None:
        context = Context(traffic, reading.secrets, traffic.limits)
        self._traffic = traffic
        self._reading = reading
        self._rendering = rendering
        self._values = rendering.columns.values
        self._schemas = {name: rendering.schema(name) for name in reading.tables}
        self._maker = maker
        self._pool = pool
        self._splitter = Splitter(context, reading.tables, TASK_ITEMS, TASK_BYTES)
        self._merger = Merger(context, self._splitter, reading.size)
        self._recipients: defaultdict[int, Recipient] = defaultdict(Recipient)
        """By the index of the process; this one has HERE."""

    def batches(self) -> Iterator[tuple[str, pa.RecordBatch | str]]:
        """Read, and yield what is written of each batch."""
        failure = None
        try:
            for task in self._splitter.tasks():
                submitted = () if task is None else self._submitted(task)
                for result in chain(submitted, self._pool.ready()):
                    yield from self._written(result)
        except (CaptureError, OSError) as error:
            failure = error
        for result in self._pool.drain():
            yield from self._written(result)
        if failure is not None:
            raise failure
        yield from self._rendered(self._merger.batches(last=True))

    def _submitted(self, task: Task) -> Iterator[_Result]:
        """Submit a task to a worker, or make it here if none has room; yield what is ready."""
        worker = self._pool.submit(partial(self._work_item, task))
        if worker is None:
            tailored, names = self._recipients[HERE].tailored(task, self._splitter.learned)
            self._maker.learn(names)
            if self._values is not None:
                self._values.settle()  # what comes before this task
            rows = self._maker.make(tailored)
            result = _result(rows, self._rendering, self._traffic.first_ns)
            yield from self._pool.add(result, result.size)
        self._recipients[HERE if worker is None else worker].got(task)

    def _work_item(self, task: Task, worker: int) -> Apart:
        tailored, names = self._recipients[worker].tailored(task, self._splitter.learned)
        serialised, frames = serialise(tailored, names)
        return Apart(_WorkItem(serialised, self._traffic.first_ns), frames)

    def _written(self, result: _Result) -> Iterator[tuple[str, pa.RecordBatch | str]]:
        if self._values is not None and result.counts is not None:
            self._values.settle()
            self._values.add(result.counts)
        for name, written in result.written:
            if isinstance(written, pa.Buffer):
                yield name, pa.ipc.read_record_batch(written, self._schemas[name])
            elif isinstance(written, Fields):
                yield from self._rendered(self._records(name, written))
            else:
                yield name, written
        self._merger.add(result.connections)
        yield from self._rendered(self._merger.batches())

    def _records(self, name: str, fields: Fields) -> Iterator[tuple[str, pa.RecordBatch]]:
        for batch in record_batches(fields, self._reading.secrets):
            for part in slices(batch, self._reading.size):
                yield name, part

    def _rendered(
        self, batches: Iterator[tuple[str, pa.RecordBatch]]
    ) -> Iterator[tuple[str, pa.RecordBatch | str]]:
        for name, batch in batches:
            for part in self._rendering.render(name, batch, self._traffic.first_ns):
                yield name, part


# -- in any process


def _run(maker: Maker, rendering: Rendering, joined: Joined) -> list[_Result]:
    """Make a task in a worker."""
    item: _WorkItem = joined.value
    maker.learn(item.task.names)
    rows = maker.make(deserialise(item.task, joined.pieces))
    result = _result(rows, rendering, item.first_ns)
    written = [
        (name, each if isinstance(each, str | Fields) else each.serialize())
        for name, each in result.written
    ]
    return [result._replace(written=written)]


def _result(rows: Made, rendering: Rendering, first_ns: int | None) -> _Result:
    written: list[tuple[str, Written]] = []
    for name, batch in rows.batches:
        if isinstance(batch, Fields):
            written.append((name, batch))
        else:
            written += [(name, each) for each in rendering.render(name, batch, first_ns)]
    values = rendering.columns.values
    return _Result(written, rows.connections, None if values is None else values.take())

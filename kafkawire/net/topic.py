"""Reads a whole topic as columns: to Arrow, pandas, polars, or SQL.

What is read ends where the partitions end when reading begins. The partitions are divided among
threads, each with a consumer of its own; rows of a partition are in the order of its offsets.

    partitions ─▶ bounds ─▶ a consumer per thread ─▶ batches, a few at most ─▶ the caller
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Coroutine, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from queue import Full, Queue
from threading import Event
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from ..client.config import Setting
from ..client.consumer import RequestTimedOut, TopicPartition
from ..errors import InvalidValue, QueryError
from ..extras import requires
from ..values.decoder import ValueDecoder
from ..values.record_values import RecordValues
from .admin import ADMIN_KEYS, Admin
from .consumer import Consumer
from .topic_bounds import EARLIEST, LATEST, Bound, bound_of, find_offsets

with requires("pyarrow", "tables"):
    from ..client.consumer.arrow import batch_schema
    from ..notebook.rows import ArrowRows, Rows

if TYPE_CHECKING:
    import pyarrow as pa

    from ..sql import Database

T = TypeVar("T")
Item: TypeAlias = "pa.RecordBatch | BaseException | None"
"""A batch, an error, or the end of a thread."""

MAX_THREADS: Final = 4
"""Threads by default: decompression and checksums run in parallel, Python code does not."""
WAITING: Final = 4
"""Batches that wait for the caller, at most."""
IDLE_S: Final = 0.1
"""How long a poll waits before positions are compared with the ends."""
PROGRESS_S: Final = 60.0
"""How long all positions may stay the same before the ends."""
TABLE: Final = "records"
"""The name of the table in SQL."""


class Span(NamedTuple):
    """The offsets of a partition that are read: from `start` to before `end`."""

    start: int
    end: int


class Topic(ArrowRows):
    """The records of a topic, read each time that they are used; made by `open_topic`.

    Columns are those of `Consumer.poll_batch`.
    """

    def __init__(
        self,
        name: str,
        config: Mapping[str, Setting],
        bounds: tuple[Bound, Bound],
        values: RecordValues,
        partitions: Collection[int] | None,
        threads: int | None,
    ) -> None:
        self.name = name
        self._config = {"auto.offset.reset": "earliest", **config}
        self._bounds = bounds
        self._values = values
        self._threads = threads
        self._database: Database | None = None
        Consumer(self._config)  # validates the settings before any request
        self.partitions = _result(self._partitions(partitions))

    def __enter__(self) -> Topic:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove what queries keep; the next query reads the topic again."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def __repr__(self) -> str:
        return f"<Topic {self.name}: {len(self.partitions)} partitions>"

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema."""
        return batch_schema(self._values)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the records; rows of a partition are in the order of their offsets.

        Raises ConsumerError or a subclass, RequestTimedOut without progress.
        """
        spans = _result(self._spans())
        parts = _divided(spans, self._threads)
        stop = Event()
        queue: Queue[Item] = Queue(WAITING)
        with ThreadPoolExecutor(max(len(parts), 1), "kafkawire-topic") as executor:
            for part in parts:
                executor.submit(asyncio.run, self._read_all(part, queue, stop))
            try:
                yield from _batches(queue, len(parts))
            finally:
                stop.set()

    def sql(self, query: str) -> Rows:
        """Run SQL (DuckDB's) on the table `records`; the records are kept for later queries.

        A query that begins with WHERE, GROUP, ORDER or LIMIT is on that table. Raises QueryError;
        MissingPackage without the extra `sql`.
        """
        import pyarrow as pa

        from ..notebook.rows import on_table
        from ..sql import Database

        if self._database is None:
            self._database = Database(self._read_tables, others={TABLE: self.schema})
        result = self._database.run(on_table(TABLE, query))
        return Rows(pa.table({}) if result is None else result.read_all())

    def _read_tables(
        self, names: Collection[str], _columns: object = None
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        others = sorted(set(names) - {TABLE})
        if others:
            raise QueryError(f"a topic has the table {TABLE}, and not {', '.join(others)}")
        return ((TABLE, batch) for batch in self.batches())

    # -- in threads

    async def _partitions(self, wanted: Collection[int] | None) -> tuple[int, ...]:
        config = {key: value for key, value in self._config.items() if key in ADMIN_KEYS}
        async with Admin(config) as admin:
            described = await admin.describe_topics([self.name])
        numbers = [each.partition for each in described[self.name].partitions]
        unknown = sorted(set(wanted or ()) - set(numbers))
        if unknown:
            reason = f"{self.name} has {len(numbers)} partitions, and not {unknown[0]}"
            raise InvalidValue(reason, "partitions")
        return tuple(sorted(numbers if wanted is None else set(wanted)))

    async def _spans(self) -> dict[TopicPartition, Span]:
        """Find what is read of each partition, if it is anything."""
        partitions = [TopicPartition(self.name, number) for number in self.partitions]
        async with Consumer(self._config) as consumer:
            consumer.assign(partitions)
            starts, ends = [
                await find_offsets(consumer, bound, partitions) for bound in self._bounds
            ]
        spans = {each: Span(starts[each], ends[each]) for each in partitions}
        return {each: span for each, span in spans.items() if span.start < span.end}

    async def _read_all(
        self, part: Mapping[TopicPartition, Span], queue: Queue[Item], stop: Event
    ) -> None:
        """Read the partitions of a thread into the queue; then its end, or an error."""
        last: Item = None
        try:
            await self._read(part, queue, stop)
        except BaseException as error:  # noqa: BLE001 - raised in the thread of the caller
            last = error
        await asyncio.to_thread(_put, queue, last, stop)

    async def _read(
        self, part: Mapping[TopicPartition, Span], queue: Queue[Item], stop: Event
    ) -> None:
        async with Consumer(self._config) as consumer:
            consumer.assign(part)
            for each, span in part.items():
                consumer.seek(each, span.start)
            left = {each: span.end for each, span in part.items()}
            clock = asyncio.get_running_loop().time
            progress, positions = clock(), dict.fromkeys(left, -1)
            while left and not stop.is_set():
                batch = await consumer.poll_batch(
                    IDLE_S, keys=self._values.keys, values=self._values.values
                )
                if batch is not None:
                    await asyncio.to_thread(_put, queue, _before(batch, part), stop)
                before, positions = (
                    positions,
                    {each: consumer.known_position(each) or 0 for each in left},
                )
                if positions != before:
                    progress = clock()
                elif clock() > progress + PROGRESS_S:
                    raise RequestTimedOut("no progress to the end", partitions=list(left))
                for each in [each for each, end in left.items() if positions[each] >= end]:
                    consumer.pause(each)
                    del left[each]


def _put(queue: Queue[Item], item: Item, stop: Event) -> None:
    """Put an item into a queue, unless the caller has stopped reading."""
    while not stop.is_set():
        try:
            queue.put(item, timeout=IDLE_S)
        except Full:
            continue
        return


def _batches(queue: Queue[Item], threads: int) -> Iterator[pa.RecordBatch]:
    """Yield the batches of all threads. Raises their errors."""
    while threads:
        item = queue.get()
        if isinstance(item, BaseException):
            raise item
        if item is None:
            threads -= 1
        elif item.num_rows:
            yield item


def _before(batch: pa.RecordBatch, part: Mapping[TopicPartition, Span]) -> pa.RecordBatch:
    """Return the rows of a batch before the end of its partition."""
    topic, partition = batch.column("topic")[0].as_py(), batch.column("partition")[0].as_py()
    end = part[TopicPartition(topic, partition)].end
    offsets = batch.column("offset")
    rows = batch.num_rows
    if offsets[rows - 1].as_py() < end:
        return batch
    return batch.slice(0, sum(offset < end for offset in offsets.to_pylist()))


def _divided(
    spans: Mapping[TopicPartition, Span], threads: int | None
) -> list[dict[TopicPartition, Span]]:
    """Divide partitions among threads, the largest first."""
    many = min(len(spans), threads or min(MAX_THREADS, os.cpu_count() or 1))
    parts: list[dict[TopicPartition, Span]] = [{} for _ in range(many)]
    sizes = dict.fromkeys(range(many), 0)
    for each, span in sorted(spans.items(), key=lambda one: one[1].start - one[1].end):
        smallest = min(sizes, key=sizes.__getitem__)
        parts[smallest][each] = span
        sizes[smallest] += span.end - span.start
    return parts


def _result(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a thread: the caller may have a running loop, as in Jupyter."""
    with ThreadPoolExecutor(1) as executor:
        future: Future[T] = executor.submit(asyncio.run, work)
        return future.result()


def open_topic(  # noqa: PLR0913 - options by name
    name: str,
    *,
    bootstrap: str,
    start: int | datetime | None = None,
    end: int | datetime | None = None,
    partitions: Collection[int] | None = None,
    keys: ValueDecoder | None = None,
    values: ValueDecoder | None = None,
    config: Mapping[str, Setting] | None = None,
    threads: int | None = None,
) -> Topic:
    """Open a topic, which is read as a whole, in each partition between two bounds.

    bootstrap: `bootstrap.servers`. start, end: an offset, a time, or, if negative, how many records
    before the end; `end` itself is not read. None is the first record, and the end when reading
    begins. partitions: None is all of them. keys, values: decoders, as of `Consumer.poll_batch`.
    config: more settings of the consumers, such as `isolation.level`. threads: at most this many
    read partitions in parallel [default: up to 4].

    Raises BrokerError for an unknown topic, RequestFailed, ConfigurationError, InvalidValue,
    MissingPackage.
    """
    bounds = bound_of(start, "start", EARLIEST), bound_of(end, "end", LATEST)
    if threads is not None and threads < 1:
        raise InvalidValue("expected at least 1", "threads")
    settings = {**(config or {}), "bootstrap.servers": bootstrap}
    return Topic(name, settings, bounds, RecordValues(values, keys), partitions, threads)

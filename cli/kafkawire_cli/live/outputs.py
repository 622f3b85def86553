"""What `kafkawire consume` writes: records in a text format, or columns in a binary one.

poll ─▶ records before the end ─▶ write, in a thread ─▶ standard output
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

import typer

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkawire.client.consumer import ConsumerRecord, TopicPartition
    from kafkawire.net.consumer import Consumer
    from kafkawire.values.record_values import RecordValues

    from ..render.consumed_records import Record, Write

T = TypeVar("T")
Ends: TypeAlias = "Mapping[TopicPartition, int]"
"""Partition -> the offset before which it ends."""


class Output(Protocol[T]):
    """Polls a consumer, and writes out what it returns. T: several records."""

    async def poll(self, consumer: Consumer, wait: float | None, most: int | None) -> T | None:
        """Return the next records, up to `most`; what is false if there are none."""
        ...

    def before(self, records: T, ends: Ends) -> T:
        """Return the records before the ends of their partitions."""
        ...

    def write(self, records: T) -> None:
        """Write records out, or raise."""
        ...

    def first_offsets(self, records: T) -> Mapping[TopicPartition, int]:
        """Return the offset of the first record of each partition."""
        ...


class RecordOutput:
    """Writes records one by one. form: formats a record."""

    def __init__(self, form: Write) -> None:
        self._form = form

    async def poll(
        self, consumer: Consumer, wait: float | None, most: int | None
    ) -> list[ConsumerRecord]:
        """Return the next records."""
        return await consumer.poll(wait, max_records=most)

    def before(self, records: list[ConsumerRecord], ends: Ends) -> list[ConsumerRecord]:
        """Return the records before the ends of their partitions."""
        return [each for each in records if each.offset < ends[each.topic, each.partition]]  # type: ignore[index]  # a TopicPartition is a tuple

    def write(self, records: Sequence[Record]) -> None:
        """Write all records to standard output, or raise."""
        sys.stdout.buffer.write(b"".join(map(self._form, records)))
        sys.stdout.buffer.flush()

    def first_offsets(self, records: list[ConsumerRecord]) -> dict[TopicPartition, int]:
        """Return the offset of the first record of each partition."""
        from kafkawire.client.consumer import TopicPartition

        return {TopicPartition(each.topic, each.partition): each.offset for each in records[::-1]}


class ColumnFormat(StrEnum):
    """Formats of columns: an Arrow IPC stream, a Parquet file."""

    ARROW = "arrow"
    PARQUET = "parquet"


class ColumnOutput:
    """Writes the batches of `Consumer.poll_batch`. values: what decodes keys and values."""

    def __init__(
        self, write: Callable[[pa.RecordBatch], object], values: RecordValues | None
    ) -> None:
        self._write = write
        self._values = values

    async def poll(
        self, consumer: Consumer, wait: float | None, most: int | None
    ) -> pa.RecordBatch | None:
        """Return the next records of a partition."""
        return await consumer.poll_batch(wait, max_records=most)

    def before(self, records: pa.RecordBatch, ends: Ends) -> pa.RecordBatch:
        """Return the records before the end of their partition."""
        import pyarrow.compute as pc

        [(partition, _)] = self.first_offsets(records).items()
        inside = pc.less(records.column("offset"), ends[partition])
        return records.slice(0, pc.sum(inside).as_py())

    def write(self, records: pa.RecordBatch) -> None:
        """Write records to standard output, or raise."""
        from kafkawire.client.consumer.arrow import decoded

        if records.num_rows:
            self._write(records if self._values is None else decoded(records, self._values))

    def first_offsets(self, records: pa.RecordBatch) -> dict[TopicPartition, int]:
        """Return the offset of the first record."""
        from kafkawire.client.consumer import TopicPartition

        if not records.num_rows:
            return {}
        topic, partition, offset = (records.column(name)[0].as_py() for name in KEY)
        return {TopicPartition(topic, partition): offset}


KEY: Final = ("topic", "partition", "offset")


@contextmanager
def column_output(form: ColumnFormat, values: RecordValues | None) -> Iterator[ColumnOutput]:
    """Write columns to standard output. Raises MissingPackage without pyarrow.

    A Parquet file is complete once this ends.
    """
    from kafkawire.client.consumer.arrow import batch_schema
    from kafkawire.values.record_values import RecordValues

    schema = batch_schema(RecordValues(None) if values is None else values)
    with WRITERS[form](schema) as write:
        yield ColumnOutput(write, values)


@contextmanager
def _stream(schema: pa.Schema) -> Iterator[Callable[[pa.RecordBatch], object]]:
    import pyarrow as pa

    out = sys.stdout.buffer

    def write(batch: pa.RecordBatch) -> None:
        writer.write_batch(batch)
        out.flush()

    with pa.ipc.new_stream(out, schema) as writer:
        out.flush()
        yield write
    out.flush()


@contextmanager
def _parquet(schema: pa.Schema) -> Iterator[Callable[[pa.RecordBatch], object]]:
    from ..render.table_formats import parquet_writer

    with parquet_writer(sys.stdout.buffer, schema) as write:
        yield write
    sys.stdout.buffer.flush()


WRITERS: Final = {ColumnFormat.ARROW: _stream, ColumnFormat.PARQUET: _parquet}
"""Format -> opens it, and returns what writes a batch."""


def column_format(form: str) -> ColumnFormat | None:
    """Return the format of columns of that name; None for others. A usage error on a terminal."""
    if form not in list(ColumnFormat):
        return None
    if sys.stdout.isatty():
        raise typer.BadParameter(
            f"{form} is binary: redirect the output to a file or a pipe", param_hint="--format"
        )
    return ColumnFormat(form)


async def in_thread(function: Callable[[T], None], records: T) -> None:
    """Call a function in a thread; if this is interrupted, the call finishes first."""
    call = asyncio.ensure_future(asyncio.to_thread(function, records))
    try:
        await asyncio.shield(call)
    except asyncio.CancelledError:
        await call
        raise


async def written(
    output: AbstractContextManager[Output[Any]], run: Callable[[Output[Any]], Awaitable[None]]
) -> None:
    """Write to an output; what an interrupted one has is complete."""
    interrupt: asyncio.CancelledError | None = None
    with output as opened:
        try:
            await run(opened)
        except asyncio.CancelledError as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt

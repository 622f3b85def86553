"""The steps of tasks: packets to rows of a table as record batches, and facts.

The rows of a region, bucket, chunk or group are made by the same tables as in a single
process, and in one pass, too, if there are several.

    region --decode_regions--> rows | group items, and facts, of connections in this region only
              `--> packets of other connections --.
    packets of a bucket <--by connection----------'
               `--decode_buckets--> rows | group items | chunks, and facts
    connections decoded in place --decode_visits--> the same
    group items --decode_groups--> rows            chunks --decode_chunks--> rows
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import pyarrow as pa

from ...capture.packets.segment_rows import SegmentRows
from ...capture.packets.segments import Segments
from ...capture.tables import TABLES
from ...capture.tables.arrow.schemas import batches as batches_of
from ...capture.tables.multiple import Rows, read_together
from ...capture.tables.passes import COLUMNAR, EXCHANGES, RECORDS
from ..errors import ascii_safe
from ..options import Options
from ..plan.facts import Facts
from ..plan.parts import drain
from ..plan.planning import Plan
from ..shuffle.packets import Partitioner
from ..shuffle.tasks import tune
from .chunk_rows import ChunkContext
from .chunks import CHUNKED, chunk_batches, cut
from .columns import (
    MANY_ROWS,
    ROWS,
    Shaper,
    is_bare,
    rows_of_batch,
)
from .decoding import BucketContext, BucketTraffic, ProblemCollector, in_order, sorted_rows
from .groups import GroupItem, collected_items, event_rows, item_rows
from .outputs import (
    ITEM,
    OUT,
    Write,
    WriteKnown,
    batch_rows,
    out_row,
    read_spilled,
    spill,
    spill_batches,
)
from .scratch import Scratch

Batches = Iterator[pa.RecordBatch]
TableBatches = Iterator[tuple[str, pa.RecordBatch]]
Step = Callable[[Iterable[pa.RecordBatch]], Batches]

GROUP_EVENTS_TABLE: Final = "group_events"
"""The table whose rows span connections; it takes two steps."""

PACKETS: Final = "packets"
"""Kind of the rows that carry packets to another task."""


def packets_row(row: pa.RecordBatch) -> pa.RecordBatch:
    """Turn a row of packets into an output row."""
    bucket, kind, packet, body = row.columns
    name = [pa.array([text], pa.string()) for text in (PACKETS, str(kind[0].as_py()))]
    return pa.RecordBatch.from_arrays([*name, packet, bucket.cast(pa.int64()), body], schema=OUT)


@dataclass(frozen=True, slots=True)
class Work:
    """What is made of packets.

    tables: columns of each table; several tables are those of one of `passes`. scratch: as in
    `shared_directory.decode`. exact: decode message by message, to know which of them stated the
    name of a topic first.
    """

    plan: Plan
    tables: Mapping[str, Sequence[str]]
    options: Options
    scratch: Scratch | None = None
    exact: bool = False

    def shape(self, batches: TableBatches, write: Write | None = None) -> Batches:
        """Turn record batches of tables into output rows; those of ITEM are such rows already.

        write: takes batches that need not become output rows.
        """
        shapers = {
            name: Shaper(name, columns, self.options) for name, columns in self.tables.items()
        }
        shaped = (
            (table, batch if table == ITEM else shapers[table].shaped(batch))
            for table, batch in batches
        )
        if self.scratch is None:
            return batch_rows(shaped)
        return spill_batches(self.scratch, shaped, write)

    @property
    def columnar(self) -> bool:
        """Whether all rows are made column by column, so that not every message is decoded."""
        return not self.exact and self.tables.keys() <= COLUMNAR

    @property
    def is_cut(self) -> bool:
        """Whether very large connections are cut into chunks."""
        return self.tables.keys() <= CHUNKED and self.tables.keys() != {EXCHANGES}

    @property
    def is_bare(self) -> bool:
        """Whether no column shows decoded bodies, so that they need not be kept."""
        return all(is_bare(table, columns) for table, columns in self.tables.items())

    def decode_regions(self, partitioner: Partitioner, write: WriteKnown | None = None) -> Step:
        """Return the step that decodes regions, given by their indexes.

        Its output is rows or their precursors, facts, and packets for other tasks. write: as in
        `shape`.
        """
        regions, sets = self.plan.regions, self.plan.sets

        @ascii_safe
        def step(batches: Iterable[pa.RecordBatch]) -> Batches:
            tune()
            for index in (index for batch in batches for index in batch.column(0).to_pylist()):
                region = regions[index]
                if region.shuffled is None:
                    for part in region.parts:
                        yield from map(packets_row, part.rows(partitioner))
                    continue
                shuffled_rows: list[pa.RecordBatch] = []
                file_problems = ProblemCollector(Facts())
                segments = region.segments(partitioner, shuffled_rows.append)
                traffic = self._traffic(segments, file_problems)
                context = BucketContext(traffic, sets, bare=self.is_bare)
                for row in self._rows_of(context, traffic, write):
                    yield from map(packets_row, drain(shuffled_rows))
                    if len(row):
                        yield row
                yield from map(packets_row, drain(shuffled_rows))
                yield out_row("facts", "", 0, 0, file_problems.facts.pack())

        return step

    def decode_buckets(self, partitioner: Partitioner) -> Step:
        """Return the step from the packets of a bucket to rows or their precursors, and facts."""

        @ascii_safe
        def step(batches: Iterable[pa.RecordBatch]) -> Batches:
            tune()
            rest = iter(batches)
            first = next((batch for batch in rest if len(batch)), None)
            if first is None:
                return
            bucket = first.column(0)[0].as_py()
            file_problems = ProblemCollector(Facts())
            segments = in_order(sorted_rows(chain([first], rest)), file_problems.take)
            yield from self._decoded(segments, file_problems, chunks=bucket < len(partitioner.hot))

        return step

    def decode_visits(self, write: WriteKnown | None = None) -> Step:
        """Return the step from indexes of visits to the same, for connections decoded in place."""
        visits = self.plan.visits

        @ascii_safe
        def step(batches: Iterable[pa.RecordBatch]) -> Batches:
            tune()
            for index in (index for batch in batches for index in batch.column(0).to_pylist()):
                visit = visits[index]
                yield from self._decoded(
                    visit.segments(), ProblemCollector(Facts()), write, chunks=visit.cut
                )

        return step

    def decode_chunks(self) -> Step:
        """Return the step from chunks to rows."""

        @ascii_safe
        def step(batches: Iterable[pa.RecordBatch]) -> Batches:
            tune()
            for batch in batches:
                rows = zip(batch.column("name").to_pylist(), batch.column("body"), strict=True)
                for name, body in rows:
                    data = read_spilled(self.scratch, name, body.as_py())
                    yield from self.shape(self._chunk_batches(data))

        return step

    def _chunk_batches(self, data: bytes) -> TableBatches:
        """Make the rows of a chunk."""
        context = ChunkContext(self.plan.names, self.plan.sets, Facts(), bare=self.is_bare)
        return chunk_batches(data, context, self.tables)

    def decode_groups(self) -> Step:
        """Return the step from group items, sorted by group, to rows."""

        @ascii_safe
        def step(batches: Iterable[pa.RecordBatch]) -> Batches:
            return self.decode_items(item_rows(batches))

        return step

    def decode_items(self, items: Iterable[GroupItem]) -> Batches:
        """Make rows of group items, sorted by group and in order."""
        context = ChunkContext(self.plan.names, self.plan.sets, Facts())
        columns = TABLES[GROUP_EVENTS_TABLE].columns
        batches = batches_of(columns, event_rows(items, context), ROWS, context.name_topics)
        return self.shape((GROUP_EVENTS_TABLE, batch) for batch in batches)

    def _decoded(
        self,
        segments: Iterable[Segments | SegmentRows],
        file_problems: ProblemCollector,
        write: WriteKnown | None = None,
        *,
        chunks: bool,
    ) -> Batches:
        """Decode the connections of one task; chunks: only cut them, for other tasks."""
        facts = file_problems.facts
        traffic = self._traffic(segments, file_problems)
        context = BucketContext(traffic, self.plan.sets, bare=self.is_bare)
        if chunks and self.is_cut:
            for number, chunk in enumerate(cut(context, self.tables, self.options.chunk_bytes)):
                facts.sums["chunks"] += 1
                name, body = spill(self.scratch, chunk)
                yield out_row("chunk", name, 0, number, body)
        else:
            yield from self._rows_of(context, traffic, write)
        yield out_row("facts", "", 0, 0, facts.pack())
        pa.default_memory_pool().release_unused()

    def _traffic(
        self, segments: Iterable[Segments | SegmentRows], file_problems: ProblemCollector
    ) -> BucketTraffic:
        plan, options = self.plan, self.options
        return BucketTraffic(
            segments, file_problems, plan.names, plan.sets, options, one_by_one=self.exact
        )

    def _rows_of(
        self, context: BucketContext, traffic: BucketTraffic, write: WriteKnown | None = None
    ) -> Batches:
        """Make rows, and group items, of connections."""

        def write_known(table: str, batch: pa.RecordBatch) -> bool:
            return write is not None and write(table, batch, traffic.facts)

        return self.shape(self._batches(context, traffic), write_known)

    def _batches(self, context: BucketContext, traffic: BucketTraffic) -> TableBatches:
        names = [table for table in self.tables if table in COLUMNAR]
        more = [
            collected_items(context, traffic.facts, self.plan.sets)
            if table == GROUP_EVENTS_TABLE
            else Rows.of(table, context, rows_of_batch(table))
            for table in self.tables
            if table not in COLUMNAR
        ]
        return read_together(context, names, ROWS if names == [RECORDS] else MANY_ROWS, more)

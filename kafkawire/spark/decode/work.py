"""The steps of tasks: packets to rows of a table as record batches, and facts.

Law: the rows of a region, bucket, chunk or group are made by the same tables as in a single
process.

    region --decode_regions--> rows | group items, and facts, of connections in this region only
              `--> packets of other connections --.
    packets of a bucket <--by connection----------'
               `--decode_buckets--> rows | group items | chunks, and facts
    connections decoded in place --decode_visits--> the same
    group items --decode_groups--> rows            chunks --decode_chunks--> rows
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from ...capture.packets.parser import Segments
from ...capture.tables import TABLES
from ...capture.tables.context import Context
from ...capture.tables.multiple import read_together
from ...capture.tables.passes import COLUMNAR, EXCHANGES, RECORDS
from ..errors import ascii_safe
from ..options import Options
from ..plan.facts import Facts
from ..plan.parts import drain
from ..plan.planning import Plan
from ..shuffle.packets import Partitioner
from ..shuffle.tasks import tune
from .chunk_rows import ChunkContext
from .chunks import CHUNKED, chunk_context, columns, cut
from .columns import MANY_ROWS, ROWS, early_filter, is_bare, is_plain, to_batches
from .decoding import BucketContext, BucketTraffic, ProblemCollector, in_order, sorted_rows
from .groups import GroupItem, event_rows, item_batches, item_rows, items
from .outputs import OUT, out_row, read_spilled, serialise, spill, spill_batches
from .scratch import Scratch

Batches = Iterator[pa.RecordBatch]
Step = Callable[[Iterable[pa.RecordBatch]], Batches]

GROUP_EVENTS_TABLE: Final = "group_events"
"""The table whose rows span connections; it takes two steps."""


PACKETS: Final = "packets"
"""Kind of the rows that carry packets to another task."""


def packets_row(row: pa.RecordBatch) -> pa.RecordBatch:
    """Turn a row of packets into an output row."""
    bucket, kind, packet, body = row.columns
    name = [pa.array([text]) for text in (PACKETS, str(kind[0].as_py()))]
    return pa.RecordBatch.from_arrays([*name, packet, bucket.cast(pa.int64()), body], schema=OUT)


def batch_rows(batches: Batches) -> Batches:
    """Turn record batches into output rows."""
    for batch in batches:
        yield out_row("rows", "", 0, len(batch), serialise(batch))


@dataclass(frozen=True, slots=True)
class Work:
    """What is made of packets.

    made: columns; scratch: as in `shared_directory.decode`. exact: decode message by message, to
    know which of them stated the name of a topic first.
    """

    plan: Plan
    made: list[str]
    options: Options
    scratch: Scratch | None = None
    exact: bool = False

    def shape(self, batches: Batches) -> Batches:
        """Turn record batches into output rows."""
        wanted = early_filter(self.options.table, self.options)
        if wanted is not None:
            batches = (
                batch.filter(wanted(dict(zip(batch.schema.names, batch.columns, strict=True))))
                for batch in batches
            )
        return batch_rows(batches) if self.scratch is None else spill_batches(self.scratch, batches)

    @property
    def columnar(self) -> bool:
        """Whether rows are made column by column, of many messages at a time."""
        table = self.options.table
        return table in COLUMNAR and is_plain(table, self.options) and not self.exact

    def decode_regions(self, partitioner: Partitioner) -> Step:
        """Return the step that decodes regions, given by their indexes.

        Its output is rows or their precursors, facts, and packets for other tasks.
        """
        regions, sets = self.plan.regions, self.plan.sets

        @ascii_safe
        def step(batches: Iterable[pa.RecordBatch]) -> Batches:
            tune()
            for at in (at for batch in batches for at in batch.column(0).to_pylist()):
                region = regions[at]
                if region.shuffled is None:
                    for part in region.parts:
                        yield from map(packets_row, part.rows(partitioner))
                    continue
                shuffled_rows: list[pa.RecordBatch] = []
                file_problems = ProblemCollector(Facts())
                segments = region.segments(partitioner, shuffled_rows.append)
                traffic = BucketTraffic(
                    segments, file_problems, self.plan.names, sets, self.options
                )
                context = BucketContext(traffic, sets, bare=is_bare(self.options.table, self.made))
                for made in self._rows_of(context, traffic):
                    yield from map(packets_row, drain(shuffled_rows))
                    if len(made):
                        yield made
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

    def decode_visits(self) -> Step:
        """Return the step from indexes of visits to the same, for connections decoded in place."""
        visits = self.plan.visits

        @ascii_safe
        def step(batches: Iterable[pa.RecordBatch]) -> Batches:
            tune()
            for at in (at for batch in batches for at in batch.column(0).to_pylist()):
                visit = visits[at]
                yield from self._decoded(
                    visit.segments(), ProblemCollector(Facts()), chunks=visit.cut
                )

        return step

    def decode_chunks(self) -> Step:
        """Return the step from chunks to rows."""
        plan, bare = self.plan, is_bare(self.options.table, self.made)

        @ascii_safe
        def step(batches: Iterable[pa.RecordBatch]) -> Batches:
            tune()
            for batch in batches:
                rows = zip(batch.column("name").to_pylist(), batch.column("body"), strict=True)
                for name, body in rows:
                    data = read_spilled(self.scratch, name, body.as_py())
                    if self.columnar:
                        table = self.options.table
                        found = columns(data, plan.names, plan.sets, table, ROWS)
                        yield from self.shape(each.select(self.made) for each in found)
                    else:
                        yield from self._table_batches(
                            chunk_context(data, plan.names, plan.sets, bare=bare)
                        )

        return step

    def decode_groups(self) -> Step:
        """Return the step from group items, sorted by group, to rows."""

        @ascii_safe
        def step(batches: Iterable[pa.RecordBatch]) -> Batches:
            return self.decode_items(item_rows(batches))

        return step

    def decode_items(self, items: Iterable[GroupItem]) -> Batches:
        """Make rows of group items, sorted by group and in order."""
        context = ChunkContext(self.plan.names, self.plan.sets, Facts())
        return self._table_batches(context, event_rows(items, context))

    def _decoded(
        self, segments: Iterable[Segments], file_problems: ProblemCollector, *, chunks: bool
    ) -> Batches:
        """Decode the connections of one task; chunks: only cut them, for other tasks."""
        plan, options, table, facts = (
            self.plan,
            self.options,
            self.options.table,
            file_problems.facts,
        )
        traffic = BucketTraffic(segments, file_problems, plan.names, plan.sets, options)
        context = BucketContext(traffic, plan.sets, bare=is_bare(table, self.made))
        if chunks and table in CHUNKED and not (table == EXCHANGES and self.columnar):
            for number, chunk in enumerate(cut(context, traffic, options.chunk_bytes)):
                facts.sums["chunks"] += 1
                name, body = spill(self.scratch, chunk)
                yield out_row("chunk", name, 0, number, body)
        else:
            yield from self._rows_of(context, traffic)
        yield out_row("facts", "", 0, 0, facts.pack())
        pa.default_memory_pool().release_unused()

    def _rows_of(self, context: BucketContext, traffic: BucketTraffic) -> Batches:
        """Make rows, or group items, of connections."""
        if self.options.table == GROUP_EVENTS_TABLE:
            return item_batches(items(context, traffic, self.plan.sets))
        return self._table_batches(context)

    def _table_batches(self, context: Context, rows: Iterable[Any] | None = None) -> Batches:
        table = self.options.table
        if isinstance(context, BucketContext) and self.columnar:
            rows_of_batch = ROWS if table == RECORDS else MANY_ROWS
            whole = read_together(context, [table], rows_of_batch)
            return self.shape(batch.select(self.made) for _, batch in whole)
        if rows is None:
            rows = (
                context.rows(table)
                if isinstance(context, ChunkContext)
                else TABLES[table].rows(context)
            )
        found = to_batches(table, self.made, rows, self.options, context.name_topics)
        return self.shape(found)

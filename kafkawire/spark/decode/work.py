"""What tasks make of packets: rows of a table as record batches, and facts.

Law: a region, a bucket, a chunk, a group is made rows of by the tables of a single process.

    region --reading--> rows | items of groups, and facts, of connections that lie in it alone
              `--> packets of the others --.
    packets of a bucket <--by connection---'
               `--gathering--> rows | items of groups | chunks, and facts
    connections that do not move, where they lie --visiting--> the same
    items of groups --telling--> rows            chunks --opening--> rows
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
from ...capture.tables.passes import EXCHANGES, RECORDS
from ..errors import ascii_safe
from ..options import Options
from ..plan.facts import Facts
from ..plan.parts import drained
from ..plan.planning import Plan
from ..write.outputs import OUT, aside, laid, out_row, packed, picked
from .chunk_rows import Portion
from .chunks import CHUNKED, columns, cut, portion
from .columns import MANY_ROWS, ROWS, is_bare, is_plain, to_batches
from .decoding import Gathering, Notices, Traffic, in_order, sorted_rows, tune
from .groups import event_rows, item_batches, items
from .packets import Placing

Batches = Iterator[pa.RecordBatch]
Step = Callable[[Iterable[pa.RecordBatch]], Batches]

COLUMNAR: Final = frozenset({EXCHANGES, RECORDS})
"""Tables that are made column by column, where no row is left out or changed."""

IN_TWO_STEPS: Final = "group_events"
"""The table whose rows cross connections."""


PACKETS: Final = "packets"
"""What rows are of that hold packets on their way to another task."""


def moving(row: pa.RecordBatch) -> pa.RecordBatch:
    """Put a row of packets among all that a task gives; `packets_of` gets it back."""
    bucket, kind, packet, body = row.columns
    name = [pa.array([text]) for text in (PACKETS, str(kind[0].as_py()))]
    return pa.RecordBatch.from_arrays([*name, packet, bucket.cast(pa.int64()), body], schema=OUT)


def plainly(batches: Batches) -> Batches:
    """Make rows for Spark of batches, as they are."""
    for batch in batches:
        yield out_row("rows", "", 0, len(batch), packed(batch))


@dataclass(frozen=True, slots=True)
class Work:
    """What is made of packets. made: columns; folder: as in `decode`. exact: messages are told one
    by one, so that it is known which of them named a topic first.
    """

    plan: Plan
    made: list[str]
    options: Options
    folder: str | None = None
    exact: bool = False

    def shape(self, batches: Batches) -> Batches:
        """Make rows for Spark of batches."""
        return plainly(batches) if self.folder is None else aside(self.folder, batches)

    @property
    def columnar(self) -> bool:
        """Whether rows are made column by column, of many messages at a time."""
        table = self.options.table
        return table in COLUMNAR and is_plain(table, self.options) and not self.exact

    def reading(self, placing: Placing) -> Step:
        """Make the step from numbers of regions to rows, or what becomes rows, facts, and packets
        that others decode.
        """
        regions, sets = self.plan.regions, self.plan.sets

        @ascii_safe
        def step(batches: Iterable[pa.RecordBatch]) -> Batches:
            tune()
            for at in (at for batch in batches for at in batch.column(0).to_pylist()):
                region = regions[at]
                if region.moved is None:
                    for part in region.parts:
                        yield from map(moving, part.rows(placing))
                    continue
                leaving: list[pa.RecordBatch] = []
                notices = Notices(Facts())
                segments = region.segments(placing, leaving.append)
                traffic = Traffic(segments, notices, self.plan.names, sets, self.options)
                context = Gathering(traffic, sets, bare=is_bare(self.options.table, self.made))
                for made in self._told(context, traffic):
                    yield from map(moving, drained(leaving))
                    if len(made):
                        yield made
                yield from map(moving, drained(leaving))
                yield out_row("facts", "", 0, 0, notices.facts.pack())

        return step

    def gathering(self, placing: Placing) -> Step:
        """Make the step from the packets of a bucket to rows, or what becomes rows, and facts."""

        @ascii_safe
        def step(batches: Iterable[pa.RecordBatch]) -> Batches:
            tune()
            rest = iter(batches)
            first = next((batch for batch in rest if len(batch)), None)
            if first is None:
                return
            bucket = first.column(0)[0].as_py()
            notices = Notices(Facts())
            segments = in_order(sorted_rows(chain([first], rest)), notices.take)
            yield from self._decoded(segments, notices, chunks=bucket < len(placing.hot))

        return step

    def visiting(self) -> Step:
        """Make the step from numbers of visits to what `gathering` gives, of connections whose
        packets lie where they are.
        """
        visits = self.plan.visits

        @ascii_safe
        def step(batches: Iterable[pa.RecordBatch]) -> Batches:
            tune()
            for at in (at for batch in batches for at in batch.column(0).to_pylist()):
                visit = visits[at]
                yield from self._decoded(visit.segments(), Notices(Facts()), chunks=visit.cut)

        return step

    def opening(self) -> Step:
        """Make the step from chunks to rows."""
        plan, bare = self.plan, is_bare(self.options.table, self.made)

        @ascii_safe
        def step(batches: Iterable[pa.RecordBatch]) -> Batches:
            tune()
            for batch in batches:
                rows = zip(batch.column("name").to_pylist(), batch.column("body"), strict=True)
                for name, body in rows:
                    data = picked(name, body.as_py())
                    if self.columnar:
                        table = self.options.table
                        found = columns(data, plan.names, plan.sets, table, ROWS)
                        yield from self.shape(each.select(self.made) for each in found)
                    else:
                        yield from self._made(portion(data, plan.names, plan.sets, bare=bare))

        return step

    def telling(self) -> Step:
        """Make the step from items of groups, sorted by group, to rows."""

        @ascii_safe
        def step(batches: Iterable[pa.RecordBatch]) -> Batches:
            context = Portion(self.plan.names, self.plan.sets, Facts())
            yield from self._made(context, event_rows(batches, context))

        return step

    def _decoded(self, segments: Iterable[Segments], notices: Notices, *, chunks: bool) -> Batches:
        """Make what the connections of one task tell; chunks: others make rows of it."""
        plan, options, table, facts = self.plan, self.options, self.options.table, notices.facts
        traffic = Traffic(segments, notices, plan.names, plan.sets, options)
        context = Gathering(traffic, plan.sets, bare=is_bare(table, self.made))
        if chunks and table in CHUNKED and not (table == EXCHANGES and self.columnar):
            for number, chunk in enumerate(cut(context, traffic, options.chunk_bytes)):
                facts.sums["chunks"] += 1
                name, body = laid(self.folder, chunk)
                yield out_row("chunk", name, 0, number, body)
        else:
            yield from self._told(context, traffic)
        yield out_row("facts", "", 0, 0, facts.pack())
        pa.default_memory_pool().release_unused()

    def _told(self, context: Gathering, traffic: Traffic) -> Batches:
        """Make what connections tell."""
        if self.options.table == IN_TWO_STEPS:
            return item_batches(items(context, traffic, self.plan.sets))
        return self._made(context)

    def _made(self, context: Context, rows: Iterable[Any] | None = None) -> Batches:
        table = self.options.table
        if isinstance(context, Gathering) and self.columnar:
            rows_of_batch = MANY_ROWS if table == EXCHANGES else ROWS
            whole = read_together(context, [table], rows_of_batch)
            return self.shape(batch.select(self.made) for _, batch in whole)
        if rows is None:
            rows = (
                context.rows(table) if isinstance(context, Portion) else TABLES[table].rows(context)
            )
        found = to_batches(table, self.made, rows, self.options, context.name_topics)
        return self.shape(found)

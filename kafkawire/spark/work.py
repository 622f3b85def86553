"""What tasks make of packets: rows of a table as record batches, and facts.

Law: a bucket, a chunk, a group is made rows of by the tables of a single process.

    packets of a bucket --gathering--> rows | items of groups | chunks, and facts
    items of groups --telling--> rows            chunks --opening--> rows
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from ..capture.tables import TABLES
from ..capture.tables.context import Context
from ..capture.tables.passes import EXCHANGES, RECORDS
from ..capture.tables.together import together
from .chunks import CHUNKED, cut, portion
from .columns import ROWS, is_bare, is_plain, to_batches
from .decoding import Gathering, Notices, Traffic, in_order, sorted_rows, tune
from .errors import ascii_safe
from .facts import Facts
from .groups import event_rows, item_batches, items
from .options import Options
from .outputs import out_row, packed
from .packets import Placing
from .planning import Plan
from .portions import Portion

Batches = Iterator[pa.RecordBatch]
Step = Callable[[Iterable[pa.RecordBatch]], Batches]

COLUMNAR: Final = frozenset({EXCHANGES, RECORDS})
"""Tables that are made column by column, where no row is left out or changed."""

IN_TWO_STEPS: Final = "group_events"
"""The table whose rows cross connections."""


def plainly(batches: Batches) -> Batches:
    """Make rows for Spark of batches, as they are."""
    for batch in batches:
        yield out_row("rows", "", 0, len(batch), packed(batch))


@dataclass(frozen=True, slots=True)
class Work:
    """What is made of packets. made: columns; shape: as in `decode`."""

    plan: Plan
    made: list[str]
    options: Options
    shape: Callable[[Batches], Batches]

    def gathering(self, placing: Placing) -> Step:
        """Make the step from the packets of a bucket to rows, or what becomes rows, and facts."""
        plan, options, table = self.plan, self.options, self.options.table

        @ascii_safe
        def step(batches: Iterable[pa.RecordBatch]) -> Batches:
            tune()
            facts = Facts()
            rest = iter(batches)
            first = next((batch for batch in rest if len(batch)), None)
            if first is None:
                return
            bucket = first.column(0)[0].as_py()
            notices = Notices(facts)
            segments = in_order(sorted_rows(chain([first], rest)), notices.take)
            traffic = Traffic(segments, notices, plan.names, plan.sets, options)
            context = Gathering(traffic, plan.sets, bare=is_bare(table, self.made))
            if table == IN_TWO_STEPS:
                yield from item_batches(items(context, traffic, plan.sets))
            elif bucket < len(placing.hot) and table in CHUNKED:
                for number, chunk in enumerate(cut(context, traffic, options.chunk_bytes)):
                    facts.sums["chunks"] += 1
                    yield out_row("chunk", "", 0, number, chunk)
            else:
                yield from self._made(context)
            yield out_row("facts", "", 0, 0, facts.pack())
            pa.default_memory_pool().release_unused()

        return step

    def opening(self) -> Step:
        """Make the step from chunks to rows."""
        plan, bare = self.plan, is_bare(self.options.table, self.made)

        @ascii_safe
        def step(batches: Iterable[pa.RecordBatch]) -> Batches:
            tune()
            for batch in batches:
                for body in batch.column("body"):
                    yield from self._made(portion(body.as_py(), plan.names, plan.sets, bare=bare))

        return step

    def telling(self) -> Step:
        """Make the step from items of groups, sorted by group, to rows."""

        @ascii_safe
        def step(batches: Iterable[pa.RecordBatch]) -> Batches:
            context = Portion(self.plan.names, self.plan.sets, Facts())
            yield from self._made(context, event_rows(batches, context))

        return step

    def _made(self, context: Context, rows: Iterable[Any] | None = None) -> Batches:
        table = self.options.table
        if isinstance(context, Gathering) and table in COLUMNAR and is_plain(table, self.options):
            whole = together(context, [table], ROWS)
            return self.shape(batch.select(self.made) for _, batch in whole)
        if rows is None:
            rows = (
                context.rows(table) if isinstance(context, Portion) else TABLES[table].rows(context)
            )
        found = to_batches(table, self.made, rows, self.options, context.name_topics)
        return self.shape(found)

"""Rows of all tables from a batch's packets, and the state of connections carried to the next.

Law: the state of a connection is a row that stands before its packets, and comes to them by the
same shuffle; one of which nothing comes is passed on as it is.

    states, packets, by bucket --by connection--> Carried --> rows | items of groups | facts
                                                     `------> state, for the next batch
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import pyarrow as pa

from ...capture.engine import located
from ...capture.files.blocks import NO_TIME
from ..decode.chunk_rows import Places, Portion
from ..decode.decoding import Notices, in_order, sorted_rows, tune
from ..decode.packets import Kind, by_connection
from ..errors import ascii_safe
from ..plan.facts import Facts
from ..write.outputs import Output, packed
from .connections import GROUPS, LIVES, Carried, Terms

BEFORE: Final = -1
"""What a state is sorted by: it stands before all else."""

STATES: Final = pa.schema(
    [pa.field("key", pa.binary()), pa.field("last_ns", pa.int64()), pa.field("state", pa.binary())]
)
"""States of connections in a file: of a pair of ends, and when they were seen last."""

STATE_ROWS: Final = 64


class State(NamedTuple):
    """What an earlier batch left of a pair of ends."""

    last_ns: int
    state: bytes


class BatchFacts(NamedTuple):
    """What a task knows that all need.

    opened: first packets of connections that begin in the batch; live: of those that later batches
    may speak of. newest_ns: time of the newest packet. facts: names, sums.
    """

    opened: list[int]
    live: list[int]
    newest_ns: int
    given_up: int
    facts: bytes


class Carrier:
    """Decodes a partition of a batch."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.facts = Facts()
        self.out = Output(terms.options)
        self._portion = Portion(terms.names, [0] * len(terms.names), self.facts)
        self._places = Places(terms.names)
        self._before: dict[bytes, State] = {}
        self._carried: dict[bytes, Carried] = {}
        self._last: dict[bytes, int] = {}
        self._opened: list[int] = []
        self._live: list[int] = []
        self._states: list[tuple[bytes, int, bytes]] = []
        self._given_up = 0

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give all that the bucket tells."""
        notices = Notices(self.facts)

        def other(kind: int, packet: int, body: bytes) -> None:
            if kind == Kind.STATE:
                key, last_ns, state = pickle.loads(body)
                self._before[key] = State(last_ns, state)
            else:
                notices.take(kind, packet, body)

        for segments in in_order(sorted_rows(batches), other):
            for key, mine in by_connection(segments):
                carried = self._carried.get(key) or self._restored(key)
                carried.feed(mine)
                carried.flush()
                self._last[key] = max(self._last[key], int(mine.ts.max()))
                yield from self.out.drain()
        for key in [*self._carried, *self._before]:
            self._done(key)
            yield from self.out.drain()
        self._loose(notices)
        self._tell()
        yield from self.out.finish()

    def _restored(self, key: bytes) -> Carried:
        """Go on with the connections of a pair of ends."""
        carried = Carried(self.terms, self._portion, self.facts, self.out)
        last_ns, state = self._before.pop(key, State(NO_TIME, b""))
        if state:
            _, known, kept = pickle.loads(state)
            carried.restore(known, kept)
        self._carried[key], self._last[key] = carried, last_ns
        return carried

    def _done(self, key: bytes) -> None:
        """Close the connections of a pair of ends, or carry them on."""
        terms, before = self.terms, self._before.get(key)
        if before is None:
            self._keep(key, self._carried.pop(key), self._last[key])
        elif not terms.closing and not NO_TIME < before.last_ns < terms.silent_ns:
            self._live += pickle.loads(before.state)[0]
            self._states.append((key, *before))
        else:
            self._opened += self._restored(key).close()
            del self._carried[key]

    def _keep(self, key: bytes, carried: Carried, last_ns: int) -> None:
        if self.terms.closing:
            self._opened += carried.close()
            return
        kept = carried.keep()
        size = len(kept.state)
        if size > self.terms.state_bytes:
            carried.close(f"given up: {size} bytes would have to be carried to the next batch")
            self._opened += kept.opened
            self._given_up += len(kept.open)
            return
        self._opened += kept.opened
        self._live += kept.live
        self._states.append((key, last_ns, pickle.dumps((kept.live, kept.open, kept.state))))

    def _loose(self, notices: Notices) -> None:
        """Tell what is wrong with files."""
        portion, terms = self._portion, self.terms
        told = notices.told(terms.options, self._places.place)
        portion.items = [located(one) for one in told]
        portion.told, portion.reminders = [], []
        for table in terms.tables:
            if table not in (GROUPS, LIVES):
                self.out.rows(table, portion.rows(table))

    def _tell(self) -> None:
        for at in range(0, len(self._states), STATE_ROWS):
            columns = zip(*self._states[at : at + STATE_ROWS], strict=True)
            arrays = [pa.array(list(c), f.type) for c, f in zip(columns, STATES, strict=True)]
            body = packed(pa.RecordBatch.from_arrays(arrays, schema=STATES))
            self.out.other("state", LIVES, 0, 0, body)
        newest = max(self._last.values(), default=NO_TIME)
        told = BatchFacts(self._opened, self._live, newest, self._given_up, self.facts.pack())
        self.out.other("facts", "", 0, 0, pickle.dumps(tuple(told)))


@ascii_safe
def carry(batches: Iterable[pa.RecordBatch], terms: Terms) -> Iterator[pa.RecordBatch]:
    """Decode a bucket's states and packets, in order."""
    tune()
    yield from Carrier(terms).run(batches)

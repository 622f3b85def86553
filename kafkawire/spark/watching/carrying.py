"""Rows of all tables from a batch's packets, and the state of connections carried to the next.

Law: the state of a connection is a row that stands before its packets, and comes to them by the
same shuffle; one of which nothing comes is passed on as it is.

    state, packets, by key --> Carried --> rows | items of groups | facts
                                  `------> state, for the next batch
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from ...capture.blocks import NO_TIME
from ..decoding import Traffic, in_order_of_keys
from ..errors import ascii_safe
from ..facts import Facts
from ..packets import SCHEMA, is_connection
from .carried import GROUPS, LIVES, Carried, Terms
from .outputs import Output, packed
from .portions import Portion

BEFORE: Final = -1
"""Number of the packet that a state stands for: before all others."""


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
        self._portion = Portion(terms.names, self.facts)
        self._opened: list[int] = []
        self._live: list[int] = []
        self._states: list[tuple[bytes, int, bytes]] = []
        self._newest = NO_TIME
        self._given_up = 0

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give all that the partition tells."""
        others: list[pa.RecordBatch] = []
        current, state, last_ns, carried = b"", b"", NO_TIME, None
        for rows, _ in in_order_of_keys(batches):
            if not is_connection(rows.column("key")[0].as_py()):
                others.append(rows)
                continue
            for piece in _by_key(rows):
                key = piece.column("key")[0].as_py()
                if key != current:
                    self._done(current, carried, state, last_ns)
                    yield from self.out.drain()
                    current, state, last_ns, carried = key, b"", NO_TIME, None
                if piece.column("packet")[0].as_py() == BEFORE:
                    state = piece.column("payload")[0].as_py()
                    last_ns = piece.column("ts")[0].as_py()
                    piece = piece.slice(1)
                if len(piece):
                    carried = carried or self._restored(state)
                    carried.feed(piece)
                    last_ns = max(last_ns, int(np.max(piece.column("ts").to_numpy())))
                    self._newest = max(self._newest, last_ns)
                    yield from self.out.drain()
        self._done(current, carried, state, last_ns)
        self._loose(others)
        self._tell()
        yield from self.out.finish()

    def _restored(self, state: bytes) -> Carried:
        carried = Carried(self.terms, self._portion, self.facts, self.out)
        if state:
            _, known, kept = pickle.loads(state)
            carried.restore(known, kept)
        return carried

    def _done(self, key: bytes, carried: Carried | None, state: bytes, last_ns: int) -> None:
        """Close the connections of a key, or carry them on."""
        terms = self.terms
        if carried is None and state:
            if not terms.closing and not NO_TIME < last_ns < terms.silent_ns:
                self._live += pickle.loads(state)[0]
                self._states.append((key, last_ns, state))
                return
            carried = self._restored(state)
            self._opened += carried.close()
        elif carried is not None:
            self._keep(key, carried, last_ns)

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

    def _loose(self, batches: list[pa.RecordBatch]) -> None:
        """Tell what is wrong with files."""
        portion, terms = self._portion, self.terms
        portion.items = list(Traffic(batches, terms.names, terms.options, self.facts))
        portion.told, portion.reminders = [], []
        for table in terms.tables:
            if table not in (GROUPS, LIVES):
                self.out.rows(table, portion.rows(table))

    def _tell(self) -> None:
        for key, last_ns, state in self._states:
            row = (key, BEFORE, last_ns, True, 0, 0, 0, 0, state)
            arrays = [pa.array([value], f.type) for value, f in zip(row, SCHEMA, strict=True)]
            body = packed(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))
            self.out.other("state", LIVES, 0, 0, body)
        told = BatchFacts(self._opened, self._live, self._newest, self._given_up, self.facts.pack())
        self.out.other("facts", "", int(self.facts.fragments), 0, pickle.dumps(tuple(told)))


def _by_key(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut rows where another key begins."""
    keys = rows.column("key").to_pylist()
    start = 0
    for at in range(1, len(keys) + 1):
        if at == len(keys) or keys[at] != keys[start]:
            yield rows.slice(start, at - start)
            start = at


@ascii_safe
def carry(batches: Iterable[pa.RecordBatch], terms: Terms) -> Iterator[pa.RecordBatch]:
    """Decode a partition's states and packets, sorted by key and packet."""
    # Decoded messages have no cycles: with Python's default the collector walks them in vain.
    gc.set_threshold(100_000, 50, 1000)
    yield from Carrier(terms).run(batches)

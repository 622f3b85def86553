"""Rows of all tables from a batch's packets, and the state of connections carried to the next.

Law: a connection is decoded by one engine, however many batches it spans; its state is a row that
stands before its packets, and comes to them by the same shuffle.

    state, packets of a pair of ends --> engine, portions --> rows | group items | facts
                                              `----------------> state, for the next batch
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from ...capture.blocks import NO_TIME
from ...capture.connections import Connection
from ...capture.engine import Located
from ...capture.exchanges import Ended, Exchange, Exchanges
from ...capture.fetch_sessions import FetchSessions
from ...capture.rows import Row
from ...capture.tables import TABLES
from ...capture.tables.traffic import as_ended
from ...messages.api_key import ApiKey
from ..columns import to_batches
from ..decoding import ToldEngine, Traffic, in_order_of_keys
from ..errors import ascii_safe
from ..facts import Facts
from ..groups import APIS
from ..options import Options
from ..packets import SCHEMA, is_connection, segments_in
from .keeping import dump, load
from .portions import Memory, Portion, Values, merged, reminded

GROUPS: Final = "group_events"
LIVES: Final = "connections"

OUT: Final = pa.schema(
    [
        pa.field("kind", pa.string()),
        pa.field("name", pa.string()),
        pa.field("at", pa.int64()),
        pa.field("n", pa.int64()),
        pa.field("body", pa.binary()),
    ]
)
"""What a task gives: batches of rows of table `name`, items of group `name`, states, facts."""

BEFORE: Final = -1
"""Number of the packet that a state stands for: before all others."""

PORTION_ITEMS: Final = 1024
PORTION_BYTES: Final = 4 << 20
BUFFERED: Final = 256
"""Rows of a table that are worth a batch."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a batch is decoded by.

    names: of the files of all batches so far. silent_ns: connections whose last packet is older are
    closed. state_bytes: most that is carried of the connections of a pair of ends. closing: nothing
    more comes.
    """

    tables: tuple[str, ...]
    options: Options
    names: tuple[str, ...]
    silent_ns: int
    state_bytes: int
    closing: bool = False


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


class Kept(NamedTuple):
    """What is carried of the connections of a pair of ends: those that began in this batch, those
    that are open, those that may be spoken of, and the state.
    """

    opened: list[int]
    open: list[int]
    live: list[int]
    state: bytes


class Output:
    """Collects rows of tables; `drain` gives what is worth giving."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._rows: dict[str, list[Values]] = {}
        self._ready: list[pa.RecordBatch] = []

    def rows(self, table: str, rows: Iterable[Values]) -> None:
        """Take rows of a table."""
        held = self._rows.setdefault(table, [])
        for row in rows:
            held.append(row)
            if len(held) >= BUFFERED:
                self._flush(table)
                held = self._rows[table]

    def other(self, kind: str, name: str, at: int, n: int, body: bytes) -> None:
        """Take something else."""
        self._ready.append(out_row(kind, name, at, n, body))

    def drain(self) -> Iterator[pa.RecordBatch]:
        """Give what is there."""
        ready, self._ready = self._ready, []
        yield from ready

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Give all."""
        for table in list(self._rows):
            self._flush(table)
        yield from self.drain()

    def _flush(self, table: str) -> None:
        rows, self._rows[table] = self._rows[table], []
        made = [column.name for column in TABLES[table].columns]
        for batch in to_batches(table, made, rows, self._options, lambda: None):
            self.other("rows", table, 0, len(batch), packed(batch))


def out_row(kind: str, name: str, at: int, n: int, body: bytes) -> pa.RecordBatch:
    """Make a batch of one row."""
    values = (kind, name, at, n, body)
    arrays = [pa.array([value], f.type) for value, f in zip(values, OUT, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=OUT)


def packed(batch: pa.RecordBatch) -> bytes:
    """Write a batch."""
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(out.getvalue())


def unpacked(body: bytes) -> Iterator[pa.RecordBatch]:
    """Read batches."""
    with pa.ipc.open_stream(body) as stream:
        yield from stream


# -- the connections of a pair of ends


class Carried:
    """The connections of a pair of ends, one after the other, from batch to batch."""

    def __init__(self, terms: Terms, portion: Portion, facts: Facts, out: Output) -> None:
        self._terms = terms
        self._portion = portion
        self._facts = facts
        self._out = out
        self._known: set[int] = set()
        self._memories: dict[int, Memory] = {}
        self._pairs = Exchanges()
        self._sessions = FetchSessions(portion.names)
        self._engine = ToldEngine(terms.options, self.end)
        self._ended: list[Ended] = []
        self._gone: set[int] = set()
        self._items: list[Located | Ended] = []
        self._exchanges: list[Exchange] = []
        self._reminders: list[Exchange] = []
        self._bytes = self._n = 0

    def restore(self, known: list[int], state: bytes) -> None:
        """Go on from what an earlier batch left; known: connections that were open then."""
        self._engine, self._memories, waiting = load(state, keeper=self)
        self._known = set(known)
        firsts = self._engine.firsts
        last = max(firsts, default=-1)
        self._engine.firsts = {
            id: first for id, first in firsts.items() if first in self._known or id == last
        }
        for item in waiting:
            for _ in self._pairs.take(item):
                pass
        self._remind()
        reminded(self._reminders, self._sessions)

    def feed(self, rows: pa.RecordBatch) -> None:
        """Take packets."""
        segments = segments_in(rows)
        self._facts.sums["captured_bytes"] += int(segments.captured.sum())
        self._take(self._engine.feed(segments))

    def end(self, connection: Connection, client: int) -> None:
        """Take note that nothing more comes of a connection (the engine calls this)."""
        ended = as_ended(connection, client)._replace(connection=connection.first_packet)
        self._facts.sums["connections"] += 1
        self._facts.sums["repeated_bytes"] += ended.repeated_bytes
        self._ended.append(ended)

    def close(self, why: str = "") -> list[int]:
        """Give up what is awaited; say which connections began in this batch."""
        self._take(_because(self._engine.finish(), why))
        self._flush()
        return sorted(self._gone - self._known)

    def keep(self) -> Kept:
        """Say what is carried on; this one can still be closed."""
        self._flush()
        waiting = [
            Located(each.connection, each.client, each.broker, each.request)
            for each in self._pairs.finish()
            if each.request is not None
        ]
        for item in waiting:
            for _ in self._pairs.take(item):
                pass
        state = dump((self._engine, self._memories, waiting), keeper=self)
        probe = _Probe()
        for _ in load(state, keeper=probe)[0].finish():
            pass
        live = {*self._engine.firsts.values(), *probe.open}
        opened = (self._gone | probe.open) - self._known
        return Kept(sorted(opened), sorted(probe.open), sorted(live), state)

    # -- items

    def _take(self, rows: Iterable[Located]) -> None:
        for found in rows:
            self._drain()
            assert found.connection is not None
            self._facts.row(found.row)
            self._portion.learn(found.row)
            self._item(found._replace(connection=self._engine.firsts[found.connection]))
        self._drain()

    def _drain(self) -> None:
        while self._ended:
            ended = self._ended.pop(0)
            self._gone.add(ended.connection)
            self._item(ended)

    def _item(self, item: Located | Ended) -> None:
        self._items.append(item)
        if isinstance(item, Located):
            row = item.row
            self._bytes += row.length
            if row.direction == "request" and row.api_key == ApiKey.JOIN_GROUP:
                self._group(row, row)
            found = self._pairs.take(item)
        else:
            found = self._pairs.end(item.connection)
        for exchange in found:
            self._exchange(exchange)
        if len(self._items) >= PORTION_ITEMS or self._bytes >= PORTION_BYTES:
            self._flush()

    def _exchange(self, exchange: Exchange) -> None:
        self._exchanges.append(exchange)
        memory = self._memories.setdefault(exchange.connection, Memory())
        memory.note(exchange, self._sessions.expand(exchange))
        if exchange.told.api_key in APIS and exchange.response is not None:
            self._group(exchange.request, exchange)

    def _group(self, request: Row | None, told: Row | Exchange) -> None:
        message: Any = None if request is None else request.message
        if GROUPS in self._terms.tables and message is not None:
            # Text that is no UTF-8 on the wire is kept as it is, and Arrow takes none of that.
            group_id = message.group_id.encode("utf-8", "backslashreplace").decode()
            self._n += 1
            self._out.other("item", group_id, self._engine.at, self._n, pickle.dumps(told))

    # -- portions

    def _flush(self) -> None:
        if not self._items:
            return
        portion = self._portion
        portion.items, portion.told = self._items, self._exchanges
        portion.reminders = self._reminders
        for table in self._terms.tables:
            if table == LIVES:
                self._live()
            elif table != GROUPS:
                self._out.rows(table, portion.rows(table))
        for item in self._items:
            if isinstance(item, Ended):
                self._memories.pop(item.connection, None)
        self._items, self._exchanges, self._bytes = [], [], 0
        self._remind()

    def _remind(self) -> None:
        self._reminders = [
            each for memory in self._memories.values() for each in memory.sessions.values()
        ]

    def _live(self) -> None:
        """Make rows of connections that ended; of others remember it."""
        ended = {item.connection for item in self._items if isinstance(item, Ended)}
        going_on = {
            item.connection: Ended(item.connection, item.client, item.broker, 0, 0, 0, 0, False)
            for item in self._items
            if isinstance(item, Located)
            and item.connection is not None
            and item.client is not None
            and item.broker is not None
            and item.connection not in ended
        }
        self._portion.items = [*self._items, *going_on.values()]
        for row in self._portion.rows(LIVES):
            memory = self._memories.setdefault(row[0], Memory())
            memory.life = merged(memory.life, row)
            if row[0] in ended:
                self._out.rows(LIVES, [memory.life])


class _Probe:
    """Learns which connections of an engine are open."""

    def __init__(self) -> None:
        self.open: set[int] = set()

    def end(self, connection: Connection, _client: int) -> None:
        self.open.add(connection.first_packet)


def _because(rows: Iterable[Located], why: str) -> Iterator[Located]:
    """Say why a connection was given up, where bytes of it were."""
    for found in rows:
        row = found.row
        if why and not row.is_message:
            row = row._replace(error=f"{row.error}; {why}" if row.error else why)
        yield found._replace(row=row)


# -- the connections of a partition


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

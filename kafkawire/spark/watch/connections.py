"""Decodes the connections of a pair of endpoints from batch to batch.

One engine decodes them, however many batches they span; its pending data is part of its state.

    state --restore--> engine, pairing, fetch sessions, rows of connections <--feed-- packets
                            |--> rows, group items
                            `--snapshot--> state    or --close--> pending data is flushed as rows
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ...capture.exchanges.endings import as_ended
from ...capture.exchanges.exchanges import Ended, Exchange
from ...capture.exchanges.message_pairs import Pair
from ...capture.frames.decoding import LocatedItem, located
from ...capture.packets.segments import Segments
from ...capture.rows import Located, Row
from ...capture.snapshot import InvalidState, StateVersionError, dump, load
from ...capture.tables.connections import Connections
from ...capture.tables.extraction.messages import ExtractedMessage, Extractor
from ...capture.tables.group_events import APIS, CAUSES
from ...capture.tables.passes import COLUMNAR, Columnar
from ...capture.tables.tasks.making import MESSAGE_ROWS
from ...capture.tables.tasks.pairing import (
    ItemPair,
    Pairing,
    TaskMessage,
    api_key_of,
    exchange_of,
)
from ...capture.tables.tasks.sessions import SessionStates
from ...capture.tcp.connection import Connection
from ..decode.chunk_rows import ChunkContext, Values
from ..decode.columns import ROWS
from ..decode.decoding import new_engine
from ..decode.outputs import Output
from ..errors import DamagedCheckpoint
from ..options import Options
from ..plan.facts import END, Facts
from .connection_rows import merged

GROUPS: Final = "group_events"
CONNECTIONS: Final = "connections"

CHUNK_ITEMS: Final = 1024
CHUNK_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """Settings of a batch.

    names: the files of all batches so far. silent_ns: connections whose last packet is older are
    closed. state_bytes: limit of the state of a pair of endpoints. closing: no more files come.
    """

    tables: tuple[str, ...]
    options: Options
    names: tuple[str, ...]
    silent_ns: int
    state_bytes: int
    closing: bool = False


class PairSnapshot(NamedTuple):
    """The state of the connections of a pair of endpoints.

    opened: those that began in this batch; open: those that are still open; live: those that may
    still get rows.
    """

    opened: list[int]
    open: list[int]
    live: list[int]
    state: bytes


class PairDecoder:
    """Decodes the connections of a pair of endpoints, one after the other, from batch to batch."""

    def __init__(
        self, settings: BatchSettings, context: ChunkContext, facts: Facts, out: Output
    ) -> None:
        self._settings = settings
        self._context = context
        self._facts = facts
        self._out = out
        self._known: set[int] = set()
        self._rows: dict[int, Values] = {}  # of `connections`, so far
        self._pairing = Pairing()
        self._sessions = SessionStates(
            context.names, Extractor(context.names, context.limits, False), context.limits
        )
        self._messages = 0
        self._extracted: dict[int, ExtractedMessage] = {}  # by index, until they are paired
        self._columnar = Columnar(context, COLUMNAR.intersection(settings.tables), ROWS)
        self._tables_by_row = [name for name in settings.tables if name in MESSAGE_ROWS]
        self._engine = new_engine(settings.options, self.end)
        self._seen: set[int] = set()
        self._ended: list[Ended] = []
        self._closed: set[int] = set()
        self._items: list[Located | Ended] = []
        self._bytes = self._n = self._base = self._known_at = 0

    def restore(self, connections: list[int], state: bytes) -> None:
        """Restore the state of an earlier batch. connections: those that were open then."""
        engine_state, self._known_at, self._rows, requests, sessions = load(state)
        self._engine.restore(engine_state)
        self._known = set(connections)
        self._sessions.restore(sessions)
        for request in self._pairing.restore(requests):
            self._facts.at = request.located.item.packet
            # its records were in earlier batches
            self._extract(request.located, request.index, None)
        self._messages = len(requests)

    def feed(self, segments: Segments) -> None:
        """Decode packets."""
        self._facts.sums["captured_bytes"] += int(segments.captured.sum())
        self._take(segments)

    def end(self, connection: Connection, client: int) -> None:
        """Handle the end of a connection (called by the engine)."""
        ended = as_ended(connection, client, connection.first_packet)
        self._facts.sums["connections"] += 1
        self._facts.sums["repeated_bytes"] += ended.repeated_bytes
        self._ended.append(ended)

    def close(self, reason: str = "") -> list[int]:
        """Close the connections and flush pending data.

        Returns the connections that began in this batch. reason: why they are given up.
        """
        self._base = END
        self._take(None, reason)
        self.flush()
        return sorted(self._closed - self._known)

    def snapshot(self) -> PairSnapshot:
        """Return the state; the decoder can still be closed."""
        self.flush()
        tracked = self._engine.connections
        open = {each.first_packet for each in tracked if not each.closed}
        pending = self._pairing.snapshot(), self._sessions.snapshot(open)
        state = dump((self._engine.snapshot(), self._known_at, self._rows, *pending))
        # rows of late packets refer to closed connections, causes of rebalances to all of the batch
        live = {*self._seen, *self._known, *(each.first_packet for each in tracked)}
        opened = (self._closed | open) - self._known
        return PairSnapshot(sorted(opened), sorted(open), sorted(live), state)

    # -- items

    def _take(self, segments: Segments | None, reason: str = "") -> None:
        for batch in self._engine.handle(segments):
            self._known_at = batch[0].known_at
            self._drain()
            for item in batch:
                located_item = located(item)
                if reason:
                    located_item = _with_reason(located_item, reason)
                assert located_item.connection is not None
                self._seen.add(located_item.connection)
                self._known_at = item.known_at
                self._facts.row(located_item.row)
                self._context.learn(located_item.row)
                self._message(item, located_item)
        self._drain()

    def _drain(self) -> None:
        while self._ended:
            ended = self._ended.pop(0)
            self._closed.add(ended.connection)
            self._seen.add(ended.connection)
            self._items.append(ended)
            self._exchanges(self._pairing.end(ended.connection))

    def _message(self, item: LocatedItem, decoded: Located) -> None:
        row, index = decoded.row, self._messages
        self._messages += 1
        self._items.append(decoded)
        self._bytes += row.length
        self._extract(item, index, row)
        if row.direction == "request" and row.api_key in CAUSES:
            self._group(decoded, row.message)
        self._exchanges(self._pairing.handle(item, 0, index))

    def _extract(self, item: LocatedItem, index: int, row: Row | None) -> None:
        """Extract a message until it is paired. row: None if its records are in the tables."""
        message = self._columnar.extract(item, row, row is not None)
        if message is not None:
            self._extracted[index] = message

    def _exchanges(self, pairs: list[ItemPair]) -> None:
        """Add exchanges to the tables; make rows if enough was collected."""
        for pair in pairs:
            replay = self._sessions.handle(pair)
            if replay is not None:
                requests, connection = replay.history.requests, pair.ends.connection
                self._columnar.restore(connection, replay.session, requests, None)
            sent, received = self._taken(pair.request), self._taken(pair.response)
            self._columnar.add_exchange(Pair(pair.ends, sent, received))
            for table, batch in self._columnar.batches():
                self._out.batch(table, batch)
            self._group_exchange(pair)
        if len(self._items) >= CHUNK_ITEMS or self._bytes >= CHUNK_BYTES:
            self.flush()

    def _taken(self, message: TaskMessage | None) -> ExtractedMessage | None:
        return None if message is None else self._extracted.pop(message.index, None)

    # -- groups

    def _group_exchange(self, pair: ItemPair) -> None:
        if pair.request is None:
            return
        api_key = api_key_of(pair.request.located)
        if api_key in APIS and (pair.response is not None or api_key in CAUSES):
            exchange = exchange_of(pair, self._context.limits)
            assert exchange.request is not None
            self._group(exchange, exchange.request.message)

    def _group(self, value: Located | Exchange, message: Any) -> None:
        """Add an item of a group. message: the request, None if it was not decoded."""
        if GROUPS in self._settings.tables and message is not None:
            # Invalid UTF-8 on the wire is kept as surrogates, which Arrow does not accept.
            group_id = message.group_id.encode("utf-8", "backslashreplace").decode()
            self._n += 1
            self._out.other(
                "item", group_id, self._base + self._known_at, self._n, pickle.dumps(value)
            )

    # -- chunks

    def flush(self) -> None:
        """Make rows of the collected items."""
        if not self._items:
            return
        for table, batch in self._columnar.batches(last=True):
            self._out.batch(table, batch)
        for table in self._tables_by_row:
            for item in self._items:
                self._out.rows(table, MESSAGE_ROWS[table](item, self._context))
        if CONNECTIONS in self._settings.tables:
            self._connection_rows()
        for item in self._items:
            if isinstance(item, Ended):
                self._rows.pop(item.connection, None)
        self._items, self._bytes = [], 0

    def _connection_rows(self) -> None:
        """Make rows of connections that ended; keep those of others."""
        ended = {item.connection for item in self._items if isinstance(item, Ended)}
        still_open = {
            item.connection: Ended(item.connection, item.client, item.broker, 0, 0, 0, 0, False)
            for item in self._items
            if isinstance(item, Located)
            and item.connection is not None
            and item.client is not None
            and item.broker is not None
            and item.connection not in ended
        }
        connections = Connections(self._context)
        for item in [*self._items, *still_open.values()]:
            for row in connections.handle(item):
                self._add_connection(row, has_ended=row[0] in ended)

    def _add_connection(self, row: Values, *, has_ended: bool) -> None:
        row = self._rows[row[0]] = merged(self._rows.get(row[0]), row)
        if has_ended:
            self._out.rows(CONNECTIONS, [row])


@contextmanager
def readable_checkpoint() -> Iterator[None]:
    """Raise DamagedCheckpoint for a state that is damaged."""
    try:
        yield
    except (InvalidState, StateVersionError) as error:
        reason = str(error).encode("ascii", "backslashreplace").decode()
        raise DamagedCheckpoint(reason) from None


def _with_reason(item: Located, reason: str) -> Located:
    """Add the reason why a connection was given up to a row of its pending bytes."""
    row = item.row
    if row.is_message:
        return item
    return item._replace(row=row._replace(error=f"{row.error}; {reason}" if row.error else reason))

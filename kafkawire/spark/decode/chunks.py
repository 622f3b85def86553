"""Cuts a connection with too many bytes for one task into chunks that any task can decode.

The rows of the chunks are those of the connection. Each chunk carries the state that it needs:
open requests and fetch sessions.

    packets --one task: reassembly, framing, pairing--> LocatedItem | Ended   (bodies undecoded)
       chunk 0 | chunk 1 | chunk 2 ...                  --any task: bodies, rows of the table
                 `-- open requests and sessions at the end of chunk 0
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from ...capture.exchanges.exchanges import (
    OUT_OF_ORDER,
    Ended,
    Exchange,
    Exchanges,
    is_paired,
)
from ...capture.exchanges.fetch_sessions import FetchSessions
from ...capture.exchanges.message_pairs import MessagePairs, Pair, exchange_key
from ...capture.frames.decoding import LocatedItem, RawFrame, located
from ...capture.frames.serialised import SerialisedFrames, pack, unpack
from ...capture.rows import Row
from ...capture.tables.extraction.messages import Extractor
from ...capture.tables.passes import RECORDS, Columnar
from ...messages.api_key import ApiKey
from ..plan.facts import Facts
from .chunk_rows import ChunkContext, ConnectionHistory
from .decoding import BucketContext, BucketTraffic, without_bodies

CHUNKED: Final = frozenset({"exchanges", "messages", "records", "partitions"})
"""Tables whose rows are made of single messages or exchanges, and cost more than finding these:
`exchanges` only if it is not made column by column.
"""


class Chunk(NamedTuple):
    """Items of connections: frames, and the connections that ended, by index among all items.

    requests: open requests from before, with their ages (`InFlightRequests.requests`); sessions:
    exchanges that restore fetch sessions.
    """

    frames: SerialisedFrames
    ended: dict[int, Ended]
    requests: list[tuple[LocatedItem, int]]
    sessions: list[Exchange]


class CutMessage(NamedTuple):
    """A request or response. row: the decoded message, if it is needed."""

    item: LocatedItem
    row: Row | None


class ChunkCutter:
    """The state of connections that are being cut: open requests, fetch sessions, names.

    Only messages that may state names of topics or belong to a session are decoded; pairing is as
    in `capture.exchanges`. base: added to packet numbers, see `Facts.at`.
    """

    def __init__(self, context: BucketContext, facts: Facts) -> None:
        self.base = 0
        self._facts = facts
        self._context = context
        self._extractor = Extractor(context.names, context.limits, False)
        self._sessions = FetchSessions(context.names)
        self._histories: dict[int, ConnectionHistory] = {}
        self._pairs: MessagePairs[CutMessage] = MessagePairs()
        self._skippable: dict[int, bool] = {}

    def take(self, item: LocatedItem) -> None:
        """Take the next item."""
        frame, connection = item.item, item.connection or 0
        if not isinstance(frame, RawFrame) or (request := frame.request) is None or frame.body < 0:
            row = self._opened(item)
            packet, number = row.request_packet, row.correlation_id
            if row.status is OUT_OF_ORDER and packet is not None:
                self._pairs.overtake(connection, exchange_key(packet, number))
            if item.connection is not None and is_paired(row):
                if row.direction == "request":
                    self._request(item, row, exchange_key(row.packet, number), row.length)
                else:
                    self._response(item, row, packet, number)
            return
        is_request = frame.is_request
        kind = (request.api_key << 16 | request.api_version & 0xFFFF) << 1 | is_request
        skippable = self._skippable.get(kind)
        if skippable is None:
            names = self._extractor.format_of(request, is_request).names
            skippable = self._skippable[kind] = not names and request.api_key != ApiKey.FETCH
        opened = None if skippable else self._opened(item)
        packet, number = request.packet, request.correlation_id
        if is_request:
            self._request(item, opened, exchange_key(frame.packet, number), len(frame.frame))
        else:
            self._response(item, opened, packet, number)

    def _request(self, item: LocatedItem, row: Row | None, key: int, length: int) -> None:
        connection, client, broker = item.connection or 0, item.client or "", item.broker or ""
        message = CutMessage(item, row)
        self._pairs.request(connection, client, broker, key, length, message)
        self._take_complete()

    def _response(
        self, item: LocatedItem, row: Row | None, packet: int | None, number: int | None
    ) -> None:
        connection, client, broker = item.connection or 0, item.client or "", item.broker or ""
        key = None if packet is None else exchange_key(packet, number)
        self._pairs.response(connection, client, broker, key, CutMessage(item, row))
        self._take_complete()

    def _take_complete(self) -> None:
        for pair in self._pairs.take():
            self._complete(pair)

    def _complete(self, pair: Pair[CutMessage]) -> None:
        request = None if pair.request is None else pair.request.row
        if request is None or request.api_key != ApiKey.FETCH:
            return
        response = None if pair.response is None else pair.response.row
        ends = pair.ends
        exchange = Exchange(ends.connection, ends.client, ends.broker, request, response)
        in_flight = self._sessions.expand(exchange)
        if in_flight is not None:
            history = self._histories.setdefault(ends.connection, ConnectionHistory())
            history.note(exchange, in_flight)

    def end(self, connection: int) -> None:
        """Handle the end of a connection."""
        self._pairs.end(connection)
        self._pairs.take()
        self._histories.pop(connection, None)

    def before(self) -> tuple[list[tuple[LocatedItem, int]], list[Exchange]]:
        """Return the state for the next chunk: open requests, session exchanges."""
        requests = [(message.item, age) for _, message, age in self._pairs.in_flight()]
        sessions = [one for each in self._histories.values() for one in each.sessions.values()]
        return requests, sessions

    def _opened(self, item: LocatedItem) -> Row:
        row = located(item).row
        self._facts.at = self.base + item.known_at
        self._context.learn(row)
        return row


def cut(context: BucketContext, traffic: BucketTraffic, size: int) -> Iterator[bytes]:
    """Cut the items of a bucket into pickled chunks of about `size` bytes; names are recorded."""
    cutter = ChunkCutter(context, traffic.facts)
    located_items: list[LocatedItem] = []
    ended: dict[int, Ended] = {}
    before = cutter.before()
    chunk_bytes = 0
    for batch in traffic.batches():
        if batch and isinstance(batch[0], LocatedItem):
            cutter.base = traffic.facts.at - batch[0].known_at
        for item in batch:
            if isinstance(item, Ended):
                ended[len(located_items) + len(ended)] = item
                cutter.end(item.connection)
                continue
            located_items.append(item)
            cutter.take(item)
            chunk_bytes += (
                len(item.item.frame) if isinstance(item.item, RawFrame) else len(item.item.raw)
            )
            if chunk_bytes >= size:
                yield pickle.dumps(tuple(Chunk(pack(located_items), ended, *before)))
                located_items, ended, chunk_bytes = [], {}, 0
                before = cutter.before()
    yield pickle.dumps(tuple(Chunk(pack(located_items), ended, *before)))


def columns(
    data: bytes, names: Sequence[str], sets: Sequence[int], tables: frozenset[str], rows: int
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Make the rows of a chunk column by column. names, sets: of all files; rows: of a batch."""
    chunk = Chunk(*pickle.loads(data))
    made = Columnar(ChunkContext(names, sets, Facts()), tables, rows)
    if tables - {RECORDS}:
        for one in chunk.sessions:
            again = [each for each in (one.request, one.response) if each is not None]
            made.handle([LocatedItem(one.connection, one.client, one.broker, row) for row in again])
        for request, age in chunk.requests:
            made.restore_request(request, age)
        for _ in made.batches(last=True):
            pass  # these exchanges and records belong to other chunks
    located_items = items(chunk)
    for at in range(0, len(located_items), rows):
        made.handle(located_items[at : at + rows])
        yield from made.batches()
    yield from made.batches(last=True)


def chunk_context(
    data: bytes, names: Sequence[str], sets: Sequence[int], *, bare: bool = False
) -> ChunkContext:
    """Read a chunk as a capture for the tables. names, sets: of all files."""
    chunk = Chunk(*pickle.loads(data))
    made = ChunkContext(names, sets, Facts())
    made.items = [one if isinstance(one, Ended) else located(one) for one in items(chunk)]
    made.session_exchanges = chunk.sessions
    pairs = Exchanges()
    pairs.restore((located(request), age) for request, age in chunk.requests)
    for item in made.items:
        done = pairs.end(item.connection) if isinstance(item, Ended) else pairs.take(item)
        made.paired.extend(done)
    if bare:
        made.items = list(without_bodies(made.items))
    return made


def items(chunk: Chunk) -> list[LocatedItem | Ended]:
    """Return the items of a chunk, in order."""
    located_items, ended = unpack(chunk.frames), chunk.ended
    rest = iter(located_items)
    places = range(len(located_items) + len(ended))
    return [ended[at] if at in ended else next(rest) for at in places]

"""A connection with too many bytes for one task, cut into chunks that any task makes rows of.

Law: the rows of the chunks are those of the connection. What a chunk must know of those before it
is handed to it: requests that wait for their response, and fetch sessions.

    packets --one task: reassembly, framing, pairing--> Told | Ended   (bodies stay sealed)
       chunk 0 | chunk 1 | chunk 2 ...                  --any task: bodies, rows of the table
                 `-- waiting requests, sessions, as the end of chunk 0 left them
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from ...capture.engine import located
from ...capture.exchanges.exchanges import MAX_OPEN, MAX_OPEN_BYTES, Ended, Exchange, Exchanges
from ...capture.exchanges.fetch_sessions import FetchSessions
from ...capture.frames.decoding import RawFrame
from ...capture.frames.serialised import LocatedItem, SerialisedFrames, pack, unpack
from ...capture.rows import Row
from ...capture.tables.extraction.messages import Extractor
from ...capture.tables.passes import EXCHANGES, Columnar, is_exchange_message
from ...messages.api_key import ApiKey
from ..plan.facts import Facts
from .chunk_rows import Memory, Portion, await_again
from .decoding import Gathering, Traffic, without_bodies

CHUNKED: Final = frozenset({"exchanges", "messages", "records", "partitions"})
"""Tables whose rows are made of single messages or exchanges, and cost more than to find these:
`exchanges` only where it is not made column by column.
"""


class Chunk(NamedTuple):
    """Items of connections: what is told, and by place among all items which connections ended
    there. requests: those that wait for their response from before; sessions: exchanges that bring
    back fetch sessions.
    """

    parcel: SerialisedFrames
    ended: dict[int, Ended]
    requests: list[LocatedItem]
    sessions: list[Exchange]


class Asking(NamedTuple):
    """A request that waits for its response. row: what it is, where that matters."""

    packet: int
    correlation_id: int | None
    length: int
    told: LocatedItem
    row: Row | None


class Waiting:
    """The requests of one connection that may still be answered."""

    def __init__(self) -> None:
        self.requests: deque[Asking] = deque()
        self.bytes = 0

    def first(self) -> Asking:
        """Take the one that waits longest."""
        found = self.requests.popleft()
        self.bytes -= found.length
        return found


class Cutting:
    """What is known of connections that are being cut: requests that wait, sessions, names.

    Only what may name topics, or speaks of a session, is opened; pairing is as in
    `capture.exchanges`. base: what stands before the packets that tell.
    """

    def __init__(self, context: Gathering, facts: Facts) -> None:
        self.base = 0
        self._facts = facts
        self._context = context
        self._hearing = Extractor(context.names, context.limits, False)
        self._sessions = FetchSessions(context.names)
        self._memories: dict[int, Memory] = {}
        self._open: dict[int, Waiting] = {}
        self._silent: dict[int, bool] = {}

    def take(self, told: LocatedItem) -> None:
        """Take what is told next."""
        item = told.item
        if not isinstance(item, RawFrame) or (asked := item.asked) is None or item.body < 0:
            row = self._opened(told)
            if told.connection is not None and is_exchange_message(row):
                number, length = row.correlation_id, row.length
                if row.direction == "request":
                    self._asks(told.connection, Asking(row.packet, number, length, told, row))
                else:
                    self._answers(told.connection, row.request_packet, number, row)
            return
        is_request = item.is_request
        kind = (asked.api_key << 16 | asked.api_version & 0xFFFF) << 1 | is_request
        silent = self._silent.get(kind)
        if silent is None:
            names = self._hearing.format_of(asked, is_request).names
            silent = self._silent[kind] = not names and asked.api_key != ApiKey.FETCH
        opened = None if silent else self._opened(told)
        connection, packet, number = told.connection or 0, asked.packet, asked.correlation_id
        if is_request:
            self._asks(connection, Asking(item.packet, number, len(item.frame), told, opened))
        else:
            self._answers(connection, packet, number, opened)

    def _asks(self, connection: int, asking: Asking) -> None:
        waiting = self._open.get(connection)
        if waiting is None:
            waiting = self._open[connection] = Waiting()
        requests = waiting.requests
        requests.append(asking)
        waiting.bytes += asking.length
        while len(requests) > MAX_OPEN or (waiting.bytes > MAX_OPEN_BYTES and len(requests) > 1):
            self._complete(waiting.first(), None)

    def _answers(
        self, connection: int, packet: int | None, number: int | None, row: Row | None
    ) -> None:
        waiting = self._open.get(connection)
        if waiting is None:
            return
        for at, asking in enumerate(waiting.requests):
            if asking.packet == packet and asking.correlation_id == number:
                for _ in range(at):
                    self._complete(waiting.first(), None)
                self._complete(waiting.first(), row)
                return

    def _complete(self, asking: Asking, answer: Row | None) -> None:
        request = asking.row
        if request is None or request.api_key != ApiKey.FETCH:
            return
        told = asking.told
        connection = told.connection or 0
        exchange = Exchange(connection, told.client or "", told.broker or "", request, answer)
        wanted = self._sessions.expand(exchange)
        if wanted is not None:
            self._memories.setdefault(connection, Memory()).note(exchange, wanted)

    def end(self, connection: int) -> None:
        """Take that nothing more comes of a connection."""
        self._open.pop(connection, None)
        self._memories.pop(connection, None)

    def before(self) -> tuple[list[LocatedItem], list[Exchange]]:
        """Say what the next chunk must know."""
        asking = [one.told for each in self._open.values() for one in each.requests]
        kept = [one for each in self._memories.values() for one in each.sessions.values()]
        return asking, kept

    def _opened(self, told: LocatedItem) -> Row:
        row = located(told).row
        self._facts.at = self.base + told.known_at
        self._context.learn(row)
        return row


def cut(context: Gathering, traffic: Traffic, size: int) -> Iterator[bytes]:
    """Cut what a bucket tells into chunks of about `size` bytes, pickled; names are noted."""
    cutting = Cutting(context, traffic.facts)
    told: list[LocatedItem] = []
    ended: dict[int, Ended] = {}
    before = cutting.before()
    held = 0
    for batch in traffic.batches():
        if batch and isinstance(batch[0], LocatedItem):
            cutting.base = traffic.facts.at - batch[0].known_at
        for item in batch:
            if isinstance(item, Ended):
                ended[len(told) + len(ended)] = item
                cutting.end(item.connection)
                continue
            told.append(item)
            cutting.take(item)
            held += len(item.item.frame) if isinstance(item.item, RawFrame) else len(item.item.raw)
            if held >= size:
                yield pickle.dumps(tuple(Chunk(pack(told), ended, *before)))
                told, ended, held = [], {}, 0
                before = cutting.before()
    yield pickle.dumps(tuple(Chunk(pack(told), ended, *before)))


def columns(
    data: bytes, names: Sequence[str], sets: Sequence[int], table: str, rows: int
) -> Iterator[pa.RecordBatch]:
    """Make the rows of a chunk column by column; names, sets: of all files; rows: of a batch."""
    chunk = Chunk(*pickle.loads(data))
    made = Columnar(Portion(names, sets, Facts()), frozenset({table}), rows)
    if table == EXCHANGES:
        for one in chunk.sessions:
            again = [each for each in (one.request, one.response) if each is not None]
            made.handle([LocatedItem(one.connection, one.client, one.broker, row) for row in again])
        for _ in made.batches(last=True):
            pass  # those that remind are in other chunks
        made.handle([*chunk.requests])
    told = items(chunk)
    for at in range(0, len(told), rows):
        made.handle(told[at : at + rows])
        yield from (batch for _, batch in made.batches())
    yield from (batch for _, batch in made.batches(last=True))


def portion(
    data: bytes, names: Sequence[str], sets: Sequence[int], *, bare: bool = False
) -> Portion:
    """Take a chunk as what tables read; names, sets: of all files."""
    chunk = Chunk(*pickle.loads(data))
    made = Portion(names, sets, Facts())
    made.items = [one if isinstance(one, Ended) else located(one) for one in items(chunk)]
    made.reminders = chunk.sessions
    pairs = Exchanges()
    await_again(pairs, map(located, chunk.requests))
    for item in made.items:
        done = pairs.end(item.connection) if isinstance(item, Ended) else pairs.take(item)
        made.told.extend(done)
    if bare:
        made.items = list(without_bodies(made.items))
    return made


def items(chunk: Chunk) -> list[LocatedItem | Ended]:
    """Give the items of a chunk, in order."""
    told, ended = unpack(chunk.parcel), chunk.ended
    rest = iter(told)
    places = range(len(told) + len(ended))
    return [ended[at] if at in ended else next(rest) for at in places]

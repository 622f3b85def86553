"""A connection with too many bytes for one task, cut into chunks that any task makes rows of.

Law: the rows of the chunks are those of the connection. What a chunk must know of those before it
is handed to it: requests that wait for their response, and fetch sessions.

    packets --one task: reassembly, framing, pairing--> Told | Ended   (bodies stay sealed)
       chunk 0 | chunk 1 | chunk 2 ...                  --any task: bodies, rows of the table
                 `-- waiting requests, sessions, as the end of chunk 0 left them
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from ..capture.engine import Located, located
from ..capture.exchanges import Ended, Exchange, Exchanges
from ..capture.fetch_sessions import FetchSessions
from ..capture.parcels import Parcel, Told, pack, unpack
from ..capture.reading import Asked, Sealed
from ..capture.rows import Row, Status
from ..capture.tables.heard import Hearing
from ..capture.tables.passes import EXCHANGES, Columnar
from ..messages.api_key import ApiKey
from .decoding import Gathering, Traffic, without_bodies
from .facts import Facts
from .portions import Memory, Portion, await_again, waiting

CHUNKED: Final = frozenset({"exchanges", "messages", "records", "partitions", "problems"})
"""Tables whose rows are made of single messages or exchanges."""

Key = tuple[int | None, int, int | None]


class Chunk(NamedTuple):
    """Items of connections: what is told, and by place among all items which connections ended
    there. requests: those that wait for their response from before; sessions: exchanges that bring
    back fetch sessions.
    """

    parcel: Parcel
    ended: dict[int, Ended]
    requests: list[Told]
    sessions: list[Exchange]


class Cutting:
    """What is known of connections that are being cut: requests that wait, sessions, names.

    Only what may name topics, or speaks of a session, is opened.
    """

    def __init__(self, context: Gathering) -> None:
        self._context = context
        self._hearing = Hearing(context.names, context.limits, False)
        self._pairs = Exchanges()
        self._sessions = FetchSessions(context.names)
        self._memories: dict[int, Memory] = {}
        self._asking: dict[Key, Told] = {}

    def take(self, told: Told) -> None:
        """Take what is told next."""
        item = told.item
        if isinstance(item, Sealed) and (asked := item.asked) is not None and item.body >= 0:
            if self._matters(asked, is_request=item.is_request):
                found = self._opened(told)
            else:
                found = Located(told.connection, told.client, told.broker, outside(item, asked))
        else:
            found = self._opened(told)
        if found.row.direction == "request":
            self._asking[_key(told.connection, found.row)] = told
        for exchange in self._pairs.take(found):
            if exchange.request is not None:
                self._asking.pop(_key(exchange.connection, exchange.request), None)
            asked_for = self._sessions.expand(exchange)
            if asked_for is not None:
                self._memories.setdefault(exchange.connection, Memory()).note(exchange, asked_for)

    def end(self, connection: int) -> None:
        """Take that nothing more comes of a connection."""
        for exchange in self._pairs.end(connection):
            if exchange.request is not None:
                self._asking.pop(_key(connection, exchange.request), None)
        self._memories.pop(connection, None)

    def before(self) -> tuple[list[Told], list[Exchange]]:
        """Say what the next chunk must know."""
        asking = [self._asking[_key(one.connection, one.row)] for one in waiting(self._pairs)]
        kept = [one for each in self._memories.values() for one in each.sessions.values()]
        return asking, kept

    def _matters(self, asked: Asked, *, is_request: bool) -> bool:
        return asked.api_key == ApiKey.FETCH or self._hearing.head(asked, is_request).names

    def _opened(self, told: Told) -> Located:
        found = located(told)
        self._context.learn(found.row)
        return found


def outside(item: Sealed, asked: Asked) -> Row:
    """Say what pairing needs to know of a message."""
    return Row(
        item.packet,
        item.time_ns,
        "request" if item.is_request else "response",
        len(item.frame),
        Status.OK,
        api_key=asked.api_key,
        api_version=asked.api_version,
        correlation_id=asked.correlation_id,
        request_packet=None if item.is_request else asked.packet,
    )


def _key(connection: int | None, row: Row) -> Key:
    return connection, row.packet, row.correlation_id


def cut(context: Gathering, traffic: Traffic, size: int) -> Iterator[bytes]:
    """Cut what a bucket tells into chunks of about `size` bytes, pickled; names are noted."""
    cutting = Cutting(context)
    told: list[Told] = []
    ended: dict[int, Ended] = {}
    before = cutting.before()
    held = 0
    for item in traffic.sealed():
        if isinstance(item, Ended):
            ended[len(told) + len(ended)] = item
            cutting.end(item.connection)
            continue
        told.append(item)
        cutting.take(item)
        held += len(item.item.frame) if isinstance(item.item, Sealed) else len(item.item.raw)
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
            made.take([Told(one.connection, one.client, one.broker, row) for row in again])
        for _ in made.batches(last=True):
            pass  # those that remind are in other chunks
        made.take([*chunk.requests])
    told = items(chunk)
    for at in range(0, len(told), rows):
        made.take(told[at : at + rows])
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


def items(chunk: Chunk) -> list[Told | Ended]:
    """Give the items of a chunk, in order."""
    told, ended = unpack(chunk.parcel), chunk.ended
    rest = iter(told)
    places = range(len(told) + len(ended))
    return [ended[at] if at in ended else next(rest) for at in places]

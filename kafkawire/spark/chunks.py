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

from ..capture.engine import Located, located
from ..capture.exchanges import Ended, Exchange, Exchanges
from ..capture.fetch_sessions import FetchSessions
from ..capture.parcels import Parcel, Told, pack, unpack
from ..capture.reading import Sealed
from .decoding import Gathering, Traffic, without_bodies
from .facts import Facts
from .portions import Memory, Portion, await_again, waiting

CHUNKED: Final = frozenset({"exchanges", "messages", "records", "partitions", "problems"})
"""Tables whose rows are made of single messages or exchanges."""


class Chunk(NamedTuple):
    """Items of connections: what is told, and by place among all items which connections ended
    there. requests: those that wait for their response from before; sessions: exchanges that bring
    back fetch sessions.
    """

    parcel: Parcel
    ended: dict[int, Ended]
    requests: list[Located]
    sessions: list[Exchange]


def cut(context: Gathering, traffic: Traffic, size: int) -> Iterator[bytes]:
    """Cut what a bucket tells into chunks of about `size` bytes, pickled; names are noted."""
    pairs = Exchanges()
    sessions = FetchSessions(context.names)
    memories: dict[int, Memory] = {}
    told: list[Told] = []
    ended: dict[int, Ended] = {}
    before: tuple[list[Located], list[Exchange]] = [], []
    held = 0
    for item in traffic.sealed():
        if isinstance(item, Ended):
            ended[len(told) + len(ended)] = item
            for _ in pairs.end(item.connection):
                pass
            memories.pop(item.connection, None)
            continue
        told.append(item)
        found = located(item)
        context.learn(found.row)
        for exchange in pairs.take(found):
            asked = sessions.expand(exchange)
            if asked is not None:
                memories.setdefault(exchange.connection, Memory()).note(exchange, asked)
        held += len(item.item.frame) if isinstance(item.item, Sealed) else len(item.item.raw)
        if held >= size:
            yield pickle.dumps(tuple(Chunk(pack(told), ended, *before)))
            told, ended, held = [], {}, 0
            open_sessions = [one for each in memories.values() for one in each.sessions.values()]
            before = waiting(pairs), open_sessions
    yield pickle.dumps(tuple(Chunk(pack(told), ended, *before)))


def portion(
    data: bytes, names: Sequence[str], sets: Sequence[int], *, bare: bool = False
) -> Portion:
    """Take a chunk as what tables read; names, sets: of all files."""
    chunk = Chunk(*pickle.loads(data))
    made = Portion(names, sets, Facts())
    made.items = _items(chunk)
    made.reminders = chunk.sessions
    pairs = Exchanges()
    await_again(pairs, chunk.requests)
    for item in made.items:
        done = pairs.end(item.connection) if isinstance(item, Ended) else pairs.take(item)
        made.told.extend(done)
    if bare:
        made.items = list(without_bodies(made.items))
    return made


def _items(chunk: Chunk) -> list[Located | Ended]:
    told, ended = unpack(chunk.parcel), chunk.ended
    rest = iter(told)
    places = range(len(told) + len(ended))
    return [ended[at] if at in ended else located(next(rest)) for at in places]

"""Pairs request rows and response rows into exchanges.

Law: each request row and each response row is in exactly one exchange; an exchange is returned as
soon as it is complete, and the number of waiting requests is bounded.

    request A ----.
    request B --. |        a response to B: A is returned without one (brokers respond in order),
    response B -' |        then B with its response; the connection ends: the waiting ones are
                  |        returned
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from ..rows import MESSAGES, Located, Row, Status

MAX_OPEN: Final = 1 << 12
"""Requests of a connection that wait for their response, at most."""

MAX_OPEN_BYTES: Final = 1 << 23
"""Bytes of such requests; the oldest are returned without a response."""

PAIRED: Final = MESSAGES - {Status.SASL_TOKEN}
"""Messages in exchanges: all that have a correlation id."""

# a name: on Python 3.11, to read a member of an Enum class takes as long as a call
TRUNCATED: Final = Status.TRUNCATED


class Ended(NamedTuple):
    """A closed connection.

    first_packet, last_packet: of all its packets, also those without payload. first_ns, last_ns:
    nanoseconds since the epoch. client, broker: as in `Located`. reset: whether a RST was seen.
    captured_bytes: captured payload of both sides up to the close; later bytes are in rows of
    status `discarded`. repeated_bytes: those in retransmissions with the same content and in
    keep-alive probes, which are in no row.
    """

    connection: int
    client: str
    broker: str
    first_packet: int
    last_packet: int
    first_ns: int
    last_ns: int
    reset: bool
    captured_bytes: int = 0
    repeated_bytes: int = 0


class Exchange(NamedTuple):
    """A request with its response; one of them is None if it was not captured.

    A Produce with acks=0 is complete without a response.
    """

    connection: int
    client: str
    broker: str
    request: Row | None
    response: Row | None

    @property
    def main_row(self) -> Row:
        """The row with the API and version: the request if it was captured, else the response."""
        row = self.request or self.response
        assert row is not None
        return row


class Exchanges:
    """Pairs the rows of any number of connections."""

    def __init__(self) -> None:
        self._open: dict[int, _Open] = {}

    def take(self, found: Located) -> list[Exchange]:
        """Handle the next row; return the exchanges that it completes."""
        row = found.row
        if found.connection is None or found.client is None or found.broker is None:
            return []
        if not is_paired(row):
            return []
        waiting = self._open.get(found.connection)
        if waiting is None:
            waiting = self._open[found.connection] = _Open(
                found.connection, found.client, found.broker
            )
        return waiting.request(row) if row.direction == "request" else waiting.response(row)

    def end(self, connection: int) -> list[Exchange]:
        """Return the requests of a closed connection that have no response."""
        waiting = self._open.pop(connection, None)
        return [] if waiting is None else waiting.finish()

    def finish(self) -> list[Exchange]:
        """Return the waiting requests of all connections."""
        return [exchange for connection in list(self._open) for exchange in self.end(connection)]


_make: Final[Any] = tuple.__new__
"""Creates a named tuple from all its values in order, three times as fast as its class."""


class _Open:
    """The requests of one connection that wait for their response."""

    def __init__(self, connection: int, client: str, broker: str) -> None:
        self.connection = connection
        self.client = client
        self.broker = broker
        self.rows: deque[Row] = deque()
        self.bytes = 0

    def request(self, row: Row) -> list[Exchange]:
        self.rows.append(row)
        self.bytes += row.length
        given_up: list[Exchange] = []
        while len(self.rows) > MAX_OPEN or (self.bytes > MAX_OPEN_BYTES and len(self.rows) > 1):
            given_up.append(self._complete(None))
        return given_up

    def response(self, row: Row) -> list[Exchange]:
        at = self._index_of(row)
        if at is None:
            return [self._exchange(None, row)]
        found = [self._complete(None) for _ in range(at)]
        found.append(self._complete(row))
        return found

    def finish(self) -> list[Exchange]:
        return [self._complete(None) for _ in range(len(self.rows))]

    def _index_of(self, row: Row) -> int | None:
        for at, request in enumerate(self.rows):
            if (
                request.packet == row.request_packet
                and request.correlation_id == row.correlation_id
            ):
                return at
        return None

    def _complete(self, response: Row | None) -> Exchange:
        row = self.rows.popleft()
        self.bytes -= row.length
        return self._exchange(row, response)

    def _exchange(self, request: Row | None, response: Row | None) -> Exchange:
        made: Exchange = _make(
            Exchange, (self.connection, self.client, self.broker, request, response)
        )
        return made


def is_paired(row: Row) -> bool:
    """Whether a row is a request or a response, complete or truncated."""
    return row.status in PAIRED or (row.status is TRUNCATED and row.correlation_id is not None)


def exchanges(traffic: Iterable[Located | Ended]) -> Iterator[Exchange]:
    """Pair the rows of a capture, for example of a `Traffic`."""
    pairs = Exchanges()
    for item in traffic:
        if isinstance(item, Ended):
            yield from pairs.end(item.connection)
        else:
            yield from pairs.take(item)
    yield from pairs.finish()

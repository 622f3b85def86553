"""Requests and the responses that answered them, put together from located rows.

Law: each request row and each response row is in exactly one exchange; an exchange goes out as soon
as nothing can be added to it, and what waits is bounded.

    request A ----.
    request B --. |          a response to B: A goes out alone (brokers answer in order),
    response B -' |          then B with its response; the connection ends: what waits goes out
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ..engine import Located
from ..rows import Row, Status

MAX_OPEN: Final = 1 << 12
"""Requests of a connection that may wait for their response."""

MAX_OPEN_BYTES: Final = 1 << 23
"""Bytes of such requests, before the oldest go out alone."""

NO_HEADER: Final = frozenset({Status.SASL_TOKEN})
"""Messages that no header numbers: they belong to no exchange."""


class Ended(NamedTuple):
    """A connection of which nothing more comes.

    first_packet, last_packet: of all its packets, those without payload too. first_ns, last_ns:
    nanoseconds since the epoch. client, broker: as in `Located`; reset: whether a RST was seen.
    captured_bytes: payload captured until then, of both sides; what comes later is in rows of
    status `discarded`. repeated_bytes: those of them that were there before, with the same content,
    and those of keep-alive probes: they are in no row.
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
    """A request with its response; one of them is None where it is not in the capture.

    A Produce with acks=0 is complete without a response.
    """

    connection: int
    client: str
    broker: str
    request: Row | None
    response: Row | None

    @property
    def told(self) -> Row:
        """The row that says which API and version it is: the request's where there is one."""
        row = self.request or self.response
        assert row is not None
        return row


class Exchanges:
    """Pairs the rows of any number of connections."""

    def __init__(self) -> None:
        self._open: dict[int, _Open] = {}

    def take(self, found: Located) -> list[Exchange]:
        """Take the next row; give the exchanges that it completes."""
        row = found.row
        if found.connection is None or found.client is None or found.broker is None:
            return []
        if not _has_a_place(row):
            return []
        waiting = self._open.get(found.connection)
        if waiting is None:
            waiting = self._open[found.connection] = _Open(
                found.connection, found.client, found.broker
            )
        return waiting.request(row) if row.direction == "request" else waiting.response(row)

    def end(self, connection: int) -> list[Exchange]:
        """Give what a connection that ended leaves without a response."""
        waiting = self._open.pop(connection, None)
        return [] if waiting is None else waiting.finish()

    def finish(self) -> list[Exchange]:
        """Give what is left of all connections."""
        return [exchange for connection in list(self._open) for exchange in self.end(connection)]


class _Open:
    """The requests of one connection that may still be answered."""

    def __init__(self, connection: int, client: str, broker: str) -> None:
        self.where = connection, client, broker
        self.rows: deque[Row] = deque()
        self.bytes = 0

    def request(self, row: Row) -> list[Exchange]:
        self.rows.append(row)
        self.bytes += row.length
        given_up: list[Exchange] = []
        while len(self.rows) > MAX_OPEN or (self.bytes > MAX_OPEN_BYTES and len(self.rows) > 1):
            given_up.append(self._alone(None))
        return given_up

    def response(self, row: Row) -> list[Exchange]:
        at = self._asked(row)
        if at is None:
            return [Exchange(*self.where, None, row)]
        found = [self._alone(None) for _ in range(at)]
        found.append(self._alone(row))
        return found

    def finish(self) -> list[Exchange]:
        return [self._alone(None) for _ in range(len(self.rows))]

    def _asked(self, row: Row) -> int | None:
        for at, request in enumerate(self.rows):
            if (
                request.packet == row.request_packet
                and request.correlation_id == row.correlation_id
            ):
                return at
        return None

    def _alone(self, response: Row | None) -> Exchange:
        row = self.rows.popleft()
        self.bytes -= row.length
        return Exchange(*self.where, row, response)


def _has_a_place(row: Row) -> bool:
    """Whether a row is a request or response, whole or cut, and not bytes of some other kind."""
    if row.status is Status.TRUNCATED:
        return row.correlation_id is not None
    return row.is_message and row.status not in NO_HEADER


def exchanges(traffic: Iterable[Located | Ended]) -> Iterator[Exchange]:
    """Pair the rows of a capture; see `Traffic` for what to give."""
    pairs = Exchanges()
    for item in traffic:
        if isinstance(item, Ended):
            yield from pairs.end(item.connection)
        else:
            yield from pairs.take(item)
    yield from pairs.finish()

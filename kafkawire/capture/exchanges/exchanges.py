"""Pairs request rows and response rows into exchanges.

Each request row and each response row is in exactly one exchange; an exchange is returned as
soon as it is complete, and the number of in-flight requests is bounded.

    request A ----.
    request B --. |        a response to B: A is returned without one (brokers respond in order),
    response B -' |        then B with its response; the connection ends: the in-flight ones are
                  |        returned. A row of status out_of_order in front of the response keeps A
                  |        in flight, see `pairing`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from ..rows import MESSAGES, Located, Row, Status
from .pairing import InFlightRequests, Total, exchange_key

PAIRED: Final = MESSAGES - {Status.SASL_TOKEN}
"""Messages in exchanges: all that have a correlation id."""

# names: on Python 3.11, to read a member of an Enum class takes as long as a call
TRUNCATED: Final = Status.TRUNCATED
OUT_OF_ORDER: Final = Status.OUT_OF_ORDER


class TcpSide(NamedTuple):
    """What is measured of one side of a connection.

    opened, finished: whether its SYN and its FIN were captured. rtt_ns: the round-trip time between
    the capture and this side, from the handshake; mss: its maximum segment size; None if unknown.
    zero_windows: how often its receive window closed; closed_ns: for how long in all.
    """

    opened: bool = False
    finished: bool = False
    rtt_ns: int | None = None
    mss: int | None = None
    zero_windows: int = 0
    closed_ns: int = 0


UNMEASURED: Final = TcpSide()


class Ended(NamedTuple):
    """A closed connection.

    first_packet, last_packet: of all its packets, also those without payload. first_ns, last_ns:
    nanoseconds since the epoch. client, broker: as in `Located`. reset: whether a RST was seen.
    captured_bytes: captured payload of both sides up to the close; later bytes are in rows of
    status `discarded`. repeated_bytes: those in retransmissions with the same content and in
    keep-alive probes, which are in no row. client_tcp, broker_tcp: what is measured of each side.
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
    client_tcp: TcpSide = UNMEASURED
    broker_tcp: TcpSide = UNMEASURED


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
        self._total: Total[Row] = Total()
        self._open: dict[int, _Open] = {}

    def take(self, found: Located) -> list[Exchange]:
        """Handle the next row; return the exchanges that it completes."""
        row = found.row
        if found.connection is None or found.client is None or found.broker is None:
            return []
        if not is_paired(row):
            if row.status is OUT_OF_ORDER:
                self._overtake(found.connection, row)
            return []
        waiting = self._open.get(found.connection)
        if waiting is None:
            waiting = self._open[found.connection] = _Open(
                found.connection, found.client, found.broker, self._total
            )
        if row.direction != "request":
            return waiting.response(row)
        given_up = waiting.request(row)
        for each in self._total.take_evicted() if self._total.evicted else ():
            given_up += self._open[each.connection].given_up()
        return given_up

    def _overtake(self, connection: int, row: Row) -> None:
        """Handle the row in front of a response that came before those to older requests."""
        waiting = self._open.get(connection)
        if waiting is not None and row.request_packet is not None:
            waiting.in_flight.overtake(exchange_key(row.request_packet, row.correlation_id))

    def in_flight(self) -> list[tuple[Located, int]]:
        """Return the requests without a response, with their ages, for `restore`."""
        return [
            (Located(each.connection, each.client, each.broker, request), age)
            for each in self._open.values()
            for request, age in each.in_flight.requests()
        ]

    def restore(self, requests: Iterable[tuple[Located, int]]) -> None:
        """Restore requests without a response, of connections that have none so far."""
        for (connection, client, broker, row), age in requests:
            if connection is None or client is None or broker is None:
                continue
            waiting = self._open.get(connection)
            if waiting is None:
                waiting = self._open[connection] = _Open(connection, client, broker, self._total)
            key = exchange_key(row.packet, row.correlation_id)
            waiting.in_flight.restore(key, row.length, row, age)

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

    def __init__(self, connection: int, client: str, broker: str, total: Total[Row]) -> None:
        self.connection = connection
        self.client = client
        self.broker = broker
        self.in_flight: InFlightRequests[Row] = InFlightRequests(total, connection)

    def request(self, row: Row) -> list[Exchange]:
        self.in_flight.add(exchange_key(row.packet, row.correlation_id), row.length, row)
        return self.given_up() if self.in_flight.given_up else []

    def response(self, row: Row) -> list[Exchange]:
        packet = row.request_packet
        if packet is None:
            return [self._exchange(None, row)]
        in_flight = self.in_flight
        request = in_flight.complete(exchange_key(packet, row.correlation_id))
        if not in_flight.given_up:
            return [self._exchange(request, row)]
        completed = self.given_up()
        completed.append(self._exchange(request, row))
        return completed

    def finish(self) -> list[Exchange]:
        return [self._exchange(row, None) for row in self.in_flight.finish()]

    def given_up(self) -> list[Exchange]:
        return [self._exchange(row, None) for row in self.in_flight.take_given_up()]

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

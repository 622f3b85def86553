"""Pairs request rows and response rows into exchanges.

Each request row and each response row is in exactly one exchange; an exchange is returned as
soon as it is complete (`message_pairs`). A row of status out_of_order in front of a response keeps
the older requests in flight, see `pairing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from ..rows import MESSAGES, Located, Row, Status
from .message_pairs import MessagePairs, Pair, exchange_key

PAIRED: Final = MESSAGES - {Status.SASL_TOKEN}
"""Messages in exchanges: all that have a correlation id."""

# names: on Python 3.11, to read a member of an Enum class takes as long as a call
TRUNCATED: Final = Status.TRUNCATED
OUT_OF_ORDER: Final = Status.OUT_OF_ORDER


class TcpSide(NamedTuple):
    """What is measured of one side of a connection.

    opened, finished: whether its SYN and its FIN were captured. rtt_ns: the round-trip time between
    the capture and this side, from the handshake; mss: its maximum segment size; None if unknown.
    zero_windows: how often its receive window closed; closed_ns: for how long in all. finished_ns:
    when it sent its first FIN, in nanoseconds since the epoch; None if it sent none.
    """

    opened: bool = False
    finished: bool = False
    rtt_ns: int | None = None
    mss: int | None = None
    zero_windows: int = 0
    closed_ns: int = 0
    finished_ns: int | None = None


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
        self._pairs: MessagePairs[Row] = MessagePairs()

    def take(self, item: Located) -> list[Exchange]:
        """Handle the next row; return the exchanges that it completes."""
        row, connection = item.row, item.connection
        client, broker = item.client, item.broker
        if connection is None or client is None or broker is None:
            return []
        pairs, packet = self._pairs, row.request_packet
        if not is_paired(row):
            if row.status is OUT_OF_ORDER and packet is not None:
                pairs.overtake(connection, exchange_key(packet, row.correlation_id))
            return []
        if row.direction == "request":
            key = exchange_key(row.packet, row.correlation_id)
            pairs.request(connection, client, broker, key, row.length, row)
        else:
            of_request = None if packet is None else exchange_key(packet, row.correlation_id)
            pairs.response(connection, client, broker, of_request, row)
        return self._complete() if pairs.complete else []

    def end(self, connection: int) -> list[Exchange]:
        """Return the requests of a closed connection that have no response."""
        self._pairs.end(connection)
        return self._complete()

    def finish(self) -> list[Exchange]:
        """Return the waiting requests of all connections."""
        self._pairs.finish()
        return self._complete()

    def _complete(self) -> list[Exchange]:
        return [_exchange(pair) for pair in self._pairs.take()]


_make: Final[Any] = tuple.__new__
"""Creates a named tuple from all its values in order, three times as fast as its class."""


def _exchange(pair: Pair[Row]) -> Exchange:
    ends = pair.ends
    values = ends.connection, ends.client, ends.broker, pair.request, pair.response
    exchange: Exchange = _make(Exchange, values)
    return exchange


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

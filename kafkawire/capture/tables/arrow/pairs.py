"""Pairs extracted requests with responses, for the tables with a row or more per exchange.

Requests and responses are paired as in `capture.exchanges`.

    ExtractedMessage --by connection--> ExtractedExchange --.--> ExchangeColumns
                              partitions of fetch sessions --'--> PartitionColumns
"""

from __future__ import annotations

from typing import final

from mypy_extensions import i64

from ...exchanges.fetch_sessions import Sessions, State
from ...exchanges.pairing import InFlightRequests, Total, exchange_key
from ..extraction.blocks import Block
from ..extraction.body_facts import NO_PARTITIONS, Session
from ..extraction.messages import ExtractedMessage
from .exchange_columns import ExchangeColumns
from .exchange_heads import ExtractedExchange
from .partition_columns import PartitionColumns


@final
class PendingRequests:
    """The requests of one connection without a response so far."""

    def __init__(
        self, connection: int, client: str, broker: str, total: Total[ExtractedMessage]
    ) -> None:
        self.connection: i64 = connection
        self.client: str = client
        self.broker: str = broker
        self.requests: InFlightRequests[ExtractedMessage] = InFlightRequests(total, connection)


@final
class Pairs:
    """Pairs the messages of any number of connections, and adds exchanges to tables.

    sessions: the fetch sessions of the exchanges so far.
    """

    def __init__(
        self, exchanges: ExchangeColumns | None, partitions: PartitionColumns | None
    ) -> None:
        self.exchanges: ExchangeColumns | None = exchanges
        self.partitions: PartitionColumns | None = partitions
        self.sessions: Sessions[Block] = Sessions(NO_PARTITIONS, Block.merged)
        self.total: Total[ExtractedMessage] = Total()
        self.open: dict[int, PendingRequests] = {}

    def handle(self, connection: int, client: str, broker: str, message: ExtractedMessage) -> None:
        """Handle the next message of a connection."""
        pending = self.pending(connection, client, broker)
        requests = pending.requests
        if message.is_request:
            requests.add(
                exchange_key(message.packet, message.correlation_id), message.length, message
            )
            if requests.given_up:
                self.add_without_response(pending, requests.take_given_up())
            if self.total.evicted:
                for each in self.total.take_evicted():
                    self.add_without_response(self.open[each.connection], each.take_given_up())
            return
        request: ExtractedMessage | None = None
        packet = message.request_packet
        if packet is not None:
            request = requests.complete(exchange_key(packet, message.correlation_id))
            if requests.given_up:
                self.add_without_response(pending, requests.take_given_up())
        self.add(pending, request, message)

    def pending(self, connection: int, client: str, broker: str) -> PendingRequests:
        """Return the in-flight requests of a connection."""
        pending = self.open.get(connection)
        if pending is None:
            pending = self.open[connection] = PendingRequests(
                connection, client, broker, self.total
            )
        return pending

    def overtake(self, connection: int, packet: int, correlation_id: int | None) -> None:
        """Handle the row in front of a response that came before those to older requests.

        packet: of the request of that response.
        """
        pending = self.open.get(connection)
        if pending is not None:
            pending.requests.overtake(exchange_key(packet, correlation_id))

    def restore(
        self, connection: int, client: str, broker: str, request: ExtractedMessage, age: int
    ) -> None:
        """Restore a request without a response, with its age (`InFlightRequests.requests`)."""
        key = exchange_key(request.packet, request.correlation_id)
        requests = self.pending(connection, client, broker).requests
        requests.restore(key, request.length, request, age)

    def add_without_response(
        self, pending: PendingRequests, requests: list[ExtractedMessage]
    ) -> None:
        """Add requests as exchanges without a response."""
        for request in requests:
            self.add(pending, request, None)

    def add(
        self,
        pending: PendingRequests,
        request: ExtractedMessage | None,
        response: ExtractedMessage | None,
    ) -> None:
        """Add a request and its response to the tables."""
        self.add_exchange(
            ExtractedExchange(pending.connection, pending.client, pending.broker, request, response)
        )

    def add_exchange(self, exchange: ExtractedExchange) -> None:
        """Add a paired exchange to the tables."""
        request, response = exchange.request, exchange.response
        session = None if request is None else request.facts.session
        requested: Block | None = None
        complete = False
        if session is not None:
            received = None if response is None else response.facts.session
            requested, complete = self.apply(exchange.connection, session, received)
        if self.exchanges is not None:
            self.exchanges.add(exchange, requested, complete)
        if self.partitions is not None:
            self.partitions.add(exchange, requested)

    def apply(self, connection: int, sent: Session, received: Session | None) -> State[Block]:
        """Apply a Fetch to its session; return its partitions, and whether all are known."""
        return self.sessions.apply(
            connection,
            sent.id,
            sent.epoch,
            sent.listed,
            sent.forgotten,
            None if received is None else (received.error_code, received.id),
        )

    def forget_sessions(self) -> None:
        """Forget all fetch sessions."""
        self.sessions = Sessions(NO_PARTITIONS, Block.merged)

    def end(self, connection: int) -> None:
        """Handle the end of a connection."""
        pending = self.open.pop(connection, None)
        if pending is not None:
            self.add_without_response(pending, pending.requests.finish())

    def finish(self) -> None:
        """Handle the end of the capture."""
        for connection in list(self.open):
            self.end(connection)

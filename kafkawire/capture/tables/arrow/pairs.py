"""Pairs extracted requests with responses, for the tables with a row or more per exchange.

Law: requests and responses are paired as in `capture.exchanges`.

    ExtractedMessage --by connection--> ExtractedExchange --> ExchangeColumns, PartitionColumns
"""

from __future__ import annotations

from typing import final

from mypy_extensions import i64

from ...exchanges.exchanges import MAX_OPEN, MAX_OPEN_BYTES
from ..extraction.messages import ExtractedMessage
from .exchange_columns import ExchangeColumns
from .exchange_heads import ExtractedExchange
from .partition_columns import PartitionColumns


@final
class PendingRequests:
    """The requests of one connection without a response so far."""

    def __init__(self, connection: int, client: str, broker: str) -> None:
        self.connection: i64 = connection
        self.client: str = client
        self.broker: str = broker
        self.requests: list[ExtractedMessage] = []
        self.bytes: i64 = 0


@final
class Pairs:
    """Pairs the messages of any number of connections, and adds exchanges to tables."""

    def __init__(
        self, exchanges: ExchangeColumns | None, partitions: PartitionColumns | None
    ) -> None:
        self.exchanges: ExchangeColumns | None = exchanges
        self.partitions: PartitionColumns | None = partitions
        self.open: dict[int, PendingRequests] = {}

    def handle(self, connection: int, client: str, broker: str, message: ExtractedMessage) -> None:
        """Handle the next message of a connection."""
        pending = self.open.get(connection)
        if pending is None:
            pending = self.open[connection] = PendingRequests(connection, client, broker)
        requests = pending.requests
        if message.is_request:
            requests.append(message)
            pending.bytes += message.length
            while len(requests) > MAX_OPEN or (
                pending.bytes > MAX_OPEN_BYTES and len(requests) > 1
            ):
                self.add_without_response(pending)
            return
        at: i64 = 0
        while at < len(requests):
            request = requests[at]
            if (
                request.packet == message.request_packet
                and request.correlation_id == message.correlation_id
            ):
                while at > 0:
                    self.add_without_response(pending)
                    at -= 1
                requests.pop(0)
                pending.bytes -= request.length
                self.add(pending, request, message)
                return
            at += 1
        self.add(pending, None, message)

    def add_without_response(self, pending: PendingRequests) -> None:
        """Add the oldest request as an exchange without a response."""
        request = pending.requests.pop(0)
        pending.bytes -= request.length
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
        if self.exchanges is not None:
            self.exchanges.add(exchange)
        if self.partitions is not None:
            self.partitions.add(exchange)

    def end(self, connection: int) -> None:
        """Handle the end of a connection."""
        pending = self.open.pop(connection, None)
        if pending is not None:
            while pending.requests:
                self.add_without_response(pending)

    def finish(self) -> None:
        """Handle the end of the capture."""
        for connection in list(self.open):
            self.end(connection)

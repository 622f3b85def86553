"""Pairs extracted requests with responses, for the tables with a row or more per exchange.

ExtractedMessage --by connection--> ExtractedExchange --.--> ExchangeColumns
partitions of fetch sessions --'--> PartitionColumns
"""

from __future__ import annotations

from typing import final

from ...exchanges.fetch_sessions import Sessions, State
from ...exchanges.message_pairs import MessagePairs, exchange_key
from ..extraction.blocks import Block
from ..extraction.body_facts import NO_PARTITIONS, Session
from ..extraction.messages import ExtractedMessage
from .exchange_columns import ExchangeColumns
from .exchange_heads import ExtractedExchange
from .partition_columns import PartitionColumns


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
        self.pairs: MessagePairs[ExtractedMessage] = MessagePairs()

    def handle(self, connection: int, client: str, broker: str, message: ExtractedMessage) -> None:
        """Handle the next message of a connection."""
        number = message.correlation_id
        if message.is_request:
            key = exchange_key(message.packet, number)
            self.pairs.request(connection, client, broker, key, message.length, message)
        else:
            packet = message.request_packet
            of_request = None if packet is None else exchange_key(packet, number)
            self.pairs.response(connection, client, broker, of_request, message)
        if self.pairs.complete:
            self.add_complete()

    def overtake(self, connection: int, packet: int, correlation_id: int | None) -> None:
        """Handle the row in front of a response that came before those to older requests.

        packet: of the request of that response.
        """
        self.pairs.overtake(connection, exchange_key(packet, correlation_id))

    def add_complete(self) -> None:
        """Add the exchanges that are complete to the tables."""
        for pair in self.pairs.take():
            self.add_exchange(pair)

    def add_exchange(self, exchange: ExtractedExchange) -> None:
        """Add a paired exchange to the tables."""
        request, response = exchange.request, exchange.response
        session = None if request is None else request.facts.session
        requested: Block | None = None
        complete = False
        if session is not None:
            received = None if response is None else response.facts.session
            requested, complete = self.apply(exchange.ends.connection, session, received)
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
        self.pairs.end(connection)
        self.add_complete()

    def finish(self) -> None:
        """Handle the end of the capture."""
        self.pairs.finish()
        self.add_complete()

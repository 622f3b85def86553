"""Builds the `exchanges` table column by column from extracted messages, most of them undecoded.

Rows equal those that a test makes of decoded messages of every capture.

    ExtractedExchange --> columns --> record batches
"""

from __future__ import annotations

from typing import Final, final

from ...multifile import PacketPositions
from ..columns import BODY_NUMBERS
from ..extraction.blocks import Block, Bodies
from ..extraction.messages import ExtractedMessage
from .buffers import Numbers
from .exchange_heads import ExchangeHeads, ExtractedExchange, FileNames

SESSION_PARTITIONS: Final = 1 << 18
"""Partitions of fetch sessions that wait: an exchange lists all of its session, which no message
does, so that a small capture has any number of them.
"""


@final
class ExchangeValues:
    """Values of the columns, one per row. in_sessions: partitions of the fetch sessions in them."""

    def __init__(self) -> None:
        self.rows: int = 0
        self.in_sessions: int = 0
        self.heads: ExchangeHeads = ExchangeHeads()
        self.request_bytes: Numbers = Numbers()
        self.request_status: list[str | None] = []
        self.response_time_ns: Numbers = Numbers()
        self.response_bytes: Numbers = Numbers()
        self.response_status: list[str | None] = []
        self.latency_ns: Numbers = Numbers()
        self.bodies: Bodies = Bodies(len(BODY_NUMBERS))


@final
class ExchangeColumns:
    """Collects the exchanges of a capture as column values. filled: rows not returned yet."""

    def __init__(self, traffic: PacketPositions) -> None:
        self.files: FileNames = FileNames(traffic)
        self.filled: ExchangeValues = ExchangeValues()

    def take_values(self) -> ExchangeValues:
        """Return the rows, and start new ones."""
        filled = self.filled
        self.filled = ExchangeValues()
        return filled

    # -- rows

    def add(self, exchange: ExtractedExchange, requested: Block | None, complete: bool) -> None:
        """Add an exchange.

        requested: all partitions of a Fetch and its session. complete: whether all are known.
        """
        filled = self.filled
        request, response = exchange.request, exchange.response
        filled.rows += 1
        filled.heads.add(exchange, self.files)
        self.add_request(filled, request)
        self.add_response(filled, response)
        sent = None if request is None else request.facts.entities
        received = None if response is None else response.facts.entities
        filled.bodies.add(sent, received, requested, complete)
        if requested is not None:
            filled.in_sessions += len(requested)

    def is_full(self, rows: int) -> bool:
        """Whether there is enough for a batch of that many rows."""
        return self.filled.rows >= rows or self.filled.in_sessions >= SESSION_PARTITIONS

    def add_request(self, filled: ExchangeValues, request: ExtractedMessage | None) -> None:
        if request is None:
            filled.request_bytes.none32()
            filled.request_status.append(None)
            return
        filled.request_bytes.put32(request.length)
        filled.request_status.append(request.status)

    def add_response(self, filled: ExchangeValues, response: ExtractedMessage | None) -> None:
        if response is None:
            filled.response_time_ns.none64()
            filled.response_bytes.none32()
            filled.response_status.append(None)
            filled.latency_ns.none64()
            return
        filled.response_bytes.put32(response.length)
        filled.response_status.append(response.status)
        if response.time_ns == self.files.never:
            filled.response_time_ns.none64()
            filled.latency_ns.none64()
            return
        filled.response_time_ns.put64(response.time_ns)
        if response.request_ns == self.files.never:
            filled.latency_ns.none64()
        else:
            filled.latency_ns.put64(response.time_ns - response.request_ns)

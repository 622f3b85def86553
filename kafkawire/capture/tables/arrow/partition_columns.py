"""Builds the `partitions` table column by column from extracted messages, most of them undecoded.

Rows equal those that a test makes of decoded messages of every capture.

    ExtractedExchange --blocks, fetch session--> Rows;  ExchangeHeads, repeated for their rows
"""

from __future__ import annotations

from typing import final

from librt.strings import BytesWriter, write_i64_le

from ...multifile import PacketPositions
from ..extraction.blocks import Block, Rows
from ..extraction.decoded_partitions import session_mask
from .exchange_heads import ExchangeHeads, ExtractedExchange, FileNames


@final
class PartitionValues:
    """Rows, and the exchanges that they are of. counts: the rows of each, int64."""

    def __init__(self) -> None:
        self.rows: Rows = Rows()
        self.heads: ExchangeHeads = ExchangeHeads()
        self.counts: BytesWriter = BytesWriter()


@final
class PartitionColumns:
    """Collects the partitions of exchanges as column values. filled: rows not returned yet."""

    def __init__(self, traffic: PacketPositions) -> None:
        self.files: FileNames = FileNames(traffic)
        self.masks: dict[int, int] = {}
        self.filled: PartitionValues = PartitionValues()

    def take_values(self) -> PartitionValues:
        """Return the rows, and start new ones."""
        filled = self.filled
        self.filled = PartitionValues()
        return filled

    def add(self, exchange: ExtractedExchange, requested: Block | None) -> None:
        """Add the rows of an exchange. requested: all partitions of a Fetch and its session."""
        request, response = exchange.request, exchange.response
        sent = None if request is None else request.facts.block
        received = None if response is None else response.facts.block
        if sent is None and received is None and requested is None:
            return
        mask = 0
        if requested is not None and request is not None:
            version = request.api_version
            cached = self.masks.get(version)
            if cached is None:
                cached = self.masks[version] = session_mask(version)
            mask = cached
        filled = self.filled
        rows = filled.rows.add(sent, received, requested, mask)
        if rows:
            filled.heads.add(exchange, self.files)
            write_i64_le(filled.counts, rows)

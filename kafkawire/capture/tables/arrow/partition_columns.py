"""Builds the `partitions` table column by column from extracted messages, most of them undecoded.

Law: rows equal those that `partitions.rows` builds of decoded messages (a test compares them for
every capture).

    ExtractedExchange --blocks, fetch session--> Rows;  ExchangeHeads, repeated for their rows
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter, write_i64_le

from ...exchanges.fetch_sessions import Sessions
from ...multifile import PacketPositions
from ..extraction.body_facts import BodyFacts
from ..extraction.decoded_partitions import session_mask
from ..extraction.partition_blocks import Block, Rows
from .exchange_heads import ExchangeHeads, ExtractedExchange, FileNames

EMPTY: Final = Block()


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
        self.sessions: Sessions[Block] = Sessions(EMPTY, Block.merged)
        self.masks: dict[int, int] = {}
        self.filled: PartitionValues = PartitionValues()

    def take_values(self) -> PartitionValues:
        """Return the rows, and start new ones."""
        filled = self.filled
        self.filled = PartitionValues()
        return filled

    def add(self, exchange: ExtractedExchange) -> None:
        """Add the rows of an exchange."""
        request, response = exchange.request, exchange.response
        sent = None if request is None else request.facts.block
        received = None if response is None else response.facts.block
        session: Block | None = None
        mask = 0
        if request is not None and request.facts.session is not None:
            session = self.apply(
                exchange.connection, request.facts, None if response is None else response.facts
            )
            version = request.api_version
            found = self.masks.get(version)
            if found is None:
                found = self.masks[version] = session_mask(version)
            mask = found
        elif sent is None and received is None:
            return
        filled = self.filled
        rows = filled.rows.add(sent, received, session, mask)
        if rows:
            filled.heads.add(exchange, self.files)
            write_i64_le(filled.counts, rows)

    def apply(self, connection: int, sent: BodyFacts, received: BodyFacts | None) -> Block:
        """Return all partitions that a Fetch and its session request. sent, received: its facts."""
        session = sent.session
        assert session is not None
        opened = None if received is None else received.session
        requested, _ = self.sessions.apply(
            connection,
            session.id,
            session.epoch,
            EMPTY if sent.block is None else EMPTY.merged(sent.block, set()),
            session.forgotten,
            None if opened is None else (opened.error_code, opened.id),
        )
        return requested

    def forget_sessions(self) -> None:
        """Forget all fetch sessions."""
        self.sessions = Sessions(EMPTY, Block.merged)

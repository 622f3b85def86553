"""Builds `exchanges`, `partitions` and `records` column by column, in one pass over a capture.

A message is decoded only where its bytes alone do not suffice; a table has the same rows as
when it is read alone.

    LocatedItem --Extractor--> ExtractedMessage --.--Pairs--> ExchangeColumns ---.
                                                  |    `----> PartitionColumns --+
                                                  `---------> RecordColumns -----+--> (table, batch)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from ..exchanges.exchanges import OUT_OF_ORDER, Ended, is_paired
from ..exchanges.fetch_sessions import State
from ..frames.decoding import LocatedItem, RawFrame
from ..rows import Row
from .arrow.exchange_arrays import exchange_batch
from .arrow.exchange_columns import ExchangeColumns
from .arrow.exchange_heads import NUMBER, ExtractedExchange, FileNames
from .arrow.pairs import Pairs
from .arrow.partition_arrays import partition_batch
from .arrow.partition_columns import PartitionColumns
from .arrow.record_columns import RecordColumns
from .arrow.record_fields import Fields
from .context import Context
from .extraction.blocks import Block
from .extraction.body_facts import Session
from .extraction.messages import ExtractedMessage, Extractor
from .records import DIRECTION

EXCHANGES = "exchanges"
PARTITIONS = "partitions"
RECORDS = "records"
COLUMNAR = frozenset({EXCHANGES, PARTITIONS, RECORDS})
"""The tables that are made column by column."""


TakeRecords = Callable[[Fields], None]


class Columnar:
    """Builds some of the COLUMNAR tables of extracted messages.

    take_records: takes the fields of `records`, of which no batches are made then.
    """

    def __init__(
        self,
        context: Context,
        tables: frozenset[str],
        size: int,
        take_records: TakeRecords | None = None,
    ) -> None:
        self._context = context
        self._size = size
        self._take_records = take_records
        self._extractor = Extractor(
            context.names,
            context.limits,
            RECORDS in tables,
            PARTITIONS in tables,
            EXCHANGES in tables,
        )
        traffic = context.traffic
        self._files = FileNames(traffic)
        self._exchanges = ExchangeColumns(traffic) if EXCHANGES in tables else None
        self._partitions = PartitionColumns(traffic) if PARTITIONS in tables else None
        self._pairs = Pairs(self._exchanges, self._partitions) if tables - {RECORDS} else None
        self._records = (
            RecordColumns(context.name_topics, context.secrets) if RECORDS in tables else None
        )

    def handle(self, batch: list[LocatedItem | Ended], start: int) -> int:
        """Handle items from an index on, not decoded yet, until a batch is full.

        Return the index of the next one.
        """
        for index in range(start, len(batch)):
            located = batch[index]
            if isinstance(located, Ended):
                self.end(located)
            else:
                self.add(located, None)
            if self.is_full():
                return index + 1
        return len(batch)

    def is_full(self) -> bool:
        """Whether there are enough rows of a table for a batch.

        An exchange has any number of rows of `partitions`, however small its messages are.
        """
        exchanges, partitions, records = self._exchanges, self._partitions, self._records
        if exchanges is not None and exchanges.is_full(self._size):
            return True
        if partitions is not None and len(partitions.filled.rows) >= self._size:
            return True
        return records is not None and records.is_full(self._size)

    def end(self, ended: Ended) -> None:
        """Handle the end of a connection."""
        if self._pairs is not None:
            self._pairs.end(ended.connection)

    def add(self, located: LocatedItem, row: Row | None) -> None:
        """Handle a message; row: its row, if it is already decoded."""
        message = self.extract(located, row, True)
        pairs, item = self._pairs, located.item
        if message is None and isinstance(item, Row) and item.status is OUT_OF_ORDER:
            packet = item.request_packet
            if pairs is not None and packet is not None and located.connection is not None:
                pairs.overtake(located.connection, packet, item.correlation_id)
            return
        if message is not None and pairs is not None and located.connection is not None:
            pairs.handle(located.connection, located.client or "", located.broker or "", message)

    def extract(
        self, located: LocatedItem, row: Row | None, has_records: bool
    ) -> ExtractedMessage | None:
        """Extract a message that is paired elsewhere.

        row: its row, if it is already decoded. has_records: add its records.
        """
        message = self._extract(located, row)
        if message is None or not has_records or self._records is None:
            return message
        if message.facts.fields:
            self._add_fields(located, message, self._records.fields)
        return message

    def add_exchange(self, exchange: ExtractedExchange) -> None:
        """Add an exchange that was paired elsewhere."""
        if self._pairs is not None:
            self._pairs.add_exchange(exchange)

    # -- fetch sessions, where exchanges were paired elsewhere

    def restart(self) -> None:
        """Forget the fetch sessions, before exchanges of another part of the capture."""
        if self._pairs is not None:
            self._pairs.forget_sessions()

    def session(self, connection: int, id: int) -> State[Block] | None:
        """Return a fetch session; None if it is unknown."""
        return None if self._pairs is None else self._pairs.sessions.get(connection, id)

    def restore(
        self, connection: int, id: int, requests: list[LocatedItem], before: State[Block] | None
    ) -> None:
        """Replace a fetch session by what some requests make of it. before: what it was."""
        pairs = self._pairs
        if pairs is None:
            return
        pairs.sessions.replace(connection, id, before)
        opened = Session(id, 0, 0)
        for request in requests:
            message = self._extract(request, None)
            sent = None if message is None else message.facts.session
            if sent is not None:
                pairs.apply(connection, sent, opened)

    def _extract(self, located: LocatedItem, row: Row | None) -> ExtractedMessage | None:
        item = located.item
        extractor = self._extractor
        if not isinstance(item, RawFrame):
            return extractor.row(item) if is_paired(item) else None
        if self._pairs is None and item.request is not None:
            format = extractor.format_of(item.request, item.is_request)
            if not format.has_records and not format.names:
                return None
        return extractor.extract(item, row)

    def _add_fields(self, located: LocatedItem, message: ExtractedMessage, fields: Fields) -> None:
        file, packet = self._files.of(message.packet), message.packet & NUMBER
        for field in message.facts.fields:
            fields.add(
                field,
                file,
                packet,
                message.time_ns,
                located.connection,
                located.client,
                located.broker,
                DIRECTION[message.api_key],
                message.client_id,
                message.correlation_id,
            )

    def finish(self) -> None:
        """Handle the end of the capture."""
        if self._pairs is not None:
            self._pairs.finish()

    def batches(self, *, last: bool = False) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Return full batches; with `last`, also incomplete ones."""
        size = self._size
        if self._exchanges is not None:
            rows = self._exchanges.filled.rows
            if self._exchanges.is_full(size) or (last and rows):
                self._context.name_topics()
                batch = exchange_batch(self._exchanges.take_values())
                for start in range(0, rows, size):
                    yield EXCHANGES, batch.slice(start, size)
        if self._partitions is not None:
            rows = len(self._partitions.filled.rows)
            if rows >= size or (last and rows):
                self._context.name_topics()
                batch = partition_batch(self._partitions.take_values())
                for start in range(0, rows, size):
                    yield PARTITIONS, batch.slice(start, size)
        if self._records is not None and (last or self._records.is_full(size)):
            yield from self._batches_of(self._records)

    def _batches_of(self, records: RecordColumns) -> Iterator[tuple[str, pa.RecordBatch]]:
        if self._take_records is not None:
            fields = records.take()
            if len(fields):
                self._take_records(fields)
            return
        for batch in records.batches():
            for part in slices(batch, self._size):
                yield RECORDS, part


def slices(batch: pa.RecordBatch, size: int) -> Iterator[pa.RecordBatch]:
    """Divide a batch into batches of at most so many rows."""
    return (batch.slice(start, size) for start in range(0, len(batch), size))

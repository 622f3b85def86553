"""Builds `exchanges` and `records` column by column, in one pass over a capture.

Law: a message is decoded only where its bytes alone do not suffice; a table has the same rows as
when it is read alone.

    LocatedItem --Extractor--> ExtractedMessage --.--> ExchangeColumns --.
                                                  `--> RecordColumns ----+--> (table, record batch)
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from ..exchanges.exchanges import NO_HEADER, Ended
from ..exchanges.fetch_sessions import Sessions, State
from ..exchanges.topic_ids import Topic
from ..frames.decoding import LocatedItem, RawFrame
from ..rows import Row, Status
from .arrow.exchange_arrays import exchange_batch
from .arrow.exchange_columns import ExchangeColumns, PendingRequests
from .arrow.record_columns import RecordColumns
from .arrow.record_fields import Fields
from .context import Context
from .extraction.messages import ExtractedMessage, Extractor
from .records import DIRECTION

EXCHANGES = "exchanges"
RECORDS = "records"

ListedPartition = tuple[Topic, int]
"""A partition of a fetch session."""


class Columnar:
    """Builds `exchanges`, `records` or both of extracted messages."""

    def __init__(self, context: Context, tables: frozenset[str], size: int) -> None:
        self._context = context
        self._size = size
        self._extractor = Extractor(context.names, context.limits, RECORDS in tables)
        self._exchanges = ExchangeColumns(context.traffic) if EXCHANGES in tables else None
        self._records = (
            RecordColumns(context.name_topics, context.secrets) if RECORDS in tables else None
        )

    def handle(self, batch: list[LocatedItem | Ended]) -> None:
        """Handle some items, not decoded yet."""
        for located in batch:
            if isinstance(located, Ended):
                self.end(located)
            else:
                self.add(located, None)

    def end(self, ended: Ended) -> None:
        """Handle the end of a connection."""
        if self._exchanges is not None:
            self._exchanges.end(ended.connection)

    def add(self, located: LocatedItem, row: Row | None) -> None:
        """Handle a message; row: its row, if it is already decoded."""
        message = self.extract(located, row, True)
        exchanges = self._exchanges
        if message is not None and exchanges is not None and located.connection is not None:
            exchanges.handle(
                located.connection, located.client or "", located.broker or "", message
            )

    def extract(
        self, located: LocatedItem, row: Row | None, has_records: bool
    ) -> ExtractedMessage | None:
        """Extract a message that is paired elsewhere; has_records: add its records."""
        message = self._extract(located, row)
        if message is None or not has_records or self._records is None:
            return message
        if message.facts.fields:
            self._add_fields(located, message, self._records.fields)
        return message

    def add_exchange(
        self,
        connection: int,
        client: str,
        broker: str,
        request: ExtractedMessage | None,
        response: ExtractedMessage | None,
    ) -> None:
        """Add an exchange that was paired elsewhere."""
        if self._exchanges is not None:
            self._exchanges.add(PendingRequests(connection, client, broker), request, response)

    def replayed(
        self,
        connection: int,
        id: int,
        requests: list[LocatedItem],
        before: State[ListedPartition] | None,
    ) -> State[ListedPartition] | None:
        """Return what some requests make of a fetch session. before: what it was, if known."""
        sessions: Sessions[ListedPartition] = Sessions()
        sessions.replace(connection, id, before)
        for request in requests:
            message = self._extract(request, None)
            sent = None if message is None else message.facts.session
            if sent is not None:
                response = 0, id
                sessions.apply(
                    connection, sent.id, sent.epoch, sent.listed, sent.forgotten, response
                )
        return sessions.get(connection, id)

    def restore(self, connection: int, id: int, state: State[ListedPartition] | None) -> None:
        """Replace a fetch session."""
        if self._exchanges is not None:
            self._exchanges.sessions.replace(connection, id, state)

    def session(self, connection: int, id: int) -> State[ListedPartition] | None:
        """Return a fetch session."""
        return None if self._exchanges is None else self._exchanges.sessions.get(connection, id)

    def restart(self) -> None:
        """Forget the fetch sessions, before exchanges of another part of the capture."""
        if self._exchanges is not None:
            self._exchanges.sessions = Sessions()

    def _extract(self, located: LocatedItem, row: Row | None) -> ExtractedMessage | None:
        item = located.item
        extractor = self._extractor
        if not isinstance(item, RawFrame):
            return extractor.row(item) if is_exchange_message(item) else None
        if self._exchanges is None and item.request is not None:
            format = extractor.format_of(item.request, item.is_request)
            if not format.has_records and not format.names:
                return None
        return extractor.extract(item, row)

    def _add_fields(self, located: LocatedItem, message: ExtractedMessage, fields: Fields) -> None:
        file, packet = self._context.traffic.place(message.packet)
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
        if self._exchanges is not None:
            self._exchanges.finish()

    def batches(self, *, last: bool = False) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Return full batches; with `last`, also incomplete ones."""
        size = self._size
        if self._exchanges is not None:
            rows = self._exchanges.filled.rows
            if rows >= size or (last and rows):
                self._context.name_topics()
                batch = exchange_batch(self._exchanges.take_values())
                for start in range(0, rows, size):
                    yield EXCHANGES, batch.slice(start, size)
        if self._records is not None and (last or self._records.is_full(size)):
            for batch in self._records.batches():
                for start in range(0, len(batch), size):
                    yield RECORDS, batch.slice(start, size)


def is_exchange_message(row: Row) -> bool:
    """Whether a row is a request or response of an exchange, complete or truncated."""
    if row.status is Status.TRUNCATED:
        return row.correlation_id is not None
    return row.is_message and row.status not in NO_HEADER

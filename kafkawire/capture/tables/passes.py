"""One pass over a capture for any number of tables.

Law: each message is opened at most once, whatever tables want it; a table's rows are those that it
has alone.

    traffic --> [Told] --.-- Hearing --> exchanges, records: columns --.
                         `-- opened once --> other tables: rows -------+--> (table, record batch)
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from ..exchanges.exchanges import NO_HEADER, Ended
from ..frames.decoding import RawFrame
from ..frames.serialised import LocatedItem
from ..rows import Row, Status
from .arrow.exchange_arrays import exchange_batch
from .arrow.exchange_columns import ExchangeColumns
from .arrow.record_columns import RecordColumns
from .context import Context
from .extraction.messages import ExtractedMessage, Extractor
from .extraction.record_fields import Fields
from .records import DIRECTION

EXCHANGES = "exchanges"
RECORDS = "records"


class Columnar:
    """Makes `exchanges`, `records` or both of what is heard."""

    def __init__(self, context: Context, tables: frozenset[str], size: int) -> None:
        self._context = context
        self._size = size
        self._hearing = Extractor(context.names, context.limits, RECORDS in tables)
        self._exchanges = ExchangeColumns(context.traffic) if EXCHANGES in tables else None
        self._records = (
            RecordColumns(context.name_topics, context.secrets) if RECORDS in tables else None
        )

    def take(self, batch: list[LocatedItem | Ended]) -> None:
        """Take some rows, still sealed."""
        for told in batch:
            if isinstance(told, Ended):
                self.end(told)
            else:
                self.hear(told, None)

    def end(self, ended: Ended) -> None:
        """Take that nothing more comes of a connection."""
        if self._exchanges is not None:
            self._exchanges.end(ended.connection)

    def hear(self, told: LocatedItem, row: Row | None) -> None:
        """Take a message; row: what it is, if it was opened already."""
        heard = self._heard(told, row)
        if heard is None:
            return
        pairs = self._exchanges
        if pairs is not None and told.connection is not None:
            pairs.take(told.connection, told.client or "", told.broker or "", heard)
        if heard.notes.fields and self._records is not None:
            self._carry(told, heard, self._records.fields)

    def _heard(self, told: LocatedItem, row: Row | None) -> ExtractedMessage | None:
        item = told.item
        hearing = self._hearing
        if not isinstance(item, RawFrame):
            return hearing.row(item) if has_a_place(item) else None
        if self._exchanges is None and item.request is not None:
            head = hearing.head(item.request, item.is_request)
            if not head.carries and not head.names:
                return None
        return hearing.hear(item, row)

    def _carry(self, told: LocatedItem, heard: ExtractedMessage, fields: Fields) -> None:
        file, packet = self._context.traffic.place(heard.packet)
        for field in heard.notes.fields:
            fields.add(
                field,
                file,
                packet,
                heard.time_ns,
                told.connection,
                told.client,
                told.broker,
                DIRECTION[heard.api_key],
                heard.client_id,
                heard.correlation_id,
            )

    def finish(self) -> None:
        """Take that nothing more comes."""
        if self._exchanges is not None:
            self._exchanges.finish()

    def batches(self, *, last: bool = False) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Give the batches that are full; the last ones, too."""
        size = self._size
        if self._exchanges is not None:
            rows = self._exchanges.filled.rows
            if rows >= size or (last and rows):
                self._context.name_topics()
                batch = exchange_batch(self._exchanges.taken())
                for start in range(0, rows, size):
                    yield EXCHANGES, batch.slice(start, size)
        if self._records is not None and (last or self._records.is_full(size)):
            for batch in self._records.batches():
                for start in range(0, len(batch), size):
                    yield RECORDS, batch.slice(start, size)


def has_a_place(row: Row) -> bool:
    """Whether a row is a request or response, whole or cut, as `capture.exchanges` pairs them."""
    if row.status is Status.TRUNCATED:
        return row.correlation_id is not None
    return row.is_message and row.status not in NO_HEADER

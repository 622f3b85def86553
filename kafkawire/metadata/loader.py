"""Loads batches and snapshots of `__cluster_metadata` into an image.

What the records of a transaction change is seen when it ends, or never; offsets only grow. An
error names the record and its offset, and leaves what was before it applied. Records of a
transaction are applied to a copy of the image as they come, so that its end costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..errors import InvalidMetadataRecord
from ..messages.abort_transaction_record import AbortTransactionRecord
from ..messages.begin_transaction_record import BeginTransactionRecord
from ..messages.end_transaction_record import EndTransactionRecord
from ..primitives import Message
from ..protocol.log_records import LogRecord
from .delta import MetadataDelta
from .image import MetadataImage
from .indexes import TopicIdPartition
from .replay import replay


class _Transaction(NamedTuple):
    """What the records of an open transaction have changed."""

    image: MetadataImage
    delta: MetadataDelta


class MetadataLoader:
    """An image and the transaction that is open, if any.

    offset: of the last record, also one in a transaction.
    """

    def __init__(self, image: MetadataImage | None = None) -> None:
        self.image = MetadataImage() if image is None else image
        self.offset = self.image.offset
        self._transaction: _Transaction | None = None

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open: a new controller aborts it."""
        return self._transaction is not None

    def apply(self, records: Iterable[Message], base_offset: int) -> MetadataDelta:
        """Apply records of consecutive offsets; return what they changed.

        Raises InvalidMetadataRecord.
        """
        delta = MetadataDelta()
        offset = base_offset
        for record in records:
            self._take(record, offset, delta)
            offset += 1
        return delta

    def apply_decoded(self, records: Iterable[tuple[int, LogRecord]]) -> MetadataDelta:
        """Apply records as `kafkawire.log` reads them, with their offsets; no control records.

        Raises InvalidMetadataRecord, also for a record that is not decoded.
        """
        delta = MetadataDelta()
        for offset, record in records:
            value = record.value
            if value is None:
                raise InvalidMetadataRecord("null is not a valid record", "", offset)
            if value.message is None:
                raise InvalidMetadataRecord(value.error or "not decoded", value.name or "", offset)
            self._take(value.message, offset, delta)
        return delta

    def load_snapshot(self, records: Iterable[Message], last_offset: int) -> MetadataDelta:
        """Replace the image by that of a snapshot; the delta names everything in either."""
        loader = MetadataLoader()
        delta = MetadataDelta()
        for record in records:
            loader._transaction_forbidden(record, last_offset)
            replay(loader.image, record, last_offset, delta)
        image = loader.image
        image.offset = delta.offset = last_offset
        deleted = [each for key, each in self.image.topics.items() if key not in image.topics]
        delta.deleted_topics = {each.topic_id: each.name for each in deleted}
        partitions = dict.fromkeys(
            TopicIdPartition(each.topic_id, index) for each in deleted for index in each.partitions
        )
        delta.partitions = partitions | delta.partitions
        delta.brokers |= dict.fromkeys(self.image.brokers)
        delta.configs |= dict.fromkeys(self.image.configs)
        self.image, self.offset, self._transaction = image, last_offset, None
        return delta

    def copy(self) -> MetadataLoader:
        """Copy the loader with its image."""
        loader = MetadataLoader(self.image.copy())
        loader.offset = self.offset
        if self._transaction is not None:
            delta = MetadataDelta()
            delta.add(self._transaction.delta)
            loader._transaction = _Transaction(self._transaction.image.copy(), delta)
        return loader

    def _transaction_forbidden(self, record: Message, offset: int) -> None:
        if type(record) in TRANSACTIONS:
            raise InvalidMetadataRecord(
                "a snapshot has no transactions", type(record).__name__, offset
            )

    def _take(self, record: Message, offset: int, delta: MetadataDelta) -> None:
        name = type(record).__name__
        if offset <= self.offset:
            raise InvalidMetadataRecord(f"offset {self.offset} was applied before", name, offset)
        if type(record) in TRANSACTIONS:
            self._change_transaction(record, offset, delta)
        elif self._transaction is not None:
            replay(self._transaction.image, record, offset, self._transaction.delta)
        else:
            replay(self.image, record, offset, delta)
        self.offset = offset

    def _change_transaction(self, record: Message, offset: int, delta: MetadataDelta) -> None:
        name = type(record).__name__
        transaction = self._transaction
        if isinstance(record, BeginTransactionRecord):
            if transaction is not None:
                raise InvalidMetadataRecord("a transaction is open already", name, offset)
            self._transaction = _Transaction(self.image.copy(), MetadataDelta())
            return
        if transaction is None:
            raise InvalidMetadataRecord("no transaction is open", name, offset)
        self._transaction = None
        if isinstance(record, EndTransactionRecord):
            self.image = transaction.image
            delta.add(transaction.delta)
        self.image.offset = delta.offset = offset


TRANSACTIONS = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)

"""A transactional id and its transaction, as a value, and as a record of `__transaction_state`.

A value never changes; a transition makes the next one, which holds once it is committed.

    key    int16 type | TransactionLogKey: transactional id
    value  int16 version | TransactionLogValue; null: the transactional id has expired
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Self

from ..messages.transaction_log_key import TransactionLogKey
from ..messages.transaction_log_value import PartitionsSchema, TransactionLogValue
from ..protocol.log_records import decode_log_record, encode_log_message
from ..protocol.log_types import InternalLog
from ..records import Record
from .states import IDLE, TRANSITIONS, TransactionState, Trigger

S = TransactionState
NONE: Final = -1
LAST_EPOCH: Final = 0x7FFE
"""The last epoch that a producer gets; the one after it is for the fence of its transaction."""
KEY_VERSION: Final = 0
VALUE_VERSION: Final = 1
EPOCH_BUMPED: Final = 2
"""The transaction.version from which each transaction has an epoch of its own (KIP-890)."""

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transactional id. Times in milliseconds since 1970.

    last_producer_epoch: before the last InitProducerId that named one. previous_producer_id: of the
    transaction before, next_producer_id: of the next one, where the epochs are used up.
    version: transaction.version of the client.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int = NONE
    last_producer_epoch: int = NONE
    previous_producer_id: int = NONE
    next_producer_id: int = NONE
    timeout_ms: int = 0
    state: TransactionState = S.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NONE
    updated_ms: int = NONE
    version: int = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether the producer has its last epoch."""
        return self.producer_epoch >= LAST_EPOCH

    @property
    def is_idle(self) -> bool:
        """Whether a transaction has not begun."""
        return self.state in IDLE

    def after(self, trigger: Trigger, now_ms: int) -> Self:
        """Return the value in the next state."""
        return replace(self, state=TRANSITIONS[self.state, trigger], updated_ms=now_ms)

    def initialised(self, timeout_ms: int, epoch: int, last_epoch: int, now_ms: int) -> Self:
        """Return the value for a producer that begins with an epoch."""
        return replace(
            self.after(Trigger.INIT, now_ms),
            timeout_ms=timeout_ms,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            partitions=frozenset(),
            start_ms=NONE,
        )

    def rotated(self, producer_id: int) -> Self:
        """Return the value with a new producer id, whose first epoch comes next."""
        return replace(
            self,
            previous_producer_id=self.producer_id,
            producer_id=producer_id,
            producer_epoch=NONE,
        )

    def with_partitions(self, more: Iterable[TopicPartition], version: int, now_ms: int) -> Self:
        """Return the value with more partitions in the transaction, which may begin with them."""
        begins = self.state is not S.ONGOING
        return replace(
            self.after(Trigger.ADD, now_ms),
            partitions=frozenset(more) if begins else self.partitions.union(more),
            start_ms=now_ms if begins else self.start_ms,
            version=version,
        )

    def fenced(self, now_ms: int, version: int, next_producer_id: int = NONE) -> Self:
        """Return the value whose transaction is aborted with an epoch that no producer has.

        version: transaction.version of the cluster; from 2, its producer may begin anew with it.
        """
        return replace(
            self.after(Trigger.FENCE, now_ms),
            producer_epoch=self.producer_epoch + 1,
            last_producer_epoch=self.producer_epoch if version >= EPOCH_BUMPED else NONE,
            next_producer_id=next_producer_id,
        )

    def ended(self, commit: bool, version: int, next_producer_id: int, now_ms: int) -> Self:
        """Return the value whose markers are due. next_producer_id: NONE, or a new one."""
        after = self.after(Trigger.COMMIT if commit else Trigger.ABORT, now_ms)
        if self.is_idle:
            after = replace(after, partitions=frozenset(), start_ms=now_ms)
        if version < EPOCH_BUMPED:
            return replace(after, version=version)
        return replace(
            after,
            version=version,
            producer_epoch=self.producer_epoch + 1,
            last_producer_epoch=self.producer_epoch,
            next_producer_id=next_producer_id,
        )

    def marked(self, now_ms: int) -> Self:
        """Return the value after its markers are written, perhaps with its next producer id."""
        after = replace(self.after(Trigger.MARKED, now_ms), partitions=frozenset())
        if self.next_producer_id == NONE:
            return after
        return replace(
            after,
            previous_producer_id=self.producer_id,
            producer_id=self.next_producer_id,
            producer_epoch=0,
            next_producer_id=NONE,
        )

    # -- records

    def record(self) -> tuple[bytes, bytes | None]:
        """Encode as a record: key and value."""
        key = TransactionLogKey(transactional_id=self.transactional_id)
        encoded_key = encode_log_message(key, KEY_VERSION)
        if self.state is S.DEAD:
            return encoded_key, None
        value = TransactionLogValue(
            producer_id=self.producer_id,
            previous_producer_id=self.previous_producer_id,
            next_producer_id=self.next_producer_id,
            producer_epoch=self.producer_epoch,
            transaction_timeout_ms=self.timeout_ms,
            transaction_status=self.state,
            transaction_partitions=None if self.state is S.EMPTY else self._schema(),
            transaction_last_update_timestamp_ms=self.updated_ms,
            transaction_start_timestamp_ms=self.start_ms,
            client_transaction_version=self.version,
        )
        return encoded_key, encode_log_message(value, VALUE_VERSION)

    def _schema(self) -> list[PartitionsSchema]:
        topics: dict[str, list[int]] = {}
        for topic, index in sorted(self.partitions):
            topics.setdefault(topic, []).append(index)
        return [PartitionsSchema(topic=name, partition_ids=ids) for name, ids in topics.items()]


def read_record(record: Record) -> tuple[str, Transaction | None] | None:
    """Read a record: transactional id and value, None if it has expired.

    Returns None for a record that is not a transaction's, or is of an unknown version.
    """
    read = decode_log_record(InternalLog.TRANSACTIONS, record.key, record.value)
    key = None if read.key is None else read.key.message
    if not isinstance(key, TransactionLogKey):
        return None
    if read.value is None:
        return key.transactional_id, None
    value = read.value.message
    if not isinstance(value, TransactionLogValue):
        return None
    transaction = Transaction(
        key.transactional_id,
        value.producer_id,
        value.producer_epoch,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        timeout_ms=value.transaction_timeout_ms,
        state=S(value.transaction_status),
        partitions=frozenset(
            (each.topic, index)
            for each in value.transaction_partitions or ()
            for index in each.partition_ids
        ),
        start_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        version=value.client_transaction_version,
    )
    return key.transactional_id, transaction

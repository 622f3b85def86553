"""Requests and effects of a transaction coordinator, independent of message versions.

A request carries `reply_to`; its result carries it back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from ..protocol import ErrorCode
from ..records import BatchBuilder
from .transaction import NONE, TopicPartition, Transaction


class InitProducerId(NamedTuple):
    """A producer begins, and fences its predecessors.

    producer_id, producer_epoch: those that it has, NONE for a producer that starts (KIP-360).
    new_producer_id: one that is unused; NONE until `ProducerIdNeeded`. version: transaction.version
    of the cluster.
    """

    reply_to: int
    transactional_id: str
    timeout_ms: int
    producer_id: int = NONE
    producer_epoch: int = NONE
    new_producer_id: int = NONE
    version: int = 0


class AddPartitions(NamedTuple):
    """Partitions are to be in the transaction. version: transaction.version of the client."""

    reply_to: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]
    version: int = 0


class VerifyPartitions(NamedTuple):
    """A leader checks that partitions are in the transaction before it appends (KIP-890)."""

    reply_to: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]


class EndTransaction(NamedTuple):
    """The transaction commits or aborts. new_producer_id: as in `InitProducerId`."""

    reply_to: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    commit: bool
    version: int = 0
    new_producer_id: int = NONE


class AbortExpired(NamedTuple):
    """A transaction is over its timeout. version, new_producer_id: as in `InitProducerId`."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    version: int
    new_producer_id: int = NONE
    reply_to: int = NONE

    @classmethod
    def of(
        cls, transaction: Transaction, version: int, new_producer_id: int = NONE
    ) -> AbortExpired:
        """Return the request to abort a transaction."""
        identity = transaction.producer_id, transaction.producer_epoch
        return cls(transaction.transactional_id, *identity, version, new_producer_id)


Request = InitProducerId | AddPartitions | VerifyPartitions | EndTransaction | AbortExpired


class Result(NamedTuple):
    """The result of a request, with the id and epoch that the producer has from now on.

    missing: the partitions of `VerifyPartitions` that are not in the transaction.
    """

    reply_to: int
    error: ErrorCode
    producer_id: int = NONE
    producer_epoch: int = NONE
    missing: frozenset[TopicPartition] = frozenset()


class ProducerIdNeeded(NamedTuple):
    """The request needs an unused producer id: handle it again with one."""

    request: InitProducerId | EndTransaction | AbortExpired


class WriteMarkers(NamedTuple):
    """The leaders of all partitions write a marker; then `markers_written` is due.

    coordinator: its partition of `__transaction_state`, coordinator_epoch: its leader epoch.
    """

    coordinator: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int
    version: int
    partitions: frozenset[TopicPartition]


Effect = Result | ProducerIdNeeded | WriteMarkers


class CoordinatorLog(Protocol):
    """The partitions of `__transaction_state`, as their coordinators use them."""

    def append(self, index: int, builder: BatchBuilder, now: float, /) -> int:
        """Append records to a partition; return the offset after them."""

    def committed(self, index: int, /) -> int:
        """Return the high watermark of a partition: what is before it is not lost."""

    def batches(self, index: int, /) -> Iterable[bytes]:
        """Read a partition from its start, batch by batch."""

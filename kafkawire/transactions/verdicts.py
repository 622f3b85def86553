"""Decides on requests by what is known of their transactional id.

These functions change nothing; the coordinator writes what follows.
"""

from __future__ import annotations

from ..protocol import ErrorCode
from .requests import EndTransaction, InitProducerId, Result
from .states import END, END_AGAIN, END_NEXT, PREPARED
from .transaction import EPOCH_BUMPED, LAST_EPOCH, NONE, Transaction

E = ErrorCode


def is_prepared(value: Transaction) -> bool:
    """Whether the markers of a transaction are to be written."""
    return value.state in PREPARED


def current(reply_to: int, value: Transaction) -> Result:
    """Return the result with the id and epoch that the producer goes on with."""
    if value.next_producer_id != NONE:
        return Result(reply_to, E.NONE, value.next_producer_id, 0)
    return Result(reply_to, E.NONE, value.producer_id, value.producer_epoch)


def init_error(
    request: InitProducerId, transaction: Transaction | None, is_pending: bool
) -> ErrorCode:
    """Return the error of an InitProducerId."""
    if is_pending:
        return E.CONCURRENT_TRANSACTIONS
    if transaction is None:
        return E.NONE
    if not _is_producer_of(request, transaction):
        return E.PRODUCER_FENCED
    return E.CONCURRENT_TRANSACTIONS if is_prepared(transaction) else E.NONE


def is_rotation_due(request: InitProducerId, transaction: Transaction) -> bool:
    """Whether the epochs of a producer id are used up, and its producer needs another."""
    expected = request.producer_epoch
    return (
        transaction.is_idle
        and transaction.is_exhausted
        and expected in (NONE, transaction.producer_epoch)
    )


def _is_producer_of(request: InitProducerId, transaction: Transaction) -> bool:
    """Whether InitProducerId is that of a new producer, or of the present one (KIP-360)."""
    if request.producer_id in (NONE, transaction.producer_id) or transaction.producer_epoch == NONE:
        return True
    is_previous = request.producer_id == transaction.previous_producer_id
    return is_previous and request.producer_epoch >= LAST_EPOCH


def next_epochs(transaction: Transaction, expected: int) -> tuple[int, int] | None:
    """Return the next epoch and the last; None if a newer producer has the id.

    expected: the epoch that the producer has, NONE if it starts.
    """
    epoch = transaction.producer_epoch
    if expected == NONE:
        return epoch + 1, NONE
    if epoch in (NONE, expected):  # NONE: it gets a new producer id
        return epoch + 1, expected
    if expected == transaction.last_producer_epoch:
        return epoch, expected  # repeated: its response was lost
    return None


def identity_error(
    transaction: Transaction | None, producer_id: int, producer_epoch: int
) -> ErrorCode:
    """Return the error of a request whose producer is to be the present one."""
    if transaction is None or transaction.producer_id != producer_id:
        return E.INVALID_PRODUCER_ID_MAPPING
    if transaction.producer_epoch != producer_epoch:
        return E.PRODUCER_FENCED
    return E.CONCURRENT_TRANSACTIONS if is_prepared(transaction) else E.NONE


def end_error(
    request: EndTransaction, transaction: Transaction | None, is_pending: bool
) -> ErrorCode | None:
    """Return the error of an EndTxn, NONE if it is a repeated one, None if it is due."""
    if transaction is None:
        return E.INVALID_PRODUCER_ID_MAPPING
    bumps = request.version >= EPOCH_BUMPED
    rotated = bumps and _is_before_rotation(request, transaction)
    if request.producer_id != transaction.producer_id and not rotated:
        return E.INVALID_PRODUCER_ID_MAPPING
    again = rotated or (bumps and request.producer_epoch == transaction.producer_epoch - 1)
    if not again and request.producer_epoch != transaction.producer_epoch:
        return E.PRODUCER_FENCED
    if is_pending:
        return E.CONCURRENT_TRANSACTIONS
    table = END_AGAIN if again else END_NEXT if bumps else END
    return table[transaction.state][0 if request.commit else 1]


def _is_before_rotation(request: EndTransaction, transaction: Transaction) -> bool:
    """Whether a request names the producer id whose epochs were used up by its transaction."""
    return (
        request.producer_id == transaction.previous_producer_id
        and request.producer_epoch == LAST_EPOCH
        and transaction.producer_epoch == 0
    )

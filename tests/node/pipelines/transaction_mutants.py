"""Rules of the transaction coordinator and its markers, taken out one at a time (KIP-98, 890)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from kafkawire.protocol import ErrorCode
from kafkawire.transactions import AddPartitions, coordinator, transaction, verdicts
from kafkawire.transactions.coordinator import TransactionCoordinator
from kafkawire.transactions.states import (
    IDLE,
    PREPARED,
    TRANSITIONS,
    Trigger,
)
from kafkawire.transactions.states import TransactionState as S
from kafkawire.transactions.transaction import Transaction

Patch = Any
EVERYTHING: Final = 1 << 62
"""An offset after all records."""


def _epochs_are_not_bumped() -> Patch:
    original = verdicts.next_epochs

    def next_epochs(found: Transaction, expected: int) -> Any:
        epochs = original(found, expected)
        return epochs and (max(found.producer_epoch, 0), epochs[1])

    return patch.object(coordinator, "next_epochs", next_epochs)


def _transactions_share_epochs() -> Patch:
    """End transactions of version 2 as those of version 1."""
    original = Transaction.ended

    def ended(self: Transaction, commit: bool, version: int, next_id: int, now_ms: int) -> Any:
        after = original(self, commit, 1, next_id, now_ms)
        return replace(after, version=version)

    return patch.object(Transaction, "ended", ended)


def _fences_have_no_epoch() -> Patch:
    """Abort the transaction of a former producer, or an expired one, with its own epoch."""
    original = Transaction.fenced

    def fenced(self: Transaction, *after: int) -> Transaction:
        return replace(original(self, *after), producer_epoch=self.producer_epoch)

    return patch.object(Transaction, "fenced", fenced)


def _zombies_end_transactions() -> Patch:
    original = verdicts.end_error

    def end_error(request: Any, found: Any, is_pending: bool) -> Any:
        if found is not None and request.producer_epoch < found.producer_epoch:
            request = request._replace(producer_epoch=found.producer_epoch)
        return original(request, found, is_pending)

    return patch.object(coordinator, "end_error", end_error)


def _zombies_add_partitions() -> Patch:
    original = verdicts.identity_error

    def identity_error(found: Any, producer_id: int, epoch: int) -> ErrorCode:
        return original(found, producer_id, epoch if found is None else found.producer_epoch)

    return patch.object(coordinator, "identity_error", identity_error)


def _markers_always_commit() -> Patch:
    original = TransactionCoordinator._markers

    def write_markers(self: Any, value: Transaction) -> Any:
        return original(self, value)._replace(commit=True)

    return patch.object(TransactionCoordinator, "_markers", write_markers)


def _responds_before_records_are_committed() -> Patch:
    original = TransactionCoordinator.committed

    def committed(self: TransactionCoordinator, _offset: int) -> Any:
        return original(self, EVERYTHING)

    return patch.object(TransactionCoordinator, "committed", committed)


def _transactions_begin_before_markers() -> ExitStack:
    """Let a transaction begin before the markers of the one before are written."""
    original = verdicts.identity_error

    def identity_error(current: Any, producer_id: int, epoch: int) -> ErrorCode:
        error = original(current, producer_id, epoch)
        return ErrorCode.NONE if error is ErrorCode.CONCURRENT_TRANSACTIONS else error

    begins = {(each, Trigger.ADD): S.ONGOING for each in PREPARED}
    stack = ExitStack()
    stack.enter_context(patch.object(coordinator, "identity_error", identity_error))
    stack.enter_context(patch.dict(TRANSITIONS, begins))
    return stack


def _producers_begin_before_markers() -> ExitStack:
    """Let a producer begin before the markers of the one before are written."""
    original = verdicts.init_error

    def init_error(request: Any, current: Any, is_pending: bool) -> ErrorCode:
        error = original(request, current, is_pending)
        return error if is_pending or error is ErrorCode.PRODUCER_FENCED else ErrorCode.NONE

    begins = {(each, Trigger.INIT): S.EMPTY for each in PREPARED}
    stack = ExitStack()
    stack.enter_context(patch.object(coordinator, "init_error", init_error))
    stack.enter_context(patch.dict(TRANSITIONS, begins))
    return stack


def _fenced_producers_begin_anew() -> Patch:
    original = verdicts.next_epochs

    def next_epochs(current: Transaction, expected: int) -> Any:
        return original(current, expected) or original(current, current.producer_epoch)

    return patch.object(coordinator, "next_epochs", next_epochs)


def _ongoing_transactions_expire() -> ExitStack:
    stack = ExitStack()
    stack.enter_context(patch.object(transaction, "IDLE", (*IDLE, S.ONGOING)))
    dead = {(S.ONGOING, Trigger.EXPIRED): S.DEAD}
    stack.enter_context(patch.dict(TRANSITIONS, dead))
    return stack


def _added_partitions_replace_the_others() -> Patch:
    original = TransactionCoordinator._add

    def add(self: TransactionCoordinator, request: AddPartitions, now: float) -> Any:
        value = self.transactions.get(request.transactional_id)
        if value is not None:
            self.transactions[value.transactional_id] = replace(value, partitions=frozenset())
        return original(self, request, now)

    return patch.dict(coordinator._HANDLERS, {AddPartitions: add})


def _transactions_load_without_partitions() -> Patch:
    original = transaction.read_record

    def read_record(record: Any) -> Any:
        read = original(record)
        if read is None or read[1] is None:
            return read
        return read[0], replace(read[1], partitions=frozenset())

    return patch.object(coordinator, "read_record", read_record)


MUTANTS: Final[dict[str, Callable[[], Patch]]] = {
    "epochs are not bumped": _epochs_are_not_bumped,
    "transactions share an epoch": _transactions_share_epochs,
    "fences have no epoch": _fences_have_no_epoch,
    "zombies end transactions": _zombies_end_transactions,
    "zombies add partitions": _zombies_add_partitions,
    "markers always commit": _markers_always_commit,
    "responds before records are committed": _responds_before_records_are_committed,
    "transactions begin before markers": _transactions_begin_before_markers,
    "producers begin before markers": _producers_begin_before_markers,
    "fenced producers begin anew": _fenced_producers_begin_anew,
    "ongoing transactions expire": _ongoing_transactions_expire,
    "added partitions replace the others": _added_partitions_replace_the_others,
    "transactions load without partitions": _transactions_load_without_partitions,
}

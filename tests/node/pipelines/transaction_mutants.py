"""Rules of the transaction coordinator and its markers, taken out one at a time (KIP-98, 890)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from kafkawire.protocol import ErrorCode
from kafkawire.transactions import coordinator, verdicts
from kafkawire.transactions.coordinator import TransactionCoordinator
from kafkawire.transactions.transaction import Transaction

Patch = Any


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

    def fenced(self: Transaction, now_ms: int) -> Transaction:
        return replace(original(self, now_ms), producer_epoch=self.producer_epoch)

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


MUTANTS: Final[dict[str, Callable[[], Patch]]] = {
    "epochs are not bumped": _epochs_are_not_bumped,
    "transactions share an epoch": _transactions_share_epochs,
    "fences have no epoch": _fences_have_no_epoch,
    "zombies end transactions": _zombies_end_transactions,
    "zombies add partitions": _zombies_add_partitions,
    "markers always commit": _markers_always_commit,
}

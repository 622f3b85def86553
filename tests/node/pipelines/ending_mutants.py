"""Rules of how transactions end, taken out one at a time (KIP-98, 360, 890).

A coordinator loads what the one before has written; markers reach all partitions; an end that
arrives late ends nothing; the epochs of a producer id are used up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from unittest.mock import patch

from kafkawire.broker.groups import loading
from kafkawire.broker.transactions.produce import ProduceVerification
from kafkawire.protocol import ErrorCode
from kafkawire.transactions import coordinator, verdicts
from kafkawire.transactions.markers import TransactionMarkers
from kafkawire.transactions.requests import EndTransaction
from kafkawire.transactions.transaction import EPOCH_BUMPED, Transaction

Patch = Any


def _pending_offsets_are_not_loaded() -> Patch:
    original = loading._load_offset

    def load_offset(coordinator: Any, batch: Any, key: Any, value: Any) -> None:
        if not batch.transactional:
            original(coordinator, batch, key, value)

    return patch.object(loading, "_load_offset", load_offset)


def _pending_offsets_are_committed_when_they_are_loaded() -> Patch:
    original = loading._load_offset

    def load_offset(coordinator: Any, batch: Any, key: Any, value: Any) -> None:
        original(coordinator, batch, key, value)
        if batch.transactional:
            coordinator.end_transaction(batch.producer_id, True)

    return patch.object(loading, "_load_offset", load_offset)


def _loaded_markers_always_commit() -> Patch:
    def end_transaction(coordinator: Any, batch: Any) -> None:
        coordinator.end_transaction(batch.producer_id, True)

    return patch.object(loading, "_end_transaction", end_transaction)


def _markers_need_no_response() -> Patch:
    original = TransactionMarkers.response

    def response(self: TransactionMarkers, broker_id: int, body: Any, now: float) -> None:
        if body is None:
            for item in self._brokers[broker_id].in_flight:
                self._written(item)
        original(self, broker_id, body, now)

    return patch.object(TransactionMarkers, "response", response)


def _one_marker_completes_a_transaction() -> Patch:
    def written(self: TransactionMarkers, item: Any) -> None:
        if item.marker in self._missing:
            self._finish(item.marker)

    return patch.object(TransactionMarkers, "_written", written)


def _late_ends_end_the_next_transaction() -> Patch:
    original = verdicts.end_error

    def end_error(request: EndTransaction, current: Any, is_pending: bool) -> ErrorCode | None:
        is_late = current is not None and request.producer_epoch == current.producer_epoch - 1
        if is_late and request.version >= EPOCH_BUMPED:
            request = request._replace(producer_epoch=current.producer_epoch)
        return original(request, current, is_pending)

    return patch.object(coordinator, "end_error", end_error)


def _ends_rotate_no_producer_ids() -> Patch:
    original = Transaction.ended

    def ended(self: Transaction, commit: bool, version: int, _next: int, now_ms: int) -> Any:
        return original(self, commit, version, -1, now_ms)

    return patch.object(Transaction, "ended", ended)


MUTANTS: Final[dict[str, Callable[[], Patch]]] = {
    "pending offsets are not loaded": _pending_offsets_are_not_loaded,
    "loaded offsets are committed": _pending_offsets_are_committed_when_they_are_loaded,
    "loaded markers always commit": _loaded_markers_always_commit,
    "markers are sent once": lambda: patch.object(TransactionMarkers, "_delay", lambda *_: None),
    "markers need no response": _markers_need_no_response,
    "one marker completes a transaction": _one_marker_completes_a_transaction,
    "late ends end the next transaction": _late_ends_end_the_next_transaction,
    "epochs are never used up": lambda: patch.object(Transaction, "is_exhausted", False),
    "ends rotate no producer ids": _ends_rotate_no_producer_ids,
    "appends are not verified": lambda: patch.object(
        ProduceVerification, "verify", lambda *_: False
    ),
}

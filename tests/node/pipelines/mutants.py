"""Rules of transactions and groups taken out of a node, one at a time: some seed finds each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from unittest.mock import patch

from kafkawire.broker.groups.consumer_groups.group import ConsumerGroup
from kafkawire.broker.groups.coordinator import Coordinator
from kafkawire.broker.groups.streams_groups.reconciliation import Reconciliation
from kafkawire.broker.handlers import offset_fetch
from kafkawire.broker.transactions.offsets import TransactionalOffsets
from kafkawire.node.broker.replica_log import StoredReplicaLog
from kafkawire.protocol import ErrorCode
from kafkawire.storage.unified_log import UnifiedLog
from kafkawire.transactions.coordinator import TransactionCoordinator

Patch = Any


def _shows_what_is_not_committed() -> Patch:
    end = property(lambda log: log.high_watermark)
    return patch.object(UnifiedLog, "last_stable_offset", end)


def _forgets_prepared_transactions() -> Patch:
    """Write no markers of the transactions that a former coordinator has prepared."""
    original = TransactionCoordinator.committed

    def committed(self: TransactionCoordinator, offset: int) -> Any:
        if self._loaded is not None and self._loaded <= offset:
            self._loaded = None
        return original(self, offset)

    return patch.object(TransactionCoordinator, "committed", committed)


def _commits_offsets_of_aborted_transactions() -> Patch:
    original = Coordinator.end_transaction

    def end_transaction(self: Coordinator, producer_id: int, _committed: bool) -> None:
        original(self, producer_id, True)

    return patch.object(Coordinator, "end_transaction", end_transaction)


def _requires_no_stable_offsets() -> Patch:
    """Fetch offsets although transactions may replace them."""
    return patch.object(offset_fetch, "_unstable", lambda *_: ())


def _classic_members_stay() -> Patch:
    """Keep members of the classic protocol in a consumer group that send nothing any more."""
    original = ConsumerGroup.remove

    def advance(self: ConsumerGroup, topics: Any, now: float) -> None:
        while (due := self.deadlines.pop_due(now)) is not None:
            subscription = self.subscriptions.get(due.member_id)
            if subscription is not None and subscription.classic is None:
                original(self, (due.member_id,), topics)

    return patch.object(ConsumerGroup, "advance", advance)


MUTANTS: Final[dict[str, Callable[[], Patch]]] = {
    "shows what is not committed": _shows_what_is_not_committed,
    "lists no aborted transactions": lambda: patch.object(
        StoredReplicaLog, "aborted_transactions", lambda *_: []
    ),
    "anybody commits in transactions": lambda: patch.object(
        TransactionalOffsets, "_error", lambda *_: ErrorCode.NONE
    ),
    "forgets prepared transactions": _forgets_prepared_transactions,
    "commits offsets of aborted transactions": _commits_offsets_of_aborted_transactions,
    "transactions do not expire": lambda: patch.object(
        TransactionCoordinator, "_abort_expired", lambda *_: []
    ),
    "require_stable is ignored": _requires_no_stable_offsets,
    "classic members stay": _classic_members_stay,
    "active tasks are not released first": lambda: patch.object(
        Reconciliation, "_active_is_free", lambda *_: True
    ),
}

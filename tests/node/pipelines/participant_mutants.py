"""Rules of those who take part in transactions, taken out one at a time (KIP-98, 890, 447).

Leaders of partitions add them to transactions; group coordinators keep offsets until a marker
comes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from unittest.mock import patch

from kafkawire.broker.groups.coordinator import Coordinator
from kafkawire.broker.groups.coordinators import Coordinators
from kafkawire.broker.transactions import verification

Patch = Any


def _only_verifies_what_it_should_add() -> Patch:
    original = verification._message

    def message(claim: verification.Claim, partitions: Any) -> Any:
        return original(claim._replace(adds=False), partitions)

    return patch.object(verification, "_message", message)


def _offsets_do_not_wait() -> Patch:
    """Commit offsets before their transaction has ended."""
    original = Coordinator.commit_transactional

    def commit(self: Coordinator, producer: Any, group_id: str, offsets: Any, now: float) -> None:
        original(self, producer, group_id, offsets, now)
        self.end_transaction(producer[0], True)

    return patch.object(Coordinator, "commit_transactional", commit)


MUTANTS: Final[dict[str, Callable[[], Patch]]] = {
    "offsets get no markers": lambda: patch.object(
        Coordinators, "end_transaction", lambda *_: None
    ),
    "only verifies what it should add": _only_verifies_what_it_should_add,
    "offsets do not wait": _offsets_do_not_wait,
}

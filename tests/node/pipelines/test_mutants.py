"""The mutants of pipelines, each with a seed of the simulation of a cluster that finds it."""

from __future__ import annotations

from typing import Final

import pytest

from kafkawire.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from kafkawire.primitives import Message

from ..scenario import Composition
from ..simulating import first_violation
from . import workers
from .mutants import MUTANTS as PIPELINES
from .simulation import with_pipeline
from .transaction_mutants import MUTANTS as TRANSACTIONS

RAFT, IN_MEMORY = Composition.RAFT, Composition.IN_MEMORY
MUTANTS: Final = {**PIPELINES, **TRANSACTIONS}
FOUND_BY: Final[dict[str, tuple[int, Composition]]] = {
    "shows what is not committed": (0, RAFT),
    "lists no aborted transactions": (0, RAFT),
    "anybody commits in transactions": (86, RAFT),
    "forgets prepared transactions": (4, RAFT),
    "commits offsets of aborted transactions": (0, RAFT),
    "transactions do not expire": (86, RAFT),
    "require_stable is ignored": (0, RAFT),
    "classic members stay": (129, RAFT),
    "active tasks are not released first": (43, RAFT),
    "epochs are not bumped": (0, RAFT),
    "transactions share an epoch": (0, RAFT),
    "fences have no epoch": (0, RAFT),
    "zombies end transactions": (0, IN_MEMORY),
    "zombies add partitions": (0, RAFT),
    "markers always commit": (0, RAFT),
}
"""Mutant -> a seed that finds it."""
STALLED: Final[dict[str, type[Message]]] = {
    "anybody commits in transactions": TxnOffsetCommitRequest,
    "transactions do not expire": TxnOffsetCommitRequest,
}
"""Mutant -> before what all workers that are taken for dead stand still in its run."""


def test_every_mutant_has_a_seed() -> None:
    assert FOUND_BY.keys() == MUTANTS.keys()


@pytest.mark.parametrize("name", FOUND_BY)
def test_a_seed_finds_the_mutant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in STALLED:
        monkeypatch.setattr(workers, "STALLS", {STALLED[name]: 1})
    with MUTANTS[name]():
        assert first_violation(with_pipeline(*FOUND_BY[name])) is not None

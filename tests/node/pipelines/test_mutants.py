"""The mutants of pipelines, each with a seed of the simulation of a cluster that finds it."""

from __future__ import annotations

from typing import Final

import pytest

from ..scenario import Composition
from ..simulating import first_violation
from .conditions import ENDS_SOON, brief, under
from .ending_mutants import MUTANTS as ENDINGS
from .mutants import MUTANTS as PIPELINES
from .participant_mutants import MUTANTS as PARTICIPANTS
from .simulation import with_pipeline
from .transaction_mutants import MUTANTS as TRANSACTIONS

RAFT, IN_MEMORY = Composition.RAFT, Composition.IN_MEMORY
KILLED: Final = "coordinators are killed"
GROUPS_KILLED: Final = "group coordinators are killed"
LOST: Final = "markers are lost"
LAST_EPOCHS: Final = "last epochs come soon"
STILL: Final = "workers stand still before TxnOffsetCommit"
MUTANTS: Final = {**PIPELINES, **TRANSACTIONS, **PARTICIPANTS, **ENDINGS}
FOUND_BY: Final[dict[str, tuple[int, Composition]]] = {
    "require_stable is ignored": (0, RAFT),
    "classic members stay": (129, RAFT),
    "active tasks are not released first": (43, RAFT),
    "epochs are not bumped": (0, RAFT),
    "zombies add partitions": (0, RAFT),
}
"""Mutant -> a seed that finds it."""
BRIEFLY: Final[dict[str, tuple[int, Composition, tuple[str, ...]]]] = {
    "responds before records are committed": (1, RAFT, (KILLED,)),
    "transactions begin before markers": (0, IN_MEMORY, (KILLED,)),
    "producers begin before markers": (0, IN_MEMORY, ()),
    "fenced producers begin anew": (0, RAFT, ("producers name their epochs",)),
    "ongoing transactions expire": (0, IN_MEMORY, ("transactional ids expire",)),
    "added partitions replace the others": (0, IN_MEMORY, ()),
    "transactions load without partitions": (0, IN_MEMORY, (KILLED,)),
    "offsets get no markers": (0, IN_MEMORY, ()),
    "only verifies what it should add": (0, IN_MEMORY, ()),
    "offsets do not wait": (0, RAFT, ()),
    "pending offsets are not loaded": (8, RAFT, (GROUPS_KILLED,)),
    "loaded offsets are committed": (3, RAFT, (GROUPS_KILLED,)),
    "loaded markers always commit": (3, RAFT, (GROUPS_KILLED,)),
    "markers are sent once": (0, IN_MEMORY, (LOST,)),
    "markers need no response": (0, IN_MEMORY, (LOST,)),
    "one marker completes a transaction": (0, IN_MEMORY, (LOST,)),
    "late ends end the next transaction": (0, IN_MEMORY, ("ends arrive again",)),
    "epochs are never used up": (0, IN_MEMORY, (LAST_EPOCHS,)),
    "ends rotate no producer ids": (0, IN_MEMORY, (LAST_EPOCHS,)),
    "appends are not verified": (0, IN_MEMORY, ()),
    "shows what is not committed": (0, IN_MEMORY, ()),
    "lists no aborted transactions": (0, IN_MEMORY, ()),
    "anybody commits in transactions": (1, RAFT, (KILLED, STILL)),
    "forgets prepared transactions": (0, IN_MEMORY, (KILLED,)),
    "commits offsets of aborted transactions": (0, RAFT, ()),
    "transactions do not expire": (3, RAFT, (GROUPS_KILLED, STILL)),
    "transactions share an epoch": (0, IN_MEMORY, ()),
    "fences have no epoch": (0, RAFT, ()),
    "zombies end transactions": (0, RAFT, ()),
    "markers always commit": (0, IN_MEMORY, ()),
}
"""Mutant -> a seed of a brief run that finds it, and the conditions of that run."""


def test_every_mutant_has_a_seed() -> None:
    assert FOUND_BY.keys() | BRIEFLY.keys() == MUTANTS.keys()


@pytest.mark.parametrize("name", FOUND_BY)
def test_a_seed_finds_the_mutant(name: str) -> None:
    with MUTANTS[name]():
        assert first_violation(with_pipeline(*FOUND_BY[name])) is not None


@pytest.mark.parametrize("name", BRIEFLY)
def test_a_brief_run_finds_the_mutant(name: str) -> None:
    seed, composition, conditions = BRIEFLY[name]
    with under(ENDS_SOON, *conditions), MUTANTS[name]():
        assert first_violation(brief(seed, composition)) is not None


@pytest.mark.parametrize("run", sorted(set(BRIEFLY.values()), key=str), ids=str)
def test_a_brief_run_finds_nothing_else(run: tuple[int, Composition, tuple[str, ...]]) -> None:
    seed, composition, conditions = run
    with under(ENDS_SOON, *conditions):
        assert first_violation(brief(seed, composition)) is None

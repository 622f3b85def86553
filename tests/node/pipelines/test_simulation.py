"""Pipelines of a whole cluster with faults in virtual time.

`test_simulation_seeds.py` runs more seeds: one in 41 has a pipeline.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

import pytest

from tests.conftest import ROOT

from ..scenario import GROUPS_EVERY, Composition
from .checker import Outcome
from .group_protocols import WORKERS
from .simulation import PipelineSimulation, with_pipeline

SEEDS: Final = [2 + number * GROUPS_EVERY for number in range(len(WORKERS))]
"""One for each protocol of groups."""
REPLACED: Final = 0
"""A seed with such a worker."""
REPLAYED: Final = """
from tests.node.pipelines.simulation import PipelineSimulation, with_pipeline
print(PipelineSimulation(with_pipeline(2)).simulate())
"""


@pytest.mark.parametrize("composition", Composition, ids=lambda each: each.name)
def test_what_the_simulation_does_happens(composition: Composition) -> None:
    """Transactions are committed and aborted, with each protocol of groups."""
    outcomes: list[Outcome] = []
    for seed in SEEDS:
        simulation = PipelineSimulation(with_pipeline(seed, composition))
        simulation.simulate()
        checker = simulation.pipeline.checker
        outcomes += [each.outcome for each in checker.transactions.values()]
        assert len(checker.visible) > 50
    assert outcomes.count(Outcome.COMMITTED) > 20
    assert outcomes.count(Outcome.ABORTED) > 3


def test_a_worker_that_is_replaced_commits_nothing() -> None:
    """It stands still before EndTxn until its successor is in a transaction."""
    simulation = PipelineSimulation(with_pipeline(REPLACED, Composition.IN_MEMORY))
    simulation.simulate()
    assert simulation.pipeline.counts["commit PRODUCER_FENCED"]


def test_the_seeds_have_all_protocols() -> None:
    workers = [PipelineSimulation(with_pipeline(seed)).worker for seed in SEEDS]
    assert workers == list(WORKERS)


def test_a_seed_plays_again_in_another_process() -> None:
    """Whatever its hashes are."""

    def replayed(hash_seed: str) -> str:
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", REPLAYED],
            check=True,
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment,
        )
        return done.stdout

    assert replayed("1") == replayed("2") != ""

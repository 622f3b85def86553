"""Pipelines of a whole cluster with faults in virtual time.

`test_simulation_seeds.py` runs more seeds: one in 41 has a pipeline.
"""

from __future__ import annotations

from typing import Final

import pytest

from ..scenario import GROUPS_EVERY, Composition
from .checker import Outcome
from .group_protocols import WORKERS
from .simulation import PipelineSimulation, with_pipeline

SEEDS: Final = [2 + number * GROUPS_EVERY for number in range(len(WORKERS))]
"""One for each protocol of groups."""


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


def test_the_seeds_have_all_protocols() -> None:
    workers = [PipelineSimulation(with_pipeline(seed)).worker for seed in SEEDS]
    assert workers == list(WORKERS)

"""Groups of a whole cluster with faults in virtual time.

`test_simulation_seeds.py` runs more seeds: one in 41 has groups.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

import pytest

from tests.conftest import ROOT

from ..scenario import Composition
from .simulation import GroupSimulation, with_groups

REPLAYED: Final = """
from tests.node.groups.simulation import GroupSimulation, with_groups
from tests.node.scenario import Composition
for seed in (41, 42):
    print(seed, GroupSimulation(with_groups(seed, Composition.IN_MEMORY)).simulate())
"""


@pytest.mark.parametrize("composition", Composition, ids=lambda each: each.name)
def test_what_the_simulation_does_happens(composition: Composition) -> None:
    """Records are accepted, released and rejected, also too late; positions are committed."""
    counts: dict[str, int] = {}
    for seed in (2, 5):
        simulation = GroupSimulation(with_groups(seed, composition))
        simulation.simulate()
        assert simulation.sharing.checker.accepted > 50
        for of_group in (simulation.sharing.counts, simulation.consuming.counts):
            for what, count in of_group.items():
                counts[what] = counts.get(what, 0) + count
    assert counts["accept NONE"] > 100
    assert counts["accept INVALID_RECORD_STATE"]
    assert counts["release NONE"]
    assert counts["reject NONE"]
    assert counts["commit NONE"] > 50


def test_a_seed_plays_again_in_another_process() -> None:
    """Whatever its hashes are."""

    def replayed(hash_seed: str) -> str:
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", REPLAYED]
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment
        )
        return done.stdout

    assert replayed("1") == replayed("2") != ""

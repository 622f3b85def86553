"""Runs seeds of the simulation; a failing one is shrunk.

python -m tests.node.simulating 17
python -m tests.node.simulating 17 "in memory"
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

from tests.fuzzing import fewest

from .groups.simulation import GroupSimulation
from .pipelines.simulation import PipelineSimulation
from .scenario import Composition, Fault, Scenario, Serving, draw
from .simulation import Simulation

Faults = tuple[Fault, ...]
SIMULATIONS: Final[dict[Serving, type[Simulation]]] = {
    Serving.NOTHING: Simulation,
    Serving.GROUPS: GroupSimulation,
    Serving.PIPELINE: PipelineSimulation,
}


def simulation_of(scenario: Scenario) -> Simulation:
    """Return the run of a scenario."""
    return SIMULATIONS[scenario.serving](scenario)


def first_violation(scenario: Scenario) -> Exception | None:
    """Return what a scenario violates, if anything."""
    try:
        simulation_of(scenario).simulate()
    except Exception as error:  # noqa: BLE001 - a crash of the machine is found, too
        return error
    return None


def shrunk(scenario: Scenario, fails: Callable[[Faults], bool] | None = None) -> Scenario:
    """Leave out faults as long as the scenario fails."""

    def violates(faults: Faults) -> bool:
        return first_violation(scenario._replace(faults=faults)) is not None

    return scenario._replace(faults=fewest(scenario.faults, fails or violates))


def check(seed: int, composition: Composition = Composition.RAFT) -> None:
    """Run a seed; a failure says how to replay it, and the fewest faults with which it fails."""
    scenario = draw(seed, composition)
    error = first_violation(scenario)
    if error is None:
        return
    faults = "\n".join(str(fault) for fault in shrunk(scenario).faults) or "no fault"
    replay = f'python -m tests.node.simulating {seed} "{composition.value}"'
    error.add_note(f"seed {seed}: {replay}; it fails with\n{faults}")
    raise error


if __name__ == "__main__":
    check(int(sys.argv[1]), Composition(sys.argv[2]) if len(sys.argv) > 2 else Composition.RAFT)

"""Whole clusters with faults in virtual time: a few seeds; `make simulation` runs more."""

from __future__ import annotations

import pytest

from .scenario import Composition, draw
from .simulating import check, first_violation, shrunk
from .simulation import Simulation

SEEDS = (2, 13, 17)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("composition", Composition, ids=lambda each: each.name)
def test_promises_are_kept(composition: Composition, seed: int) -> None:
    check(seed, composition)


def test_a_seed_gives_the_same_trace_twice() -> None:
    traces = [Simulation(draw(5)).simulate() for _ in range(2)]
    assert traces[0] == traces[1]


@pytest.mark.parametrize("composition", Composition, ids=lambda each: each.name)
def test_what_the_simulation_does_happens(composition: Composition) -> None:
    """Records are acknowledged, refused and consumed; nodes stop and start; leaders change."""
    simulation = Simulation(draw(25, composition))
    simulation.simulate()
    counts, trace = simulation.workload.counts, "\n".join(simulation.trace)
    assert counts["produce NONE"] > 60
    assert counts["fetch NONE"] > 60
    assert " is killed" in trace or " stopped: " in trace
    assert trace.count(" starts") > len(simulation.processes)


def test_a_failing_seed_is_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the one fault that matters here."""
    scenario = draw(25)
    culprit = scenario.faults[2]

    def fails(faults: object) -> bool:
        assert isinstance(faults, tuple)
        return culprit in faults

    assert shrunk(scenario, fails).faults == (culprit,)
    monkeypatch.setattr(Simulation, "check_end", lambda _self: 1 / 0)
    assert isinstance(first_violation(scenario._replace(faults=())), ZeroDivisionError)

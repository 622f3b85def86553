"""Runs seeds, and shrinks those that fail.

python -m tests.controller.simulation 0 2000      seeds 0 to 1999
python -m tests.controller.simulation 17          the trace of one seed, shrunk if it fails
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from hashlib import sha256
from random import Random

from .actions import ACTIONS, Clients
from .invariants import Invariants
from .simulated import SimulatedCluster, Violation

STEPS = 120
EVERY = 30
"""Steps between checks that read the whole log."""


def run(seed: int, steps: Sequence[int] = range(STEPS)) -> list[str]:
    """Run the steps of a seed and return the trace. Raises Violation, which has it, too."""
    simulated = SimulatedCluster(seed)
    clients = Clients(simulated)
    invariants = Invariants(simulated)
    try:
        simulated.elect(0, 0)
        for count, step in enumerate(steps, 1):
            rng = Random(f"{seed} {step}")
            [action] = rng.choices(list(ACTIONS), list(ACTIONS.values()))
            simulated.trace.append(f"step {step} {action.__name__} at {simulated.now:.3f}")
            action(clients, rng)
            if count % EVERY:
                invariants.check()
            else:
                invariants.check_all()
        invariants.check_all()
    except Violation as violation:
        violation.trace = simulated.trace
        raise
    except Exception as error:
        raise Violation(
            f"no {type(error).__name__}", f"seed {seed}: {error}", simulated.trace
        ) from error
    return simulated.trace


def failure(seed: int, steps: Sequence[int] = range(STEPS)) -> Violation | None:
    """Return the violation of a run, None for none."""
    try:
        run(seed, steps)
    except Violation as violation:
        return violation
    return None


def shrink(seed: int, rule: str) -> list[int]:
    """Find fewer steps of a seed that break the same rule."""
    steps = list(range(STEPS))
    size = len(steps) // 2
    while size:
        at = 0
        while at < len(steps):
            fewer = steps[:at] + steps[at + size :]
            found = failure(seed, fewer)
            if found is not None and found.rule == rule:
                steps = fewer
            else:
                at += size
        size //= 2
    return steps


def digest(trace: Sequence[str]) -> str:
    """Return what two equal runs have in common."""
    return sha256("\n".join(trace).encode()).hexdigest()


def main(arguments: Sequence[str]) -> int:
    """Run seeds; return 1 if one fails."""
    first = int(arguments[0])
    if len(arguments) == 1:
        found = failure(first)
        if found is None:
            print("\n".join(run(first)))
            return 0
        steps = shrink(first, found.rule)
        print(f"seed {first}: {failure(first, steps)}\nsteps {steps}")
        return 1
    failed = 0
    for seed in range(first, int(arguments[1])):
        found = failure(seed)
        if found is not None:
            failed += 1
            print(f"seed {seed}: {str(found)[:300]}", flush=True)
    print(f"{int(arguments[1]) - first} seeds, {failed} failed")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

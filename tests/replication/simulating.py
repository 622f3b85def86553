"""Runs seeds of the simulation; a failing one is shrunk."""

from __future__ import annotations

from .clients import Cluster
from .plan import Plan, draw, shrunk


def first_violation(plan: Plan) -> Exception | None:
    """Return what a plan violates, if anything."""
    try:
        Cluster(plan).simulate()
    except Exception as error:  # noqa: BLE001 - a crash of the machine is found, too
        return error
    return None


def check(seed: int) -> None:
    """Run a seed; a failure says how to replay it, and the fewest faults with which it fails."""
    plan = draw(seed)
    error = first_violation(plan)
    if error is None:
        return
    fewest = shrunk(plan, lambda fewer: first_violation(fewer) is not None)
    faults = "\n".join(str(fault) for fault in fewest.faults) or "no fault"
    replay = f"seed {seed}: replay with KAFKAWIRE_SEED={seed}"
    error.add_note(f"{replay}; it fails with {fewest.setup} and\n{faults}")
    raise error

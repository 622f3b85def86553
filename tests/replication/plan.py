"""What goes wrong in a simulation: a list of faults, drawn from the seed before it starts.

A failing seed is shrunk by leaving out faults as long as it still fails.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, NamedTuple

from tests.fuzzing import fewest


class Fault(NamedTuple):
    """Something that happens at a time. broker and other: what it happens to."""

    at: float
    kind: str
    broker: int
    other: int = 0
    seconds: float = 0.0


class Setup(NamedTuple):
    """A cluster. loss, duplicates and slow: of 1000 messages."""

    brokers: int
    partitions: int
    elr: bool
    rack_aware: bool
    transactions: bool
    loss: int
    duplicates: int
    slow: int = 30


class Plan(NamedTuple):
    """A seed's cluster and faults."""

    seed: int
    setup: Setup
    faults: tuple[Fault, ...]


KINDS: Final = {
    "crash": 5,
    "crash losing unflushed bytes": 4,
    "isolate": 4,
    "block one way": 5,
    "pause": 3,
    "clock jump": 2,
    "elect": 10,
    "reassign": 3,
    "delete records": 2,
    "slow link": 3,
}
"""Kind -> its weight."""
FAULTY: Final = 22.0
"""Seconds of faults; after them everything heals."""


def draw(seed: int) -> Plan:
    """Draw a plan."""
    rng = random.Random(f"plan {seed}")
    brokers = rng.choice((3, 3, 3, 4, 5))
    setup = Setup(
        brokers,
        rng.choice((1, 1, 2)),
        elr=rng.random() < 0.6,
        rack_aware=rng.random() < 0.4,
        transactions=rng.random() < 0.4,
        loss=rng.choice((0, 5, 30)),
        duplicates=rng.choice((0, 20, 60)),
    )
    kinds, weights = list(KINDS), list(KINDS.values())
    faults = [
        Fault(
            round(rng.uniform(2.0, FAULTY), 3),
            rng.choices(kinds, weights)[0],
            rng.randrange(brokers),
            rng.randrange(-1, brokers),
            round(rng.uniform(0.3, 8.0), 3),
        )
        for _ in range(rng.randint(4, 16))
    ]
    if seed % 4 == 3:  # many elections, among late messages
        setup = setup._replace(brokers=3, partitions=1, slow=150, loss=0)
        faults = [fault for fault in faults if max(fault.broker, fault.other) < 3]
        times = [round(rng.uniform(2.0, FAULTY), 3) for _ in range(30)]
        faults += [Fault(at, "elect", rng.randrange(3)) for at in times]
    return Plan(seed, setup, tuple(sorted(faults)))


def shrunk(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    """Leave out faults, halves first, as long as the plan fails."""
    faults = fewest(plan.faults, lambda fewer: fails(plan._replace(faults=fewer)))
    return plan._replace(faults=faults)

"""Scenarios of the simulation: what happens to a quorum, from a seed; shrinking of failing ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, NamedTuple

KINDS: Final = {
    "append": 24,
    "crash": 6,
    "tear": 3,
    "isolate": 4,
    "cut": 4,
    "noise": 2,
    "jump": 1,
    "stampede": 2,
    "amnesia": 3,
    "snapshot": 3,
    "resign": 1,
    "add": 2,
    "remove": 2,
}
"""How often each kind of happening is drawn."""
STORM: Final = {"append": 10, "stampede": 10, "amnesia": 20, "crash": 8, "noise": 4, "resign": 4}
"""The same for every fourth scenario: elections that overlap, and voters that restart in them."""
MEMBERSHIP: Final = {**KINDS, "append": 12, "snapshot": 6, "add": 12, "remove": 12}
"""The same for every fourth scenario: voters that change."""
STATIC: Final = frozenset(KINDS) - {"add", "remove"}
DURATION: Final = 40.0


class Happening(NamedTuple):
    """Something that happens to the quorum.

    other: the other end of a link, batches that survive a crash, effects before a tear.
    """

    at: float
    kind: str
    node: int
    other: int
    seconds: float


class Scenario(NamedTuple):
    """All of a run. dynamic: kraft.version 1, voters can change."""

    seed: int
    voters: int
    nodes: int
    dynamic: bool
    duration: float
    happenings: tuple[Happening, ...]


def scenario(seed: int) -> Scenario:
    """Draw a scenario."""
    rng = random.Random(f"scenario {seed}")
    voters = rng.choice([1, 3, 3, 3, 5])
    dynamic = rng.random() < 0.5 or seed % 4 == 1
    nodes = voters + rng.choice([0, 1, 2] if not dynamic else [1, 2])
    drawn = (KINDS, MEMBERSHIP, KINDS, STORM)[seed % 4]
    kinds = [kind for kind in drawn if dynamic or kind in STATIC]
    weights = [drawn[kind] for kind in kinds]
    count = rng.randint(20, 60)
    times = sorted(rng.uniform(2.0, DURATION - 1.0) for _ in range(count))
    happenings = []
    for at in times:
        kind = rng.choices(kinds, weights)[0]
        node, other = rng.randint(1, nodes), rng.randint(1, nodes)
        if kind in ("crash", "tear", "amnesia"):
            other = rng.randint(0, 3)
        seconds = rng.choice([0.02, 0.2, 1.0, 3.0, 5.0, 8.0])
        happenings.append(Happening(round(at, 3), kind, node, other, seconds))
        if kind in ("isolate", "crash") and rng.random() < 0.5:
            happenings.append(Happening(round(at + 0.01, 3), "append", node, other, 0.0))
    return Scenario(seed, voters, nodes, dynamic, DURATION, tuple(happenings))


def shrink(failing: Scenario, fails: Callable[[Scenario], bool], attempts: int = 200) -> Scenario:
    """Return a scenario that still fails, with fewer happenings and less time.

    attempts: how many runs it may take.
    """
    best = failing
    size = max(len(best.happenings) // 2, 1)
    while attempts > 0:
        at, shrunk = 0, False
        while at < len(best.happenings) and attempts > 0:
            left = best.happenings[:at] + best.happenings[at + size :]
            tried = best._replace(happenings=left)
            attempts -= 1
            if fails(tried):
                best, shrunk = tried, True
            else:
                at += size
        if size == 1 and not shrunk:
            break
        size = max(size // 2, 1)
    for part in (0.25, 0.5, 0.75):
        end = max([best.duration * part, *(each.at + 0.1 for each in best.happenings)])
        tried = best._replace(duration=end)
        if end < best.duration and fails(tried):
            return tried
    return best

"""Clusters with faults in virtual time: a few seeds; `make simulation` runs more."""

from __future__ import annotations

import hashlib

import pytest

from .clients import Cluster
from .plan import Plan, draw, shrunk
from .simulating import check, first_violation

SEEDS = (1, 3, 8, 11, 14, 22)


@pytest.mark.parametrize("seed", SEEDS)
def test_promises_are_kept(seed: int) -> None:
    check(seed)


def test_a_seed_replays_to_the_byte() -> None:
    def digest() -> str:
        cluster = Cluster(draw(5))
        cluster.simulate()
        assert len(cluster.trace) > 50
        return hashlib.sha256("\n".join(cluster.trace).encode()).hexdigest()

    assert digest() == digest()


def test_what_the_simulation_does_happens() -> None:
    """Acknowledged and refused appends, elections, reads of followers, transactions."""
    counts, trace = [], []
    for seed in (1, 8):
        cluster = Cluster(draw(seed))
        cluster.simulate()
        counts.append(cluster.counts)
        trace += cluster.trace
    total = counts[0] + counts[1]
    assert total["produce -1 NONE"] > 40
    assert total["fetch NONE"] > 40
    assert total["latest NONE"] > 10
    assert any("PendingShrink" in line for line in trace) or any(
        "PendingExpand" in line for line in trace
    )


def test_a_failing_plan_is_shrunk() -> None:
    """To the one fault that matters here."""
    plan = draw(5)
    culprit = plan.faults[2]

    def fails(some: Plan) -> bool:
        return culprit in some.faults

    assert shrunk(plan, fails).faults == (culprit,)


def test_a_violation_names_the_seed_and_the_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    from kafkawire.replication import Partition

    monkeypatch.setattr(Partition, "must_wait_for", lambda *_: False)
    found = first_violation(draw(0))
    assert found is not None
    with pytest.raises(AssertionError) as raised:
        check(0)
    (note,) = raised.value.__notes__
    assert note.startswith("seed 0: replay with KAFKAWIRE_SEED=0; it fails with ")

"""The simulated quorum holds its invariants, and finds rules that are taken out."""

from __future__ import annotations

from itertools import count

import pytest

from .mutants import MUTANTS, mutated
from .simulated import Violation
from .simulation import STEPS, digest, failure, run, shrink

FEW = 40
SEEN = (13, 25, 50)
ENOUGH = 60
"""Seeds of which one finds each mutant."""


@pytest.mark.parametrize("seed", range(FEW))
def test_invariants_hold(seed: int) -> None:
    run(seed)


def test_a_seed_replays_to_the_byte() -> None:
    assert digest(run(7)) == digest(run(7))
    assert digest(run(7)) != digest(run(8))


def test_runs_do_something() -> None:
    """The log of some seeds has every kind of change."""
    text = "\n".join(line for seed in SEEN for line in run(seed))
    for what in (
        "RegisterBrokerRecord",
        "in_controlled_shutdown=1",
        "fenced=-1",
        "fenced=1",
        "adding_replicas=[",
        "eligible_leader_replicas=[",
        "RemoveTopicRecord",
        "ProducerIdsRecord",
        "UnregisterBrokerRecord",
        "should_shut_down=True",
        "NEW_LEADER_ELECTED",
        "INELIGIBLE_REPLICA",
        "NOT_CONTROLLER",
        "BeginTransactionRecord(name='CreateTopics'",
        "AbortTransactionRecord",
        "error_code=<ErrorCode.DUPLICATE_BROKER_REGISTRATION",
    ):
        assert what in text, what


@pytest.mark.parametrize("name", MUTANTS)
def test_some_seed_finds_the_mutant(name: str) -> None:
    with mutated(name):
        assert any(failure(seed) is not None for seed in range(ENOUGH))


def test_a_failing_seed_is_shrunk_and_fails_again() -> None:
    name = "nobody is elected when a broker returns"
    with mutated(name):
        seed, found = next(
            (seed, found) for seed in count() if (found := failure(seed)) is not None
        )
        steps = shrink(seed, found.rule)
        again = failure(seed, steps)
        assert again is not None
        assert again.rule == found.rule
        assert len(steps) < STEPS / 3
        second = failure(seed, steps)
        assert second is not None
        assert digest(again.trace) == digest(second.trace)
    assert failure(seed, steps) is None


def test_a_violation_names_its_rule() -> None:
    with mutated("leader epoch not compared"), pytest.raises(Violation) as caught:
        run(6)
    assert caught.value.rule == "leader epochs are compared"
    assert caught.value.trace

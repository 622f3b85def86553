"""Each rule that is removed is found by a seed of the simulation."""

from __future__ import annotations

from typing import Final

import pytest

from .mutants import MUTANTS
from .plan import draw
from .simulating import first_violation

FOUND_BY: Final[dict[str, int]] = {
    "divergence_is_not_looked_for": 1,
    "truncation_to_the_high_watermark": 15,
    "truncation_to_the_end_of_the_leaders_epoch": 27,
    "no_truncation": 1,
    "high_watermark_at_the_leaders_end": 0,
    "high_watermark_of_the_fastest": 0,
    "shrunk_isr_counts_at_once": 7,
    "isr_is_not_consulted": 1,
    "isr_expands_before_the_follower_caught_up": 6,
    "isr_never_expands": 0,
    "end_offset_of_a_new_leader_goes_back": 3,
    "appends_are_acknowledged_by_the_next_leader": 6,
    "epochs_survive_truncation": 3,
    "open_transactions_are_readable": 1,
    "aborted_transactions_are_not_listed": 1,
    "high_watermark_is_not_taken_over": 0,
    "follower_takes_its_log_end_for_the_high_watermark": 2,
    "pending_isr_is_not_counted": 12,
    "isr_changes_without_the_controller": 0,
    "consumers_read_up_to_the_log_end": 0,
    "high_watermark_grows_below_min_isr": 138,
}
"""Mutant -> the first seed that finds it."""


def test_every_mutant_has_a_seed() -> None:
    assert FOUND_BY.keys() == MUTANTS.keys()
    assert len(FOUND_BY) >= 15


@pytest.mark.parametrize("name", FOUND_BY)
def test_a_seed_finds_the_mutant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = draw(FOUND_BY[name])
    MUTANTS[name](monkeypatch)
    assert first_violation(plan) is not None

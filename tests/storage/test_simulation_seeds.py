"""Hundreds of seeds of the simulation of crashes."""

from __future__ import annotations

from .moving import MovingSimulation
from .simulation import crashes


def test_many_crashes() -> None:
    assert crashes(range(1000, 1300)) > 3000


def test_many_moves() -> None:
    assert crashes(range(5000, 5150), MovingSimulation) > 1500

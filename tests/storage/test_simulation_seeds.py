"""Hundreds of seeds of the simulation of crashes."""

from __future__ import annotations

from .simulation import crashes


def test_many_crashes() -> None:
    assert crashes(range(1000, 1300)) > 3000

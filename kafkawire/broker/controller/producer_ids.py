"""Assigns producer ids (KIP-98): each of them once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

BLOCK: Final = 1000
"""Producer ids per block; the rest of a block is lost with its broker, as in Kafka."""


class ProducerIds:
    """Assigns producer ids in blocks.

    reserve: called with (next id, now) before a block is assigned, to persist it.
    """

    def __init__(self, reserve: Callable[[int, float], None]) -> None:
        self._reserve = reserve
        self._next = self._reserved = BLOCK

    def resume_from(self, next_producer_id: int) -> None:
        """Continue after the ids that are assigned already."""
        self._next = self._reserved = next_producer_id

    def new(self, now: float) -> int:
        """Assign a new producer id."""
        if self._next == self._reserved:
            self._reserved += BLOCK
            self._reserve(self._reserved, now)
        self._next += 1
        return self._next - 1

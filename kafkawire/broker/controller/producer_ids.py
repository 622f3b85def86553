"""Assigns producer ids and epochs (KIP-98, KIP-360).

Law: a producer id is assigned once; each new producer of a transactional id gets a higher epoch,
which fences those before it. Beyond `most` transactional ids the least recently used one expires,
as in Kafka after `transactional.id.expiration.ms`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

from ...protocol import ErrorCode
from ..bounds import DEFAULT_BOUNDS

LAST_EPOCH: Final = 2**15 - 1
NONE: Final = -1
BLOCK: Final = 1000
"""Producer ids per block; the rest of a block is lost with its broker, as in Kafka."""


class Producer(NamedTuple):
    """A producer id and its epoch."""

    producer_id: int
    producer_epoch: int


class ProducerIds:
    """Assigns producer ids in blocks.

    reserve: called with (next id, now) before a block is assigned, to persist it.
    """

    def __init__(
        self,
        reserve: Callable[[int, float], None],
        most: int = DEFAULT_BOUNDS.transactional_ids,
    ) -> None:
        self._reserve = reserve
        self._most = most
        self._next = self._reserved = BLOCK
        self._transactional: OrderedDict[str, Producer] = OrderedDict()

    def resume_from(self, next_producer_id: int) -> None:
        """Continue after the ids that are assigned already."""
        self._next = self._reserved = next_producer_id

    def new(self, now: float) -> Producer:
        """Assign a new producer id."""
        if self._next == self._reserved:
            self._reserved += BLOCK
            self._reserve(self._reserved, now)
        self._next += 1
        return Producer(self._next - 1, 0)

    def initialise(
        self, transactional_id: str | None, known: Producer, now: float
    ) -> Producer | ErrorCode:
        """Assign a producer id and epoch; `known`: those a transactional producer has."""
        if transactional_id is None:
            return self.new(now)
        current = self._transactional.get(transactional_id)
        if current is None:
            given = self.new(now)
        elif known.producer_id != NONE and known != current:
            return ErrorCode.PRODUCER_FENCED
        else:
            given = self._bumped(current, now)
        self._transactional[transactional_id] = given
        self._transactional.move_to_end(transactional_id)
        if len(self._transactional) > self._most:
            self._transactional.popitem(last=False)
        return given

    def _bumped(self, known: Producer, now: float) -> Producer:
        if known.producer_id == NONE or known.producer_epoch >= LAST_EPOCH - 1:
            return self.new(now)
        return known._replace(producer_epoch=known.producer_epoch + 1)

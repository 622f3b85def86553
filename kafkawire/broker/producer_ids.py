"""Producer ids and epochs (KIP-98, KIP-360).

Law: an id is given once; of a transactional id, a newer producer has a higher epoch than those
before it, which fences them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..protocol import ErrorCode

LAST_EPOCH: Final = 2**15 - 1
NONE: Final = -1


class Producer(NamedTuple):
    """A producer id and its epoch."""

    producer_id: int
    producer_epoch: int


class ProducerIds:
    """Gives them out."""

    def __init__(self, first: int = 1000) -> None:
        self._next = first
        self._transactional: dict[str, Producer] = {}

    def new(self) -> Producer:
        """Give an id that nobody has."""
        self._next += 1
        return Producer(self._next - 1, 0)

    def initialise(self, transactional_id: str | None, known: Producer) -> Producer | ErrorCode:
        """Give a producer its id and epoch; `known` is what a transactional one had before."""
        if transactional_id is None:
            return self.new()
        current = self._transactional.get(transactional_id)
        if current is None:
            given = self.new()
        elif known.producer_id != NONE and known != current:
            return ErrorCode.PRODUCER_FENCED
        else:
            given = self._bumped(current)
        self._transactional[transactional_id] = given
        return given

    def _bumped(self, known: Producer) -> Producer:
        if known.producer_id == NONE or known.producer_epoch >= LAST_EPOCH - 1:
            return self.new()
        return known._replace(producer_epoch=known.producer_epoch + 1)

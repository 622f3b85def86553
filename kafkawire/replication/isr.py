"""The ISR of a partition at its leader: committed, or changed and not yet accepted (KIP-497).

While a change is pending, the maximal ISR counts: whoever the controller may regard as in
sync, before or after the change. The high watermark waits for all of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .states import ISR_TRANSITIONS, IsrState, IsrTrigger

COMMITTED: Final = IsrState.COMMITTED
"""Looked at after each request."""


@dataclass(frozen=True, slots=True)
class Isr:
    """The in-sync replicas. proposed: what was sent to the controller; empty if committed."""

    state: IsrState
    committed: frozenset[int]
    proposed: frozenset[int] = frozenset()

    @property
    def maximal(self) -> frozenset[int]:
        """The replicas that the high watermark waits for."""
        return self.committed | self.proposed if self.proposed else self.committed

    @property
    def is_pending(self) -> bool:
        """Whether the leader waits for the controller."""
        return self.state is not COMMITTED

    def propose(self, trigger: IsrTrigger, proposed: frozenset[int]) -> Isr:
        """Return the ISR with a change that the controller has not accepted yet."""
        return Isr(ISR_TRANSITIONS[self.state, trigger], self.committed, proposed)

    def settle(self, trigger: IsrTrigger, committed: frozenset[int]) -> Isr:
        """Return the committed ISR."""
        return Isr(ISR_TRANSITIONS[self.state, trigger], committed)


def committed_isr(replicas: frozenset[int]) -> Isr:
    """Return the ISR as the metadata has it."""
    return Isr(IsrState.COMMITTED, replicas)

"""Share sessions, one with each leader (KIP-932).

Requests of a session have epochs that follow each other, so one is in flight at a time. Only
ShareFetch opens a session; acknowledgements are sent in one that is open.

    NEW     epoch 0: all partitions to fetch from; no acknowledgements
    OPEN    epoch 1, 2, ...: partitions added and forgotten, acknowledgements
    CLOSED  epoch -1 was sent: the broker releases what this member has acquired

    no response, unknown session, wrong epoch ─▶ NEW
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from .acknowledgements import SharePartition

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
MAX_EPOCH: Final = 0x7FFF_FFFF


class SessionState(Enum):
    """Whether a broker has the session, as far as the client knows."""

    NEW = "New"
    OPEN = "Open"
    CLOSED = "Closed"


S = SessionState

# fmt: off
LEGAL: Final[Mapping[SessionState, frozenset[SessionState]]] = {
    S.NEW:    frozenset({S.OPEN, S.NEW, S.CLOSED}),
    S.OPEN:   frozenset({S.OPEN, S.NEW, S.CLOSED}),
    S.CLOSED: frozenset({S.NEW}),
}
"""State -> the states that may follow it."""
# fmt: on


@dataclass(frozen=True, slots=True)
class SessionChange:
    """What the next ShareFetch has: its epoch, the partitions to add and those to forget."""

    epoch: int
    to_add: tuple[SharePartition, ...]
    to_forget: tuple[SharePartition, ...]


class ShareSession:
    """The share session with one broker. partitions: those that it has."""

    def __init__(self) -> None:
        self.state = S.NEW
        self.epoch = INITIAL_EPOCH
        self.partitions: frozenset[SharePartition] = frozenset()

    @property
    def is_open(self) -> bool:
        """Whether acknowledgements can be sent."""
        return self.state is S.OPEN

    def next_fetch(
        self, wanted: Iterable[SharePartition], acknowledged: Iterable[SharePartition] = ()
    ) -> SessionChange:
        """Return the next fetch of these partitions; `on_response` or `on_lost` must follow.

        acknowledged: the partitions with acknowledgements, perhaps others; a broker adds what a
        ShareFetch names to the session, so those that are not wanted are to be forgotten at once.
        """
        before, self.partitions = self.partitions, frozenset(wanted)
        return SessionChange(
            self.epoch,
            tuple(sorted(self.partitions - before)),
            tuple(sorted(before.union(acknowledged) - self.partitions)),
        )

    def close(self) -> int:
        """Close the session; return the epoch of the request that does so."""
        self._transition(S.CLOSED)
        self._reset()
        return FINAL_EPOCH

    def on_response(self) -> None:
        """Handle a response without an error of the session."""
        self._transition(S.OPEN)
        self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1

    def on_lost(self) -> None:
        """Begin a new session: the broker has none, or may have another epoch."""
        self._transition(S.NEW)
        self._reset()

    def _reset(self) -> None:
        self.epoch = INITIAL_EPOCH
        self.partitions = frozenset()

    def _transition(self, state: SessionState) -> None:
        assert state in LEGAL[self.state], f"from {self.state.value} to {state.value}"
        self.state = state

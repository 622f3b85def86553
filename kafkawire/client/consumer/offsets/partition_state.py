"""The fetch state and position of one assigned partition.

A partition is fetched only in state FETCHING; a seek leads there from every state.

                      ┌─ committed ──────────────────▶ FETCHING ◀── end offset not before it ──┐
    INITIALIZING ─────┤                                │  ▲  │                               │
                      └─ nothing ─▶ AWAIT_RESET ───────│──┘  └─ new leader epoch ─▶ AWAIT_VALIDATION
                                        ▲ out of range ┘                                │
                                        └───────────────── truncated, nothing is known ─┘
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from ..configuration import FROM_LATEST, ResetPolicy
from ..failures import ConsumerError
from ..partitions import NO_EPOCH


class FetchState(Enum):
    """How far the position of a partition is known."""

    INITIALIZING = "Initializing"
    AWAIT_RESET = "AwaitReset"
    AWAIT_VALIDATION = "AwaitValidation"
    FETCHING = "Fetching"


F = FetchState

# fmt: off
LEGAL: Final[Mapping[FetchState, frozenset[FetchState]]] = {
    F.INITIALIZING:     frozenset({F.FETCHING, F.AWAIT_RESET}),
    F.AWAIT_RESET:      frozenset({F.FETCHING, F.AWAIT_RESET}),
    F.AWAIT_VALIDATION: frozenset({F.FETCHING, F.AWAIT_RESET, F.AWAIT_VALIDATION}),
    F.FETCHING:         frozenset({F.FETCHING, F.AWAIT_RESET, F.AWAIT_VALIDATION}),
}
"""State -> the states that may follow it; a seek leads from each of them to FETCHING."""
# fmt: on


class Position(NamedTuple):
    """The next offset to read; leader_epoch: of the record before it, -1 if unknown."""

    offset: int
    leader_epoch: int = NO_EPOCH


@dataclass(slots=True)
class PartitionState:
    """The state of one assigned partition.

    request_serial: the serial of the lookup in flight, 0 for none. failed: the lookup or fetch has
    failed; the next poll retries. checked_epoch, checking_epoch: the leader epochs under which the
    position is valid, and is being validated. hold_until: do not fetch before this time. failures:
    fetches in a row without success, or without a leader.
    """

    fetch_state: FetchState = F.INITIALIZING
    position: Position | None = None
    policy: ResetPolicy = FROM_LATEST
    paused: bool = False
    request_serial: int = 0
    failed: bool = False
    checked_epoch: int = NO_EPOCH
    checking_epoch: int = NO_EPOCH
    hold_until: float = 0.0
    failures: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1


class PartitionWarning(NamedTuple):
    """An error that is retried, of which the user is warned."""

    error: ConsumerError


class PositionFailed(NamedTuple):
    """An error for the user."""

    error: ConsumerError

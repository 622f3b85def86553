"""The states of a transactional id, their transitions, and what EndTxn does in each (KIP-98, 890).

A state changes only as in `TRANSITIONS`. `END` is total: it has an error for each state, NONE
for a repeated EndTxn that has its result already, None where the transaction ends now.

    EMPTY ─▶ ONGOING ─▶ PREPARE_COMMIT ─▶ COMPLETE_COMMIT
                 └────▶ PREPARE_ABORT ──▶ COMPLETE_ABORT
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import Final, NamedTuple

from ..protocol import ErrorCode


class TransactionState(IntEnum):
    """A state; its number is that of `TransactionStatus` in `__transaction_state`."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6

    @property
    def label(self) -> str:
        """Its name in DescribeTransactions."""
        return self.name.title().replace("_", "")


class Trigger(Enum):
    """What changes a state."""

    INIT = "InitProducerId"
    ADD = "partition or group added"
    COMMIT = "EndTxn commits"
    ABORT = "EndTxn aborts"
    FENCE = "InitProducerId or transaction timeout, with the next epoch"
    MARKED = "all markers written"
    EXPIRED = "transactional.id.expiration.ms"


S, T, E = TransactionState, Trigger, ErrorCode
IDLE: Final = (S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT)
"""The states without a transaction."""
PREPARED: Final = (S.PREPARE_COMMIT, S.PREPARE_ABORT)
"""The states in which markers are written."""

TRANSITIONS: Final[Mapping[tuple[TransactionState, Trigger], TransactionState]] = {
    **{(state, T.INIT): S.EMPTY for state in IDLE},
    **{(state, T.ADD): S.ONGOING for state in (*IDLE, S.ONGOING)},
    **{(state, T.ABORT): S.PREPARE_ABORT for state in (*IDLE, S.ONGOING)},
    **{(state, T.EXPIRED): S.DEAD for state in IDLE},
    (S.ONGOING, T.COMMIT): S.PREPARE_COMMIT,
    (S.ONGOING, T.FENCE): S.PREPARE_ABORT,
    (S.PREPARE_COMMIT, T.MARKED): S.COMPLETE_COMMIT,
    (S.PREPARE_ABORT, T.MARKED): S.COMPLETE_ABORT,
}
"""An EndTxn that aborts without a transaction is one of version 2: it bumps the epoch."""


class Verdict(NamedTuple):
    """What EndTxn gets: an error, or None if the transaction ends now."""

    commit: ErrorCode | None
    abort: ErrorCode | None


END: Final[Mapping[TransactionState, Verdict]] = {
    S.EMPTY: Verdict(E.INVALID_TXN_STATE, E.INVALID_TXN_STATE),
    S.ONGOING: Verdict(None, None),
    S.PREPARE_COMMIT: Verdict(E.CONCURRENT_TRANSACTIONS, E.INVALID_TXN_STATE),
    S.PREPARE_ABORT: Verdict(E.INVALID_TXN_STATE, E.CONCURRENT_TRANSACTIONS),
    S.COMPLETE_COMMIT: Verdict(E.NONE, E.INVALID_TXN_STATE),
    S.COMPLETE_ABORT: Verdict(E.INVALID_TXN_STATE, E.NONE),
    S.DEAD: Verdict(E.INVALID_PRODUCER_ID_MAPPING, E.INVALID_PRODUCER_ID_MAPPING),
}
"""EndTxn with the producer's epoch; in version 2, a repeated one, with the epoch before."""

FENCED: Final = Verdict(E.PRODUCER_FENCED, E.PRODUCER_FENCED)
END_NEXT: Final[Mapping[TransactionState, Verdict]] = {
    **dict.fromkeys(IDLE, Verdict(E.INVALID_TXN_STATE, None)),
    **dict.fromkeys(PREPARED, FENCED),
    S.ONGOING: Verdict(None, None),
    S.DEAD: END[S.DEAD],
}
"""EndTxn of version 2 with the producer's epoch: it is not a repeated one, as that has the last."""
END_AGAIN: Final[Mapping[TransactionState, Verdict]] = {**END, S.EMPTY: FENCED, S.ONGOING: FENCED}
"""EndTxn of version 2 with the epoch before: repeated, or that of a zombie."""


def diagram() -> list[str]:
    """Draw the transitions as the lines of a Mermaid diagram."""
    lines = [
        f"    {old.label} --> {new.label}: {trigger.value}"
        for (old, trigger), new in TRANSITIONS.items()
    ]
    return ["stateDiagram-v2", f"    [*] --> {S.EMPTY.label}", *sorted(lines)]

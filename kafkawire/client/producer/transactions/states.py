"""The states of a transactional producer, and what its user may do in each.

A state changes only as `LEGAL` allows; `ADMISSION` is total. Names are those of Kafka's own
`TransactionManager`.

    UNINITIALIZED ─▶ INITIALIZING ─▶ READY ─▶ IN_TRANSACTION ─▶ COMMITTING ─▶ READY
                                                │    │             │
                                                │    ▼             ▼
                                                │  ABORTABLE_ERROR ──▶ ABORTING ─▶ READY
                                                └──────────────────────▲
    any ─▶ FATAL_ERROR
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class TransactionState(Enum):
    """Where a transactional producer is."""

    UNINITIALIZED = "Uninitialized"
    INITIALIZING = "Initializing"
    READY = "Ready"
    IN_TRANSACTION = "InTransaction"
    COMMITTING = "Committing"
    ABORTING = "Aborting"
    ABORTABLE_ERROR = "AbortableError"
    FATAL_ERROR = "FatalError"


S = TransactionState

LEGAL: Final[Mapping[TransactionState, frozenset[TransactionState]]] = {
    S.UNINITIALIZED: frozenset({S.INITIALIZING, S.FATAL_ERROR}),
    S.INITIALIZING: frozenset({S.READY, S.FATAL_ERROR}),
    S.READY: frozenset({S.IN_TRANSACTION, S.FATAL_ERROR}),
    S.IN_TRANSACTION: frozenset({S.COMMITTING, S.ABORTING, S.ABORTABLE_ERROR, S.FATAL_ERROR}),
    S.COMMITTING: frozenset({S.READY, S.ABORTABLE_ERROR, S.FATAL_ERROR}),
    S.ABORTING: frozenset({S.READY, S.ABORTABLE_ERROR, S.FATAL_ERROR}),
    S.ABORTABLE_ERROR: frozenset({S.ABORTING, S.FATAL_ERROR}),
    S.FATAL_ERROR: frozenset(),
}

ACTIVE: Final = (S.IN_TRANSACTION, S.COMMITTING)
"""The states in which records and offsets are sent."""
ENDING: Final = (S.COMMITTING, S.ABORTING)
"""The states in which a transaction ends."""
OPEN: Final = (S.IN_TRANSACTION, S.ABORTABLE_ERROR)
"""The states of a transaction that its user has not ended."""


class Call(Enum):
    """What the user of a transactional producer calls."""

    INIT = "init_transactions"
    BEGIN = "begin"
    SEND = "send"
    SEND_OFFSETS = "send_offsets"
    COMMIT = "commit"
    ABORT = "abort"


class Admission(Enum):
    """What becomes of a call."""

    ALLOWED = "allowed"
    JOINED = "has the result of the same call, which is in progress"
    ILLEGAL = "raises LocalProtocolError"
    FAILED = "raises the error of the transaction"


A = Admission

# fmt: off
ADMISSION: Final[Mapping[TransactionState, Mapping[Call, Admission]]] = {
    state: dict(zip(Call, row, strict=True))
    for state, row in {
        #                  init       begin      send       send_offsets commit    abort
        S.UNINITIALIZED:   (A.ALLOWED, A.ILLEGAL, A.ILLEGAL, A.ILLEGAL, A.ILLEGAL, A.ILLEGAL),
        S.INITIALIZING:    (A.JOINED,  A.ILLEGAL, A.ILLEGAL, A.ILLEGAL, A.ILLEGAL, A.ILLEGAL),
        S.READY:           (A.ILLEGAL, A.ALLOWED, A.ILLEGAL, A.ILLEGAL, A.ILLEGAL, A.ILLEGAL),
        S.IN_TRANSACTION:  (A.ILLEGAL, A.ILLEGAL, A.ALLOWED, A.ALLOWED, A.ALLOWED, A.ALLOWED),
        S.COMMITTING:      (A.ILLEGAL, A.ILLEGAL, A.ILLEGAL, A.ILLEGAL, A.JOINED,  A.ILLEGAL),
        S.ABORTING:        (A.ILLEGAL, A.ILLEGAL, A.ILLEGAL, A.ILLEGAL, A.ILLEGAL, A.JOINED),
        S.ABORTABLE_ERROR: (A.ILLEGAL, A.FAILED,  A.FAILED,  A.FAILED,  A.FAILED,  A.ALLOWED),
        S.FATAL_ERROR:     (A.FAILED,  A.FAILED,  A.FAILED,  A.FAILED,  A.FAILED,  A.FAILED),
    }.items()
}
"""State -> call -> what becomes of it."""
# fmt: on

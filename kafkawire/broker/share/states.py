"""The states of a record in a share partition, and what each event makes of them (KIP-932).

Invariant: a state changes only as in `TRANSITIONS`, which is total: None where the event is refused
with INVALID_RECORD_STATE, or has no effect.

    AVAILABLE ─▶ ACQUIRED ─▶ ACKNOWLEDGED
        ▲         │ │ └────▶ ARCHIVED
        └─────────┘ │           ▲
                    └─▶ ARCHIVING (is written to the dead letter queue)
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum
from itertools import product
from typing import Final


class RecordState(IntEnum):
    """A state; its number is that of `delivery_state` in `__share_group_state`."""

    AVAILABLE = 0
    ACQUIRED = 1
    """A member has it, until its acquisition lock ends."""
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    """It is not delivered any more, and is written to the dead letter queue (KIP-1191)."""
    ARCHIVED = 4
    """It is not delivered any more."""

    @property
    def is_terminal(self) -> bool:
        """Whether nothing changes it any more."""
        return self in TERMINAL

    @property
    def label(self) -> str:
        """Its name in diagrams."""
        return self.name.title()


def stored_state(number: int) -> RecordState:
    """Return the state of a number that is stored; those of newer versions are not delivered."""
    return STORED.get(number, RecordState.ARCHIVED)


class Trigger(Enum):
    """What changes a state."""

    ACQUIRE = "acquired by a member"
    ACCEPT = "accepted"
    RELEASE = "released, or the acquisition lock ended"
    LAST_RELEASE = "released at the delivery count limit"
    REJECT = "rejected, or a gap"
    DEAD_LETTER = "rejected or at the limit, with a dead letter queue"
    ARCHIVE = "written to the dead letter queue, or cannot be"
    RENEW = "acquisition lock renewed"
    REMOVE = "not in the log, or of an aborted transaction"


S, T = RecordState, Trigger
TERMINAL: Final = frozenset({S.ACKNOWLEDGED, S.ARCHIVED})
STORED: Final = {state.value: state for state in RecordState if state is not S.ACQUIRED}

LEGAL: Final[Mapping[tuple[RecordState, Trigger], RecordState]] = {
    (S.AVAILABLE, T.ACQUIRE): S.ACQUIRED,
    (S.AVAILABLE, T.REMOVE): S.ARCHIVED,
    (S.ACQUIRED, T.ACCEPT): S.ACKNOWLEDGED,
    (S.ACQUIRED, T.RELEASE): S.AVAILABLE,
    (S.ACQUIRED, T.LAST_RELEASE): S.ARCHIVED,
    (S.ACQUIRED, T.REJECT): S.ARCHIVED,
    (S.ACQUIRED, T.DEAD_LETTER): S.ARCHIVING,
    (S.ACQUIRED, T.RENEW): S.ACQUIRED,
    (S.ACQUIRED, T.REMOVE): S.ARCHIVED,
    (S.ARCHIVING, T.ARCHIVE): S.ARCHIVED,
}
TRANSITIONS: Final[Mapping[tuple[RecordState, Trigger], RecordState | None]] = {
    each: LEGAL.get(each) for each in product(RecordState, Trigger)
}


class AcknowledgeType(IntEnum):
    """What a member says of a record."""

    GAP = 0
    """There is no record at that offset."""
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class Cause(Enum):
    """Why a record is written to the dead letter queue; its value is the text of a header."""

    REJECTED = "Offset rejected by client."
    DELIVERIES = "Offset delivery count exceeded the threshold."


CAUSES: Final[Mapping[Trigger, Cause]] = {
    T.REJECT: Cause.REJECTED,
    T.LAST_RELEASE: Cause.DELIVERIES,
}
"""What archives a record -> why it is written to the dead letter queue first, if there is one."""
TRIGGERS: Final[Mapping[AcknowledgeType, Trigger]] = {
    AcknowledgeType.GAP: T.REJECT,
    AcknowledgeType.ACCEPT: T.ACCEPT,
    AcknowledgeType.RELEASE: T.RELEASE,
    AcknowledgeType.REJECT: T.REJECT,
    AcknowledgeType.RENEW: T.RENEW,
}


def diagram() -> list[str]:
    """Draw the transitions as the lines of a Mermaid diagram."""
    lines = [
        f"    {old.label} --> {new.label}: {trigger.value}" for (old, trigger), new in LEGAL.items()
    ]
    return ["stateDiagram-v2", f"    [*] --> {S.AVAILABLE.label}", *sorted(lines)]

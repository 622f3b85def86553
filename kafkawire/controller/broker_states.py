"""The states of a broker's registration.

`NEXT` is complete: what is not in it changes nothing. The diagram in docs/internals/cluster.md
is made from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final

from ..metadata import BrokerRegistration


class BrokerState(Enum):
    """Of a broker, as its registration says (Kafka's BrokerControlState)."""

    UNREGISTERED = "Unregistered"
    FENCED = "Fenced"
    UNFENCED = "Unfenced"
    CONTROLLED_SHUTDOWN = "ControlledShutdown"
    SHUTDOWN_NOW = "ShutdownNow"


class Trigger(Enum):
    """What changes the state."""

    REGISTERS = "BrokerRegistration of a new incarnation"
    CAUGHT_UP = "heartbeat, has read its registration"
    WANTS_FENCE = "heartbeat wants to be fenced"
    WANTS_SHUTDOWN = "heartbeat wants to shut down, leads nothing"
    WANTS_SHUTDOWN_LEADING = "heartbeat wants to shut down, leads partitions"
    LEADERS_MOVED = "heartbeat, leads nothing, active brokers have read so"
    SESSION_EXPIRED = "session timeout"
    UNREGISTERS = "UnregisterBroker"


S, T = BrokerState, Trigger
NEXT: Final[Mapping[BrokerState, Mapping[Trigger, BrokerState]]] = {
    S.UNREGISTERED: {T.REGISTERS: S.FENCED},
    S.FENCED: {
        T.REGISTERS: S.FENCED,
        T.CAUGHT_UP: S.UNFENCED,
        T.WANTS_SHUTDOWN: S.SHUTDOWN_NOW,
        T.UNREGISTERS: S.UNREGISTERED,
    },
    S.UNFENCED: {
        T.REGISTERS: S.FENCED,
        T.WANTS_FENCE: S.FENCED,
        T.WANTS_SHUTDOWN: S.SHUTDOWN_NOW,
        T.WANTS_SHUTDOWN_LEADING: S.CONTROLLED_SHUTDOWN,
        T.SESSION_EXPIRED: S.FENCED,
        T.UNREGISTERS: S.UNREGISTERED,
    },
    S.CONTROLLED_SHUTDOWN: {
        T.REGISTERS: S.FENCED,
        T.LEADERS_MOVED: S.SHUTDOWN_NOW,
        T.SESSION_EXPIRED: S.FENCED,
        T.UNREGISTERS: S.UNREGISTERED,
    },
    S.SHUTDOWN_NOW: {T.REGISTERS: S.FENCED, T.UNREGISTERS: S.UNREGISTERED},
}
"""State -> what happens -> the next state."""

RECORDED: Final[Mapping[BrokerState, BrokerState]] = {S.SHUTDOWN_NOW: S.FENCED}
"""State that only the heartbeat's response shows -> the state of the registration."""


def state_of(broker: BrokerRegistration | None) -> BrokerState:
    """Return the state that a registration records."""
    if broker is None:
        return S.UNREGISTERED
    if broker.fenced:
        return S.FENCED
    return S.CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else S.UNFENCED


def next_state(state: BrokerState, trigger: Trigger | None) -> BrokerState:
    """Return the state after something happened."""
    return state if trigger is None else NEXT[state].get(trigger, state)


def diagram() -> Iterator[str]:
    """Draw the states in Mermaid, a line per transition."""
    yield "stateDiagram-v2"
    yield f"    [*] --> {S.UNREGISTERED.value}"
    for state, triggers in NEXT.items():
        for trigger, after in triggers.items():
            yield f"    {state.value} --> {after.value}: {trigger.value}"

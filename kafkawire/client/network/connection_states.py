"""The states of a connection, what is told to it, and what it tells.

Law: a connection goes from state to state only as `LEGAL` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ...messages.api_key import ApiKey
from ...primitives import Limits
from ..requests import Reason, SendRequest
from .negotiated_versions import Opening
from .sasl import Credentials


class State(Enum):
    CONNECTING = "Connecting"
    NEGOTIATING = "Negotiating"
    HANDSHAKING = "Handshaking"
    AUTHENTICATING = "Authenticating"
    READY = "Ready"
    CLOSED = "Closed"


S = State

LEGAL: Final[Mapping[State, frozenset[State]]] = {
    S.CONNECTING: frozenset({S.NEGOTIATING, S.CLOSED}),
    S.NEGOTIATING: frozenset({S.HANDSHAKING, S.READY, S.CLOSED}),
    S.HANDSHAKING: frozenset({S.AUTHENTICATING, S.CLOSED}),
    S.AUTHENTICATING: frozenset({S.READY, S.CLOSED}),
    S.READY: frozenset({S.HANDSHAKING, S.CLOSED}),
    S.CLOSED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """What holds for every connection of a client.

    setup_timeout_s: for the network's part; request_timeout_s: for each request of the opening.
    """

    client_id: str | None
    software: tuple[str, str]
    request_timeout_s: float
    setup_timeout_s: float
    max_in_flight: int
    limits: Limits
    credentials: Credentials | None = None


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """Event: the client needs the connection no longer."""

    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class Submit:
    """Event: send this and wait for its response until then."""

    ask: SendRequest
    deadline: float


@dataclass(frozen=True, slots=True)
class Opened:
    """Effect: requests can be sent."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Effect: the connection is no more, and all that was asked on it is ended.

    fatal: the next one would end the same way. deliberate: the client itself wanted it. opening:
    how the next one should begin.
    """

    reason: Reason
    detail: str
    fatal: bool
    deliberate: bool
    opening: Opening


@dataclass(slots=True)
class InFlight:
    """A request that waits for its response; ask is None for those of the opening."""

    ask: SendRequest | None
    api: ApiKey
    version: int
    correlation_id: int
    deadline: float


def blamed(reason: Reason, at: int, waiting: InFlight, now: float) -> bool:
    """Say whether a request is what the connection ended for; the others only lost it."""
    match reason:
        case Reason.TIMED_OUT:
            return waiting.deadline <= now
        case Reason.INVALID_RESPONSE:
            return at == 0
        case _:
            return True

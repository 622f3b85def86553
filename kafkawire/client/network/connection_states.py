"""States, events and effects of a connection.

A connection changes state only as `LEGAL` allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ...messages.api_key import ApiKey
from ...primitives import Limits
from ..cluster import FinalizedFeatures
from ..requests import Outcome, Reason, SendRequest
from .negotiated_versions import Opening
from .oauthbearer import FromTokenProvider
from .sasl import Credentials
from .transport import Close, RequestToken, ShellEvent, Write


class State(Enum):
    """How far a connection is set up."""

    CONNECTING = "Connecting"
    NEGOTIATING = "Negotiating"
    REQUESTING_TOKEN = "RequestingToken"
    HANDSHAKING = "Handshaking"
    AUTHENTICATING = "Authenticating"
    READY = "Ready"
    CLOSED = "Closed"


S = State

LEGAL: Final[Mapping[State, frozenset[State]]] = {
    S.CONNECTING: frozenset({S.NEGOTIATING, S.CLOSED}),
    S.NEGOTIATING: frozenset({S.REQUESTING_TOKEN, S.HANDSHAKING, S.READY, S.CLOSED}),
    S.REQUESTING_TOKEN: frozenset({S.HANDSHAKING, S.CLOSED}),
    S.HANDSHAKING: frozenset({S.AUTHENTICATING, S.CLOSED}),
    S.AUTHENTICATING: frozenset({S.READY, S.CLOSED}),
    S.READY: frozenset({S.REQUESTING_TOKEN, S.HANDSHAKING, S.CLOSED}),
    S.CLOSED: frozenset(),
}

SETUP_TIMED_OUT: Final[Mapping[State, str]] = {
    S.CONNECTING: "connection setup timed out",
    S.REQUESTING_TOKEN: "the token provider (sasl.oauth.token.provider) returned nothing in time",
}
"""What the states are too late with that wait for the shell."""


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Settings of every connection of a client.

    setup_timeout_s: for the TCP and TLS handshakes; request_timeout_s: for each setup request,
    and for a token.
    """

    client_id: str | None
    software: tuple[str, str]
    request_timeout_s: float
    setup_timeout_s: float
    max_in_flight: int
    limits: Limits
    credentials: Credentials | FromTokenProvider | None = None


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """Event: the client no longer needs the connection."""

    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class Submit:
    """Event: send this request; its response is due by the deadline."""

    request: SendRequest
    deadline: float


@dataclass(frozen=True, slots=True)
class ConnectionReady:
    """Effect: the connection accepts requests; features: what the broker reported."""

    features: FinalizedFeatures = FinalizedFeatures()  # noqa: RUF009


@dataclass(frozen=True, slots=True)
class ConnectionClosed:
    """Effect: the connection is closed, and all its requests have their outcome.

    fatal: a reconnect would fail in the same way. deliberate: this client closed it. opening: the
    ApiVersions strategy of the next connection.
    """

    reason: Reason
    detail: str
    fatal: bool
    deliberate: bool
    opening: Opening


ConnectionEvent = ShellEvent | Submit | CloseConnection
ConnectionEffect = Write | Close | RequestToken | Outcome | ConnectionReady | ConnectionClosed


@dataclass(slots=True)
class InFlight:
    """A request that waits for its response; request is None for those of connection setup."""

    request: SendRequest | None
    api: ApiKey
    version: int
    correlation_id: int
    deadline: float
    sent_at: float = 0.0


def is_cause(reason: Reason, at: int, waiting: InFlight, now: float) -> bool:
    """Return whether a request caused the close; the others merely lost their connection."""
    match reason:
        case Reason.TIMED_OUT:
            return waiting.deadline <= now
        case Reason.INVALID_RESPONSE:
            return at == 0
        case _:
            return True

"""Who the producer is to brokers: its producer id and epoch.

Law: a new epoch is begun only where numbers under the old one cannot be continued (KIP-360); a new
id only where epochs are used up, or the broker fenced it.

    NONE ── first record ──▶ ASKED ── answered ──▶ KNOWN ── a gap ──▶ KNOWN, next epoch
      ▲                        │ ▲                    │ epochs used up, fenced
      └── unanswered: later ───┘ └────────────────────┘
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ...errors import LocalProtocolError
from ...messages.api_key import ApiKey
from ...messages.init_producer_id_response import InitProducerIdResponse
from ..network.backoff import Backoff, Rng
from ..requests import LEAST_LOADED, NoResponse, ResponseReceived, SendRequest, error_of
from .events import Failure
from .partition_queue import Identity
from .produce_requests import ASK_IDENTITY

IDENTITY: Final = "identity"
"""The key of the request."""
MOST_EPOCH: Final = 0x7FFF - 1
"""Kafka keeps the very last epoch for fencing."""


class IdentityState(Enum):
    NONE = "None"
    ASKED = "Asked"
    KNOWN = "Known"
    REFUSED = "Refused"


S = IdentityState

LEGAL: Final[Mapping[IdentityState, frozenset[IdentityState]]] = {
    S.NONE: frozenset({S.ASKED}),
    S.ASKED: frozenset({S.NONE, S.KNOWN, S.REFUSED}),
    S.KNOWN: frozenset({S.NONE, S.KNOWN}),
    S.REFUSED: frozenset(),
}


class Identities:
    """Gets an identity when it is first needed, and a newer one when that is needed."""

    def __init__(self, owner: str, timeout_s: float, backoff: Backoff, rng: Rng) -> None:
        self.state = S.NONE
        self.current: Identity | None = None
        self.failure: Failure | None = None
        self.again_at = 0.0
        self._owner = owner
        self._timeout_s = timeout_s
        self._backoff = backoff
        self._rng = rng
        self._failures = 0

    def ask(self, now: float) -> list[object]:
        """Ask the broker for an identity, if that is due."""
        if self.state is not S.NONE or now < self.again_at:
            return []
        self._become(S.ASKED)
        api = ApiKey.INIT_PRODUCER_ID
        return [
            SendRequest(self._owner, IDENTITY, LEAST_LOADED, api, ASK_IDENTITY, self._timeout_s)
        ]

    def answered(self, event: ResponseReceived, now: float) -> None:
        """Take the broker's answer."""
        assert isinstance(event.message, InitProducerIdResponse)
        code = error_of(event.message.error_code)
        if not code:
            self._failures = 0
            self.current = Identity(event.message.producer_id, event.message.producer_epoch)
            self._become(S.KNOWN)
        elif code.retriable:
            self._later(now)
        else:
            self._refuse(Failure(code, None, "no producer id for idempotent writes"))

    def unanswered(self, event: NoResponse, now: float) -> None:
        """Take that there is no answer."""
        if event.retriable:
            self._later(now)
        else:
            self._refuse(Failure(event.code, event.reason, event.detail))

    def leave(self, identity: Identity | None, *, fenced: bool) -> None:
        """Give up an identity whose numbers cannot be continued, if it is still the current one.

        fenced: the broker takes no epoch of that id any more.
        """
        if identity is None or identity != self.current:
            return
        if fenced or identity.producer_epoch >= MOST_EPOCH:
            self.current, self.again_at = None, 0.0
            self._become(S.NONE)
        else:
            self.current = Identity(identity.producer_id, identity.producer_epoch + 1)
            self._become(S.KNOWN)

    def _later(self, now: float) -> None:
        self._failures += 1
        self.again_at = now + self._backoff.after(self._failures, self._rng)
        self._become(S.NONE)

    def _refuse(self, failure: Failure) -> None:
        self.failure = failure
        self._become(S.REFUSED)

    def _become(self, state: IdentityState) -> None:
        if state not in LEGAL[self.state]:
            raise LocalProtocolError(f"{self.state.value} does not become {state.value}")
        self.state = state

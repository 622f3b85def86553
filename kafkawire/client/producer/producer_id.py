"""Manages the producer id and epoch of an idempotent producer.

The epoch is bumped only when sequence numbers cannot be continued (KIP-360); a new id is
requested only when epochs are exhausted, or the broker fenced the id.

    NONE ── first record ──▶ REQUESTED ── response ──▶ KNOWN ── sequence gap ──▶ KNOWN, next epoch
      ▲                        │ ▲                    │ epochs exhausted, fenced
      └── failed: backoff ─────┘ └────────────────────┘
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
from .partition_queue import ProducerIdAndEpoch
from .produce_requests import INIT_PRODUCER_ID

PRODUCER_ID_KEY: Final = "producer id"
"""The key of the request."""
MAX_EPOCH: Final = 0x7FFF - 1
"""Kafka reserves the last epoch for fencing."""


class ProducerIdState(Enum):
    """Whether a producer id is known."""

    NONE = "None"
    REQUESTED = "Requested"
    KNOWN = "Known"
    FAILED = "Failed"


S = ProducerIdState

LEGAL: Final[Mapping[ProducerIdState, frozenset[ProducerIdState]]] = {
    S.NONE: frozenset({S.REQUESTED}),
    S.REQUESTED: frozenset({S.NONE, S.KNOWN, S.FAILED}),
    S.KNOWN: frozenset({S.NONE, S.KNOWN}),
    S.FAILED: frozenset(),
}


class ProducerIdManager:
    """Requests a producer id when first needed, and bumps its epoch."""

    def __init__(self, owner: str, timeout_s: float, backoff: Backoff, rng: Rng) -> None:
        self.state = S.NONE
        self.current: ProducerIdAndEpoch | None = None
        self.failure: Failure | None = None
        self.retry_at = 0.0
        self._owner = owner
        self._timeout_s = timeout_s
        self._backoff = backoff
        self._rng = rng
        self._failures = 0

    def request(self, now: float) -> list[SendRequest]:
        """Request a producer id if one is needed and due."""
        if self.state is not S.NONE or now < self.retry_at:
            return []
        self._transition(S.REQUESTED)
        api = ApiKey.INIT_PRODUCER_ID
        return [
            SendRequest(
                self._owner, PRODUCER_ID_KEY, LEAST_LOADED, api, INIT_PRODUCER_ID, self._timeout_s
            )
        ]

    def on_response(self, event: ResponseReceived, now: float) -> None:
        """Handle the broker's response."""
        assert isinstance(event.message, InitProducerIdResponse)
        code = error_of(event.message.error_code)
        if not code:
            self._failures = 0
            self.current = ProducerIdAndEpoch(
                event.message.producer_id, event.message.producer_epoch
            )
            self._transition(S.KNOWN)
        elif code.retriable:
            self._retry_later(now)
        else:
            self._fail(Failure(code, None, "no producer id for idempotence"))

    def on_failure(self, event: NoResponse, now: float) -> None:
        """Handle a request without a response."""
        if event.retriable:
            self._retry_later(now)
        else:
            self._fail(Failure(event.code, event.reason, event.detail))

    def invalidate(self, identity: ProducerIdAndEpoch | None, *, fenced: bool) -> None:
        """Replace an id or epoch whose sequence numbers cannot be continued, if it is current.

        fenced: the broker accepts no epoch of that id any more.
        """
        if identity is None or identity != self.current:
            return
        if fenced or identity.producer_epoch >= MAX_EPOCH:
            self.current, self.retry_at = None, 0.0
            self._transition(S.NONE)
        else:
            self.current = ProducerIdAndEpoch(identity.producer_id, identity.producer_epoch + 1)
            self._transition(S.KNOWN)

    def _retry_later(self, now: float) -> None:
        self._failures += 1
        self.retry_at = now + self._backoff.after(self._failures, self._rng)
        self._transition(S.NONE)

    def _fail(self, failure: Failure) -> None:
        self.failure = failure
        self._transition(S.FAILED)

    def _transition(self, state: ProducerIdState) -> None:
        if state not in LEGAL[self.state]:
            raise LocalProtocolError(
                f"invalid state transition from {self.state.value} to {state.value}"
            )
        self.state = state

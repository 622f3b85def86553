"""Decides on the metadata of a cluster, as one voter of its quorum.

Only the active controller decides, against the newest metadata; a response leaves when all
that it was decided on is committed; whoever loses the leadership forgets what is not committed.
Requests that write are decided on one after the other; between the slices of a large one, only
other events are handled.

    BecameLeader -> active -- RequestReceived -> Append ... Committed -> Published, Respond
                      `-- Resigned -> standby: NOT_CONTROLLER for every waiting request
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from ..errors import LocalProtocolError
from ..messages.abort_transaction_record import AbortTransactionRecord
from ..messages.broker_heartbeat_request import BrokerHeartbeatRequest
from ..metadata import METADATA_VERSION, MetadataImage, MetadataLoader
from ..primitives import Message
from ..protocol import ErrorCode
from .events import (
    Append,
    BecameLeader,
    Committed,
    Effect,
    Event,
    LogEndMoved,
    Published,
    Renounce,
    RequestReceived,
    Resigned,
    Respond,
    SnapshotLoaded,
)
from .operations.broker_heartbeat import fence, note_contact
from .operations.delegation_tokens import next_expiry_check, remove_expired
from .operations.elect_leaders import elect_uncleanly, rebalance
from .operations.refusals import refusal
from .operations.served import READS, WRITES, Work
from .operations.update_features import bootstrap_levels, elr_configs
from .placement import RandomNumbers
from .state import ControllerConfig, ControllerState

E = ErrorCode
AGAIN: Final = 0.0
"""Seconds until a rebalance goes on that did not finish."""


class _Waiting(NamedTuple):
    """A response that waits until `offset` is committed."""

    offset: int
    request: RequestReceived
    response: Message


class QuorumController:
    """One controller, active or standby."""

    def __init__(
        self, config: ControllerConfig, rng: RandomNumbers, new_uuid: Callable[[], bytes]
    ) -> None:
        self.config = config
        self._rng = rng
        self._new_uuid = new_uuid
        self._loader = MetadataLoader()
        self._epoch = -1
        self._state: ControllerState | None = None
        self._waiting: deque[_Waiting] = deque()
        self._appended = -1  # the offset of the last record that it appended
        self._rebalance_at: float | None = None
        self._tokens_at: float | None = None
        """When to remove the delegation tokens that have ended."""
        self._undecided: deque[RequestReceived] = deque()
        """Requests in order; the first one goes on in the next call of `advance`."""
        self._work: Work | None = None
        """What is left of the first one, once it has begun."""
        self._go_on_at: float | None = None

    @property
    def image(self) -> MetadataImage:
        """The committed metadata."""
        return self._loader.image

    @property
    def newest(self) -> MetadataImage:
        """The metadata with what is not yet committed."""
        return self.image if self._state is None else self._state.image

    @property
    def is_active(self) -> bool:
        """Whether it decides."""
        return self._state is not None

    # -- the machine

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Handle an event.

        Raises InvalidMetadataRecord for a log that it cannot follow, LocalProtocolError for a
        request that is not a controller's.
        """
        return HANDLERS[type(event)](self, event, now)

    def next_deadline(self) -> float | None:
        """Return when `advance` has something to do."""
        if self._state is None:
            return None
        due = (
            self._state.sessions.next_deadline(),
            self._rebalance_at,
            self._tokens_at,
            self._go_on_at,
        )
        return min((each for each in due if each is not None), default=None)

    def advance(self, now: float) -> list[Effect]:
        """Go on with a large request, or else do what is due.

        That is to fence brokers whose session expired, to elect preferred leaders, and to decide
        on the requests that have come since the large one.
        """
        state = self._state
        if state is None:
            return []
        if self._work is not None:
            return self._decide(state, now)
        effects: list[Effect] = []
        while (broker_id := state.sessions.pop_expired(now)) is not None:
            broker = state.image.brokers.get(broker_id)
            if broker is not None and not broker.fenced:
                fence(state, broker_id)
                effects += self._append(state)
        if self._rebalance_at is not None and now >= self._rebalance_at:
            elect_uncleanly(state)
            more = rebalance(state)
            self._set_rebalance(now, more)
            effects += self._append(state)
        if self._tokens_at is not None and now >= self._tokens_at:
            remove_expired(state, now)
            self._tokens_at = next_expiry_check(state, now)
            effects += self._append(state)
        return effects + (self._decide(state, now) if self._undecided else [])

    # -- leadership

    def _became_leader(self, event: BecameLeader, now: float) -> list[Effect]:
        if event.epoch <= self._epoch:
            return []
        effects = self._step_down()
        self._epoch = event.epoch
        state = self._state = ControllerState(
            self.image.copy(), self.config, self._rng, self._new_uuid, event.next_offset
        )
        for broker_id in state.image.brokers:
            state.sessions.touch(broker_id, now)
        self._set_rebalance(now, False)
        self._tokens_at = next_expiry_check(state, now)
        if self._loader.in_transaction:
            state.append(AbortTransactionRecord(reason="controller failover"))
        if METADATA_VERSION not in state.image.features:
            self._bootstrap(state)
        return effects + self._append(state)

    def _bootstrap(self, state: ControllerState) -> None:
        """Write what a new cluster begins with, in a transaction as it is one state."""
        state.begin_transaction("Bootstrap records")
        for level in bootstrap_levels(state):
            state.write(level)
        if state.elr_enabled:
            for record in elr_configs(state):
                state.write(record)
        for credential in self.config.scram_credentials:
            state.write(credential)
        state.end_transaction()

    def _log_end_moved(self, event: LogEndMoved, _now: float) -> list[Effect]:
        if self._state is not None and event.epoch == self._epoch:
            self._state.move_log_end(event.next_offset)
        return []

    def _resigned(self, event: Resigned, _now: float) -> list[Effect]:
        return self._step_down() if event.epoch == self._epoch else []

    def _step_down(self) -> list[Effect]:
        """Forget what is not committed, and refuse the requests that wait for it."""
        requests = [each.request for each in self._waiting]
        requests += self._undecided
        self._waiting.clear()
        self._undecided.clear()
        self._state = self._work = None
        self._appended = -1
        self._rebalance_at = self._tokens_at = self._go_on_at = None
        return [Respond(each.request_id, refusal(each.body, E.NOT_CONTROLLER)) for each in requests]

    def _set_rebalance(self, now: float, more: bool) -> None:
        interval = self.config.rebalance_interval
        if interval is not None:
            self._rebalance_at = now + (AGAIN if more else interval)

    # -- the log

    def _committed(self, event: Committed, _now: float) -> list[Effect]:
        """Apply committed records; an active controller has decided them itself."""
        delta = self._loader.apply(event.records, event.base_offset)
        effects: list[Effect] = [Published(delta)]
        state = self._state
        if state is not None and self._loader.offset >= state.log_end:
            reason = f"offset {self._loader.offset} is committed and was not written here"
            return [*effects, Renounce(self._epoch, reason), *self._step_down()]
        while self._waiting and self._waiting[0].offset <= self._loader.offset:
            done = self._waiting.popleft()
            effects.append(Respond(done.request.request_id, done.response))
        return effects

    def _snapshot_loaded(self, event: SnapshotLoaded, _now: float) -> list[Effect]:
        effects: list[Effect] = []
        if self._state is not None:
            effects = [Renounce(self._epoch, "a snapshot was loaded"), *self._step_down()]
        return [Published(self._loader.load_snapshot(event.records, event.last_offset)), *effects]

    def _append(self, state: ControllerState) -> list[Effect]:
        records = state.take()
        if not records:
            return []
        self._appended = state.next_offset - 1
        return [Append(self._epoch, state.next_offset - len(records), records)]

    # -- requests

    def _received(self, event: RequestReceived, now: float) -> list[Effect]:
        read = READS.get(type(event.body))
        state = self._state
        if read is None and type(event.body) not in WRITES:
            name = type(event.body).__name__
            raise LocalProtocolError(f"{name} is not a request that a controller serves")
        if state is None:
            return [Respond(event.request_id, refusal(event.body, E.NOT_CONTROLLER))]
        if read is not None:
            return [Respond(event.request_id, read(self.image, event.body))]
        if isinstance(event.body, BrokerHeartbeatRequest) and self._undecided:
            note_contact(state, event.body, now)
        self._undecided.append(event)
        return self._decide(state, now) if len(self._undecided) == 1 else []

    def _decide(self, state: ControllerState, now: float) -> list[Effect]:
        """Decide on requests in order, for a slice, or up to the end of a large request."""
        is_large = self._work is not None
        effects: list[Effect] = []
        for _ in range(state.config.slice):
            response = self._go_on(state, self._undecided[0], now)
            if response is not None:
                effects += self._finish(state, self._undecided.popleft(), response)
                if is_large or not self._undecided:
                    break
        if state.in_transaction:
            effects += self._append(state)
        self._go_on_at = now if self._undecided else None
        return effects

    def _go_on(
        self, state: ControllerState, request: RequestReceived, now: float
    ) -> Message | None:
        """Go on with a request, or begin; return its response at the end."""
        if self._work is None:
            operation = WRITES[type(request.body)]
            response = operation(state, request.body, request.version, now)
            if isinstance(response, Message):
                return response
            self._work = response
        try:
            next(self._work)
        except StopIteration as done:
            self._work = None
            end: Message = done.value
            return end
        return None

    def _finish(
        self, state: ControllerState, request: RequestReceived, response: Message
    ) -> list[Effect]:
        """Respond once all records are committed."""
        effects = self._append(state)
        if self._appended > self._loader.offset:  # also without records: it rests on those before
            self._waiting.append(_Waiting(self._appended, request, response))
            return effects
        return [Respond(request.request_id, response)]


HANDLERS: Final[Mapping[type, Callable[[QuorumController, Any, float], list[Effect]]]] = {
    BecameLeader: QuorumController._became_leader,
    Committed: QuorumController._committed,
    LogEndMoved: QuorumController._log_end_moved,
    RequestReceived: QuorumController._received,
    Resigned: QuorumController._resigned,
    SnapshotLoaded: QuorumController._snapshot_loaded,
}

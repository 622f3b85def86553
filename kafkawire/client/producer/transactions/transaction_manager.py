"""Runs the transactions of a producer: which request to a coordinator is next, and what follows.

One request at a time, repeated until it has a result; a transaction ends when its records and
offsets have theirs. Records and offsets of a transaction that failed are discarded, and only an
abort begins anew; after a fatal error nothing does.

    call ─▶ admitted? ─▶ state ─▶ next operation ─▶ SendRequest ─▶ response ─▶ outcome
                                       ▲                                         │
                                       └── retried, next operation ◀─────────────┤
                        TransactionDone, TransactionFailed ◀─────────────────────┘
"""

# over 300 lines: one machine, all its calls and operations

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any, Final, TypeAlias

from ....errors import LocalProtocolError
from ....messages.api_key import ApiKey
from ....messages.end_txn_response import EndTxnResponse
from ....messages.init_producer_id_response import InitProducerIdResponse
from ....protocol.error_code import ErrorCode
from ...cluster import ClusterView
from ...network.backoff import Rng
from ...requests import (
    ForgetCoordinator,
    NoResponse,
    Reason,
    RequestMetadataUpdate,
    ResponseReceived,
    SendRequest,
)
from ..configuration import ProducerSettings
from ..events import (
    BeginTransaction,
    EndTransaction,
    Failure,
    InitTransactions,
    SendOffsets,
    TransactionDone,
    TransactionEffect,
    TransactionEvent,
    TransactionFailed,
)
from ..partition_queue import ProducerIdAndEpoch
from ..produce_requests import IMPLICIT_PARTITIONS
from ..record_accumulator import TopicPartition
from .contents import TransactionContents
from .current_operation import CurrentOperation
from .outcomes import TransactionOutcome, outcome_of
from .requests import (
    AddOffsets,
    AddPartitions,
    CommitOffsets,
    End,
    Init,
    OffsetsCall,
    Operation,
    Transactional,
)
from .states import ACTIVE, ADMISSION, ENDING, LEGAL, OPEN, Admission, Call, S, TransactionState

TRANSACTION_KEY: Final = "transaction"
"""The key of the requests."""
FEATURE: Final = "transaction.version"
NO_PRODUCER: Final = ProducerIdAndEpoch(-1, -1)
FIRST_PARTITIONS_RETRY_S: Final = 0.02
"""Backoff while the markers of the last transaction are written, as in Java's client."""
DISCARDED: Final = Failure(ErrorCode.NONE, Reason.ABORTED, "not sent")

Effect: TypeAlias = TransactionEffect | SendRequest | ForgetCoordinator | RequestMetadataUpdate


class TransactionManager:
    """The transactions of one producer.

    current: the producer id and epoch. failure: the error of the state ABORTABLE_ERROR or
    FATAL_ERROR. version: `transaction.version` of the present transaction. consumed: the topics of
    offsets, whose ids the producer needs.
    """

    def __init__(
        self,
        transactional_id: str,
        settings: ProducerSettings,
        view: ClusterView,
        rng: Rng,
        owner: str,
    ) -> None:
        self.state = S.UNINITIALIZED
        self.current: ProducerIdAndEpoch | None = None
        self.failure: Failure | None = None
        self.version = 0
        self.consumed: set[str] = set()
        self._transactional_id = transactional_id
        self._settings = settings
        self._view = view
        self._rng = rng
        self._owner = owner
        self._out: list[Effect] = []
        self._waiting: list[Hashable] = []  # tokens of the call that the state is about
        self._answered: dict[Hashable, Call] = {}  # by token: what ended last
        self._unclaimed: Call | None = None  # ended, and nobody got its result
        self._contents = TransactionContents()
        self._needs_epoch = False
        self._current = CurrentOperation()

    # -- what the producer asks

    @property
    def discards(self) -> Failure | None:
        """Why records that are not in flight are discarded; None if they are sent."""
        return DISCARDED if self.state is S.ABORTING else self.failure

    @property
    def completing(self) -> bool:
        """Whether records do not linger, as the transaction is committed."""
        return self.state is S.COMMITTING

    @property
    def settled(self) -> bool:
        """Whether no transaction is open: the producer can be closed."""
        return self.state not in (*ACTIVE, *ENDING, *OPEN)

    def may_send(self, partition: TopicPartition) -> bool:
        """Whether a batch of a partition may be sent now."""
        if self.state not in ACTIVE:
            return False
        return self._who.adds_implicitly or partition in self._contents.partitions

    def on_send(self, partition: TopicPartition) -> None:
        """Note that a batch of a partition is sent, which may add the partition (KIP-890)."""
        self._contents.add_partitions([partition])

    def on_batch_failed(self, failure: Failure, *, sequenced: bool) -> None:
        """Handle a batch without a delivery.

        sequenced: it had sequence numbers, which leave a gap in its epoch.
        """
        self._needs_epoch |= sequenced and not self._who.adds_implicitly
        if self.state not in ACTIVE:
            return
        outcome = outcome_of(ApiKey.PRODUCE, failure.code)
        if outcome in FAILURES and not failure.code.retriable:
            FAILURES[outcome](self, failure)
        else:
            self._fail_abortable(failure)  # its retries are exhausted

    # -- calls

    def handle(self, event: TransactionEvent) -> None:
        """Handle a call; LocalProtocolError, and nothing changes, if the state does not allow it.

        Its effects come with the next `advance`.
        """
        call, token = call_of(event), event.token
        if call is self._unclaimed:
            self._unclaimed = None
            self._out.append(TransactionDone(token))
            return
        match self.admit(call):
            case Admission.FAILED:
                assert self.failure is not None
                self._out.append(self._failed(token, self.failure))
            case Admission.JOINED:
                self._waiting.append(token)
            case _:
                CALLS[type(event)](self, event)

    def admit(self, call: Call) -> Admission:
        """Return what becomes of a call. Raises LocalProtocolError if it is illegal."""
        admission = ADMISSION[self.state][call]
        if admission is Admission.ILLEGAL:
            admitted = [
                each.value
                for each, admission in ADMISSION[self.state].items()
                if admission is Admission.ALLOWED
            ]
            first = f": {' or '.join(admitted)} comes first" if admitted else ""
            raise LocalProtocolError(f"{call.value} in state {self.state.value}{first}")
        return admission

    def withdraw(self, token: Hashable) -> None:
        """Forget who waits for a call, or did not get its result; what it wanted goes on."""
        self._unclaimed = self._answered.get(token, self._unclaimed)
        self._waiting = [each for each in self._waiting if each != token]

    def close(self) -> None:
        """Abort a transaction that is open."""
        if self.state in OPEN:
            self._abort()

    def abandon(self, failure: Failure) -> None:
        """Give up what is not done."""
        if self.state is not S.FATAL_ERROR:
            self._fail_fatal(failure)

    def _init(self, event: InitTransactions) -> None:
        self._waiting = [event.token]
        self._transition(S.INITIALIZING)

    def _begin(self, event: BeginTransaction) -> None:
        self._unclaimed, self._answered = None, {}
        self._transition(S.IN_TRANSACTION)
        self._out.append(TransactionDone(event.token))

    def _send_offsets(self, event: SendOffsets) -> None:
        if event.offsets:
            call = OffsetsCall(event.token, event.group, event.offsets)
            self._contents.offsets.append(call)
            self.consumed.update(each.topic for each in event.offsets)
        else:
            self._out.append(TransactionDone(event.token))

    def _end(self, event: EndTransaction) -> None:
        self._waiting = [event.token]
        if event.commit:
            self._transition(S.COMMITTING)
        else:
            self._abort()

    def _abort(self) -> None:
        self._transition(S.ABORTING)
        self.failure = None
        self._drop_offsets(DISCARDED)

    # -- requests

    def next_deadline(self) -> float | None:
        return self._current.next_deadline()

    def advance(
        self, partitions: Collection[TopicPartition], *, drained: bool, now: float
    ) -> list[Effect]:
        """Send the next request if it is due; return all effects since the last call.

        partitions: those with records. drained: no record is without a result, no batch in flight.
        """
        if self._current.operation is None:
            self._current.operation = self._next(partitions, drained)
            if self._current.operation is None and drained and self._is_over():
                self._complete()
        due = self._current.take_due(now)
        if due is not None:
            self._out.append(self._request(due))
        out, self._out = self._out, []
        return out

    @property
    def _who(self) -> Transactional:
        return Transactional(
            self._transactional_id, self.current or NO_PRODUCER, self.version, self._view
        )

    def _next(self, partitions: Collection[TopicPartition], drained: bool) -> Operation | None:
        timeout_ms = self._settings.transaction_timeout_ms
        if self.state is S.INITIALIZING:
            return Init(timeout_ms, bumps=False)
        if self.state in ACTIVE:
            addition = self._contents.next_addition(partitions, self._who.adds_implicitly)
            if addition is not None:
                return addition
        if self.state in ENDING and drained:
            if self._contents.started:
                return End(self.state is S.COMMITTING)
            upgraded = self._level() >= IMPLICIT_PARTITIONS and not self._who.adds_implicitly
            if self._needs_epoch or upgraded:
                return Init(timeout_ms, bumps=True)
        return None

    def _is_over(self) -> bool:
        return self.state in ENDING and not self._contents.offsets

    def _request(self, operation: Operation) -> SendRequest:
        if operation.api is ApiKey.TXN_OFFSET_COMMIT:
            self._contents.started = True
        who = self._who
        return SendRequest(
            self._owner,
            TRANSACTION_KEY,
            operation.to(who),
            operation.api,
            operation.body(who),
            self._settings.request_timeout_s,
        )

    # -- responses

    def on_response(self, event: ResponseReceived, now: float) -> None:
        """Handle a coordinator's response."""
        operation = self._returned()
        if operation is None:
            return
        code, what = operation.error(event.message, self._who)
        if code:
            self._on_error(operation, code, Failure(code, None, what), now)
            return
        self._current.succeed()
        SUCCEEDED[type(operation)](self, operation, event.message)

    def on_failure(self, event: NoResponse, now: float) -> None:
        """Handle a request without a response: the coordinator may have processed it."""
        operation = self._returned()
        if operation is None:
            return
        failure = Failure(event.code, event.reason, event.detail)
        if event.retriable:
            self._retry_later(operation, ErrorCode.NONE, now)
        elif event.code:
            self._on_error(operation, event.code, failure, now)
        else:
            self._fail_fatal(failure)

    def _returned(self) -> Operation | None:
        """Return the operation that was in flight; None if nothing follows from its result."""
        self._current.in_flight = False
        if self.state is S.FATAL_ERROR:
            self._current.operation = None
        return self._current.operation

    def _on_error(
        self, operation: Operation, code: ErrorCode, failure: Failure, now: float
    ) -> None:
        outcome = outcome_of(operation.api, code)
        if code is ErrorCode.UNKNOWN_TOPIC_ID:
            self._out.append(RequestMetadataUpdate())
        if outcome is TransactionOutcome.FIND_COORDINATOR:
            self._out.append(ForgetCoordinator(operation.to(self._who)))
        if outcome is TransactionOutcome.ABORTABLE and self._is_discarded(operation):
            self._current.operation = None
        elif outcome in FAILURES:
            self._current.operation = None
            FAILURES[outcome](self, failure)
        elif self.state in ACTIVE or _may_have_effect(operation, code):
            self._retry_later(operation, code, now)
        else:
            self._current.operation = None

    def _is_discarded(self, operation: Operation) -> bool:
        """Whether an operation is of a transaction that is aborted already."""
        return self.state is S.ABORTING and not isinstance(operation, End | Init)

    def _retry_later(self, operation: Operation, code: ErrorCode, now: float) -> None:
        if isinstance(operation, CommitOffsets) and operation.call not in self._contents.offsets:
            self._current.operation = None  # discarded
            return
        wait = self._settings.retry.after(self._current.failures + 1, self._rng)
        if code is ErrorCode.CONCURRENT_TRANSACTIONS and operation.api in FIRST_REQUESTS:
            wait = min(wait, FIRST_PARTITIONS_RETRY_S)
        self._current.retry_at(now + wait)

    def _on_init(self, _: Init, response: InitProducerIdResponse) -> None:
        self.current = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
        self._needs_epoch = False
        self.version = self._level()
        if self.state is S.INITIALIZING:
            self._become_ready(Call.INIT)

    def _on_partitions_added(self, operation: AddPartitions, _: object) -> None:
        self._contents.add_partitions(operation.partitions)

    def _on_group_added(self, operation: AddOffsets, _: object) -> None:
        self._contents.add_group(operation.call.group.group_id)

    def _on_offsets_committed(self, operation: CommitOffsets, _: object) -> None:
        if operation.call in self._contents.offsets:
            self._contents.offsets.remove(operation.call)
            self._out.append(TransactionDone(operation.call.token))

    def _on_ended(self, _: End, response: EndTxnResponse) -> None:
        self._contents.started = False
        if self._who.adds_implicitly:
            self.current = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)

    def _level(self) -> int:
        return self._view.finalized_features.get(FEATURE, 0)

    # -- ends of transactions

    def _complete(self) -> None:
        ended = Call.COMMIT if self.state is S.COMMITTING else Call.ABORT
        self.version = self._level()
        self._become_ready(ended)

    def _become_ready(self, call: Call) -> None:
        self._contents.clear()
        self._transition(S.READY)
        if not self._waiting:
            self._unclaimed = call
        self._answered = dict.fromkeys(self._waiting, call)
        self._out += [TransactionDone(token) for token in self._waiting]
        self._waiting = []

    def _fail_abortable(self, failure: Failure) -> None:
        self._fail(S.ABORTABLE_ERROR, failure)

    def _replace_epoch(self, failure: Failure) -> None:
        """Go on under a new epoch: the coordinator does not know the present one."""
        self._contents.started, self._needs_epoch = False, True
        if self.state is not S.ABORTING:  # an abort is done without EndTxn
            self._fail(S.ABORTABLE_ERROR, failure)

    def _fail_fatal(self, failure: Failure) -> None:
        self._fail(S.FATAL_ERROR, failure)
        self._current.drop_unless_in_flight()

    def _fail(self, state: TransactionState, failure: Failure) -> None:
        """Change to a state of errors, unless it is that already; all calls that wait fail."""
        if self.state is state or state not in LEGAL[self.state]:
            return
        self._transition(state)
        self.failure = failure
        self._out += [self._failed(token, failure) for token in self._waiting]
        self._waiting = []
        self._drop_offsets(failure)

    def _drop_offsets(self, failure: Failure) -> None:
        self._out += [self._failed(each.token, failure) for each in self._contents.offsets]
        self._contents.offsets.clear()
        if isinstance(self._current.operation, CommitOffsets):
            self._current.drop_unless_in_flight()

    def _failed(self, token: Hashable, failure: Failure) -> TransactionFailed:
        return TransactionFailed(token, failure, fatal=self.state is S.FATAL_ERROR)

    def _transition(self, state: TransactionState) -> None:
        if state not in LEGAL[self.state]:
            raise LocalProtocolError(
                f"invalid state transition from {self.state.value} to {state.value}"
            )
        self.state = state


def call_of(event: TransactionEvent) -> Call:
    """Return the call that an event stands for."""
    if isinstance(event, EndTransaction):
        return Call.COMMIT if event.commit else Call.ABORT
    return CALL_OF[type(event)]


def _may_have_effect(operation: Operation, code: ErrorCode) -> bool:
    """Whether an operation of an aborted transaction, or an earlier try, may still have an effect.

    A topic that does not exist is added to no transaction.
    """
    return code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or isinstance(operation, Init | End)


M = TransactionManager

FIRST_REQUESTS: Final = (ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN)
"""The APIs that begin a transaction at its coordinator."""
CALL_OF: Final[Mapping[type, Call]] = {
    InitTransactions: Call.INIT,
    BeginTransaction: Call.BEGIN,
    SendOffsets: Call.SEND_OFFSETS,
}
CALLS: Final[Mapping[type, Callable[[TransactionManager, Any], None]]] = {
    InitTransactions: M._init,
    BeginTransaction: M._begin,
    SendOffsets: M._send_offsets,
    EndTransaction: M._end,
}
"""Event -> what it does in a state that allows it."""
SUCCEEDED: Final[Mapping[type, Callable[[TransactionManager, Any, Any], None]]] = {
    Init: M._on_init,
    AddPartitions: M._on_partitions_added,
    AddOffsets: M._on_group_added,
    CommitOffsets: M._on_offsets_committed,
    End: M._on_ended,
}
"""Operation -> what follows from its success."""
FAILURES: Final[Mapping[TransactionOutcome, Callable[[TransactionManager, Failure], None]]] = {
    TransactionOutcome.ABORTABLE: M._fail_abortable,
    TransactionOutcome.NEW_EPOCH: M._replace_epoch,
    TransactionOutcome.FATAL: M._fail_fatal,
    TransactionOutcome.FENCED: M._fail_fatal,
}
"""Outcome -> what follows from it; the others are retried."""

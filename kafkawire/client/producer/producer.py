"""The producer: records in, requests out, one delivery report for each record.

Every token returns exactly once; in order within a partition; within delivery.timeout.ms,
whatever brokers and networks do.

    Send ─▶ accumulator ─▶ queues ─▶ sender ─▶ SendRequest Produce ─▶ ResponseReceived ─▶ outcome
                             ▲                                                              │
                             └── retry, split, renumbered ◀─────────────────────────────────┤
                                              Delivered, Failed (in order) ◀────────────────┘
"""

# over 300 lines: where accumulator, sender and reports meet

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from ...errors import LocalProtocolError
from ...protocol.error_code import ErrorCode
from ..cluster import ClusterView
from ..metrics import Metrics
from ..network.backoff import Rng
from ..requests import (
    ClusterFailed,
    MetadataChanged,
    NoResponse,
    Reason,
    RequestMetadataUpdate,
    ResponseReceived,
    Sent,
    TrackTopics,
)
from .backlog import Backlog
from .batch import NO_SEQUENCE
from .checking import checked
from .configuration import ProducerSettings
from .delivery_reports import DeliveryReports
from .events import (
    Abandon,
    BeginTransaction,
    Cancel,
    CloseProducer,
    Delivered,
    EndTransaction,
    Failed,
    Failure,
    Flush,
    InitTransactions,
    ProducerClosed,
    ProducerEffect,
    ProducerEvent,
    Send,
    SendOffsets,
    TransactionEvent,
)
from .flushes import Flushes
from .producer_id import PRODUCER_ID_KEY, ProducerIdManager, ProducerIdState
from .record_accumulator import RecordAccumulator
from .record_failures import failed
from .requests_in_flight import RequestsInFlight
from .sender import Sender
from .transactions.states import Admission, Call, TransactionState
from .transactions.transaction_manager import TRANSACTION_KEY, TransactionManager

CLOSED: Final = Failure(ErrorCode.NONE, Reason.CLOSED, "producer closed")
NOTHING: Final[frozenset[str]] = frozenset()


class Producer(Backlog):
    """The machine; `owner` is its name in the client."""

    def __init__(
        self,
        settings: ProducerSettings,
        view: ClusterView,
        *,
        rng: Rng,
        owner: str = "producer",
        metrics: Metrics | None = None,
    ) -> None:
        super().__init__(settings, RecordAccumulator(settings, view, rng))
        self._owner = owner
        self._producer_ids = ProducerIdManager(
            owner, settings.request_timeout_s, settings.retry, rng
        )
        self.transactions: TransactionManager | None = None
        if settings.transactional_id is not None:
            transactional_id = settings.transactional_id
            self.transactions = TransactionManager(transactional_id, settings, view, rng, owner)
        self._delivery_reports = DeliveryReports(
            settings, view, self._accumulator, self._producer_ids, rng, self.transactions
        )
        self.join: Callable[..., bool] = (
            self._accumulator.join if self.transactions is None else self._join
        )
        """Handles a Send if it only joins an open batch: as `handle`, but faster."""
        self._sender = Sender(
            settings, view, self._accumulator, self._producer_ids, self.transactions
        )
        self._in_flight = RequestsInFlight(
            settings, self._sender, self._delivery_reports, owner, metrics
        )
        self._flushes = Flushes(self._accumulator)
        self._tracked = 0
        """Number of the topics that are tracked, those of records and of offsets."""
        self._closed = False
        self._due: float | None = None
        self._due_since: tuple[float, int] | None = None  # now and flush_to of a later `_next_due`
        self._reported_tokens: list[list[Hashable]] = []  # by events since the last Send

    def handle(self, event: ProducerEvent, now: float) -> list[ProducerEffect]:
        """Handle an event; a Send that joins an open batch is the fast path.

        Raises InvalidValue, OutOfRange, and changes nothing, for a record that cannot be encoded.
        """
        if type(event) is Send:
            return self._send(event, now)
        handler = HANDLERS.get(type(event))
        if handler is None:
            raise LocalProtocolError(f"unknown event {type(event).__name__}")
        out = list(handler(self, event, now))
        if type(event) is ResponseReceived and not self._in_flight:  # the broker waits
            self._send_batches(now, out)
            self._due, self._due_since = now, None  # `advance` reports the results
        else:
            self._send_ready(now, out)
        return out

    def _join(self, *record: Any) -> bool:
        """Let a record join a batch of the present transaction."""
        assert self.transactions is not None
        is_open = self.transactions.state is TransactionState.IN_TRANSACTION
        return is_open and self._accumulator.join(*record)

    @property
    def last_batch_number(self) -> int:
        """The number of the newest batch, -1 for none."""
        return self._accumulator.last_number

    def outstanding(self) -> Iterator[Hashable]:
        """Iterate over the tokens of records without a result; reads only.

        Includes those whose result the last events may have lost to an exception.
        """
        for queue in self._accumulator.busy.values():
            yield from (token for batch in queue.unresolved for token in batch.tokens)
        yield from self._accumulator.parked_tokens()
        for tokens in self._reported_tokens:
            yield from tokens

    def next_deadline(self) -> float | None:
        """Return when `advance` is due: found here, after requests that `handle` made are sent."""
        since, self._due_since = self._due_since, None
        if since is not None:
            self._due = self._next_due(*since)
        return self._due

    def advance(self, now: float) -> list[ProducerEffect]:
        due = self.next_deadline()
        if due is None or now < due:
            return []
        out: list[ProducerEffect] = list(self._accumulator.advance(now))
        for queue in list(self._accumulator.busy.values()):
            self._delivery_reports.expire(queue, now)
        self._send_ready(now, out)
        return out

    # Events of the user.

    def _send(self, record: Send, now: float) -> list[ProducerEffect]:
        record = checked(record)
        if self._accumulator.closed:
            return [failed(record, CLOSED)]
        if self._producer_ids.failure is not None:
            return [failed(record, self._producer_ids.failure)]
        transactions = self.transactions
        if transactions is not None and transactions.admit(Call.SEND) is not Admission.ALLOWED:
            assert transactions.failure is not None
            return [failed(record, transactions.failure)]
        accumulator, number = self._accumulator, self._accumulator.last_number
        if not record.headers and accumulator.join(*record[:6]):
            return []
        out = accumulator.take(record, now)
        if not out and accumulator.last_number == number:
            return out  # it joined an existing batch
        self._reported_tokens.clear()
        if out or transactions is not None or self._sender.may_have_ready(now):
            self._send_ready(now, out)
        else:
            linger, due = now + self._settings.linger_s, self.next_deadline()
            self._due = linger if due is None else min(due, linger)
        return out

    def _cancel(self, event: Cancel, _: float) -> Iterator[ProducerEffect]:
        self._accumulator.cancel(event.token)
        if self.transactions is not None:
            self.transactions.withdraw(event.token)
        yield from ()

    def _flush(self, event: Flush, _: float) -> Iterator[ProducerEffect]:
        self._flushes.add(event.token)
        yield from ()

    def _close(self, _: CloseProducer, __: float) -> Iterator[ProducerEffect]:
        self._accumulator.closed = True
        if self.transactions is not None:
            self.transactions.close()
        yield from ()

    def _abandon(self, _: Abandon, __: float) -> Iterator[ProducerEffect]:
        self._accumulator.closed = True
        yield from self._accumulator.fail_parked(CLOSED)
        self._delivery_reports.fail_all(CLOSED)
        if self.transactions is not None:
            self.transactions.abandon(CLOSED)

    def _on_call(self, event: TransactionEvent, _: float) -> Iterator[ProducerEffect]:
        if self.transactions is None:
            raise LocalProtocolError("transactions require transactional.id")
        self.transactions.handle(event)
        yield from ()

    # Events of the network.

    def _on_response(self, event: ResponseReceived, now: float) -> Iterator[ProducerEffect]:
        if event.request.key == PRODUCER_ID_KEY:
            self._producer_ids.on_response(event, now)
            yield from self._check_producer_id()
            return
        if event.request.key == TRANSACTION_KEY and self.transactions is not None:
            self.transactions.on_response(event, now)
            return
        yield from self._in_flight.on_response(event, now)

    def _on_failure(self, event: NoResponse, now: float) -> Iterator[ProducerEffect]:
        if event.request.key == PRODUCER_ID_KEY:
            self._producer_ids.on_failure(event, now)
            yield from self._check_producer_id()
            return
        if event.request.key == TRANSACTION_KEY and self.transactions is not None:
            self.transactions.on_failure(event, now)
            return
        yield from self._in_flight.on_failure(event, now)

    def _sent(self, event: Sent, _: float) -> Iterator[ProducerEffect]:
        self._in_flight.on_sent(event)
        yield from ()

    def _metadata_changed(self, _: MetadataChanged, now: float) -> Iterator[ProducerEffect]:
        for queue in self._accumulator.busy.values():
            if queue.leader_changed:  # KIP-951: the new leader is known, no backoff
                queue.leader_changed, queue.not_before = False, now
        missing = self._accumulator.unknown_topics()
        if missing:
            yield RequestMetadataUpdate(missing)

    def _cluster_failed(self, event: ClusterFailed, _: float) -> Iterator[ProducerEffect]:
        failure = Failure(ErrorCode.NONE, event.reason, event.detail)
        yield from self._accumulator.fail_parked(failure)

    def _check_producer_id(self) -> Iterator[ProducerEffect]:
        failure = self._producer_ids.failure
        if self._producer_ids.state is not ProducerIdState.FAILED or failure is None:
            return
        yield from self._accumulator.fail_parked(failure)
        self._delivery_reports.fail_all(failure)

    # After every event.

    def _send_ready(self, now: float, out: list[ProducerEffect]) -> None:
        """Report results, append blocked records, send ready batches, complete flushes."""
        self._results(out)
        if self._accumulator.waiting:
            out += self._accumulator.retry(now)
        self._reported_tokens += [each.tokens for each in out if isinstance(each, Failed)]
        consumed = NOTHING if self.transactions is None else self.transactions.consumed
        count = len(self._accumulator.topics) + len(consumed)
        if count > self._tracked:  # none is ever removed
            self._tracked = count
            out.append(TrackTopics(self._owner, frozenset(self._accumulator.topics) | consumed))
        if self.transactions is not None:
            self._transact(self.transactions, now, out)
        elif self._settings.idempotent and self._accumulator.busy:
            out += self._producer_ids.request(now)
        flush_to = self._send_batches(now, out)
        failed_builds = self._sender.failed_builds > 0
        if failed_builds:
            self._results(out)
        if self._sender.leaderless:
            out.append(RequestMetadataUpdate())
        if self._flushes or self._accumulator.closed:
            self._finished(out)
        # failed batches freed memory for blocked records
        self._due, self._due_since = (now, None) if failed_builds else (None, (now, flush_to))

    def _transact(
        self, transactions: TransactionManager, now: float, out: list[ProducerEffect]
    ) -> None:
        """Let a record that failed fail its transaction, which discards the others; advance it."""
        for each in out:
            if isinstance(each, Failed):  # of a record that is in no batch
                transactions.on_batch_failed(each.failure, sequenced=False)
        if transactions.discards is not None:
            out += self._accumulator.fail_parked(transactions.discards)
            self._delivery_reports.fail_queued(transactions.discards)
            self._results(out)
        busy = self._accumulator.busy.keys()
        drained = not (busy or self._accumulator.waiting or self._in_flight)
        out += transactions.advance(busy, drained=drained, now=now)

    def _send_batches(self, now: float, out: list[ProducerEffect]) -> int:
        """Send ready batches; return the last batch that does not linger."""
        flush_to = self._flushes.flush_to()
        completing = self.transactions is not None and self.transactions.completing
        if self._accumulator.closed or completing:
            flush_to = self._accumulator.last_number
        for produce in self._sender.drain(now, flush_to):
            out.append(self._in_flight.send(produce, now))
        return flush_to

    def _results(self, out: list[ProducerEffect]) -> None:
        for key, queue in list(self._accumulator.busy.items()):
            for batch in queue.resolved():
                self._accumulator.used -= batch.size
                self._reported_tokens.append(batch.tokens)
                if batch.failure is not None:
                    if self.transactions is not None:
                        sequenced = batch.sequence != NO_SEQUENCE
                        self.transactions.on_batch_failed(batch.failure, sequenced=sequenced)
                    out.append(Failed(queue.topic, queue.partition, batch.tokens, batch.failure))
                else:
                    out.append(
                        Delivered(
                            queue.topic,
                            queue.partition,
                            batch.tokens,
                            batch.timestamps,
                            batch.base_offset,
                            batch.log_append_time,
                        )
                    )
            if not queue.unresolved:
                del self._accumulator.busy[key]

    def _finished(self, out: list[ProducerEffect]) -> None:
        oldest = min(
            (queue.unresolved[0].number for queue in self._accumulator.busy.values()), default=None
        )
        out += self._flushes.completed(oldest)
        closing = self._accumulator.closed and not self._closed
        settled = self.transactions is None or self.transactions.settled
        if closing and settled and oldest is None and not self._accumulator.waiting:
            self._closed = True
            out.append(ProducerClosed())

    def _next_due(self, now: float, flush_to: int) -> float | None:
        deadlines = [self._accumulator.next_deadline(), self._sender.next_due(now, flush_to)]
        for queue in self._accumulator.busy.values():
            deadlines.append(queue.unresolved[0].created_at + self._settings.delivery_timeout_s)
        requesting = self._producer_ids.state is ProducerIdState.NONE and self._accumulator.busy
        if self._settings.idempotent and requesting and self.transactions is None:
            deadlines.append(self._producer_ids.retry_at)
        if self.transactions is not None:
            deadlines.append(self.transactions.next_deadline())
        return min((each for each in deadlines if each is not None), default=None)


P = Producer

Handler: TypeAlias = Callable[[Producer, Any, float], Iterator[ProducerEffect]]

HANDLERS: Final[Mapping[type[ProducerEvent], Handler]] = {
    Cancel: P._cancel,
    Flush: P._flush,
    CloseProducer: P._close,
    Abandon: P._abandon,
    InitTransactions: P._on_call,
    BeginTransaction: P._on_call,
    SendOffsets: P._on_call,
    EndTransaction: P._on_call,
    ResponseReceived: P._on_response,
    NoResponse: P._on_failure,
    Sent: P._sent,
    MetadataChanged: P._metadata_changed,
    ClusterFailed: P._cluster_failed,
}

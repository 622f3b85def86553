"""Coordinates the transactions of one partition of `__transaction_state`.

A transition is appended first, and is the state once it is committed; until then, and until
the markers of a transaction are written, other requests of that transactional id get
CONCURRENT_TRANSACTIONS. A new coordinator knows only what it loads from the log.

    request ─▶ verdict ─▶ next value ─▶ log ─▶ committed ─▶ Result, WriteMarkers ─▶ markers_written
"""
# over 300 lines: one machine, with a handler of each request and what is due

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..protocol import ErrorCode
from ..records import Batch, BatchBuilder
from .config import TransactionConfig
from .requests import (
    AbortExpired,
    AddPartitions,
    CoordinatorLog,
    Effect,
    EndTransaction,
    InitProducerId,
    ProducerIdNeeded,
    Request,
    Result,
    VerifyPartitions,
    WriteMarkers,
)
from .states import TransactionState, Trigger
from .transaction import EPOCH_BUMPED, NONE, Transaction, read_record
from .verdicts import (
    current,
    end_error,
    identity_error,
    init_error,
    is_prepared,
    is_rotation_due,
    next_epochs,
)

E, S = ErrorCode, TransactionState


@dataclass(slots=True)
class InFlight:
    """A transition that is not committed yet. result: what the request gets then."""

    offset: int
    transactional_id: str
    result: Result | None


class TransactionCoordinator:
    """The transactional ids of one partition. epoch: the leader epoch of the partition."""

    def __init__(
        self,
        index: int,
        epoch: int,
        log: CoordinatorLog,
        config: TransactionConfig,
        now: float,
    ) -> None:
        self.index = index
        self.epoch = epoch
        self.config = config
        self._log = log
        self.transactions: dict[str, Transaction] = {}
        """Transactional id -> what is committed."""
        self.pending: dict[str, Transaction] = {}
        """Transactional id -> what is appended, not yet committed."""
        self._in_flight: deque[InFlight] = deque()
        self._timeouts: deque[tuple[float, InFlight]] = deque()
        self._loaded: int | None = None
        """The offset after what was loaded, until that is committed: markers wait for it."""
        self._abort_at = now + config.abort_interval
        self._expire_at = now + config.expire_interval

    def _now_ms(self, now: float) -> int:
        return self.config.epoch_ms + int(now * 1000)

    # -- the machine

    def load(self) -> list[Effect]:
        """Load the partition; go on with the transactions that were to end."""
        end = 0
        for data in self._log.batches(self.index):
            batch = Batch(data, 0, len(data))
            end = batch.last_offset + 1
            for record in () if batch.control else batch.records():
                read = read_record(record)
                if read is not None and read[1] is not None:
                    self.transactions[read[0]] = read[1]
                elif read is not None:
                    self.transactions.pop(read[0], None)
        self._loaded = end
        return self.committed(self._log.committed(self.index))

    def handle(self, request: Request, now: float) -> list[Effect]:
        """Handle a request; its result comes now or when its record is committed."""
        return _HANDLERS[type(request)](self, request, now)

    def committed(self, offset: int) -> list[Effect]:
        """Take note that the records before an offset are committed."""
        effects: list[Effect] = []
        if self._loaded is not None and self._loaded <= offset:
            self._loaded = None
            prepared = filter(is_prepared, self.transactions.values())
            effects += [self._markers(each) for each in prepared]
        while self._in_flight and self._in_flight[0].offset <= offset:
            done = self._in_flight.popleft()
            value = self.pending.pop(done.transactional_id)
            if value.state is S.DEAD:
                del self.transactions[done.transactional_id]
            else:
                self.transactions[done.transactional_id] = value
            if done.result is not None:
                effects.append(done.result)
                done.result = None
            if is_prepared(value):
                effects.append(self._markers(value))
        return effects

    def markers_written(self, marker: WriteMarkers, now: float) -> list[Effect]:
        """Complete a transaction, all of whose markers are written."""
        transaction = self.transactions.get(marker.transactional_id)
        is_current = (
            transaction is not None
            and is_prepared(transaction)
            and self._markers(transaction) == marker
        )
        if transaction is None or not is_current or marker.transactional_id in self.pending:
            return []
        return self._write(transaction.marked(self._now_ms(now)), None, now)

    def next_deadline(self) -> float | None:
        """Return when to call `advance`."""
        times = [self._timeouts[0][0]] if self._timeouts else []
        if self.transactions:
            times += [self._abort_at, self._expire_at]
        return min(times, default=None)

    def advance(self, now: float, version: int = 0) -> list[Effect]:
        """Do what is due. version: as in `InitProducerId`."""
        effects: list[Effect] = []
        while self._timeouts and self._timeouts[0][0] <= now:
            late = self._timeouts.popleft()[1]
            if late.result is not None:
                effects.append(Result(late.result.reply_to, E.COORDINATOR_NOT_AVAILABLE))
                late.result = None
        if self._abort_at <= now:
            self._abort_at = now + self.config.abort_interval
            effects += self._abort_expired(now, version)
        if self._expire_at <= now:
            self._expire_at = now + self.config.expire_interval
            effects += self._forget_expired(now)
        return effects

    def unload(self, error: ErrorCode) -> list[Effect]:
        """Return the results of requests whose records are not committed yet, and forget all."""
        waiting, self._in_flight = self._in_flight, deque()
        self._timeouts.clear()
        self.transactions.clear()
        self.pending.clear()
        results = [each.result for each in waiting if each.result is not None]
        return [Result(each.reply_to, error) for each in results]

    # -- writing

    def _write(self, value: Transaction, result: Result | None, now: float) -> list[Effect]:
        """Append a transition; the result is due when it is committed."""
        builder = BatchBuilder()
        builder.append(*value.record(), self._now_ms(now))
        self.pending[value.transactional_id] = value
        offset = self._log.append(self.index, builder, now)
        in_flight = InFlight(offset, value.transactional_id, result)
        self._in_flight.append(in_flight)
        if result is not None:
            self._timeouts.append((now + self.config.append_timeout, in_flight))
        return self.committed(self._log.committed(self.index))

    def _markers(self, value: Transaction) -> WriteMarkers:
        return WriteMarkers(
            self.index,
            value.transactional_id,
            value.producer_id,
            value.producer_epoch,
            value.state is S.PREPARE_COMMIT,
            self.epoch,
            value.version,
            value.partitions,
        )

    # -- one handler per request

    def _init(self, request: InitProducerId, now: float) -> list[Effect]:
        key, new = request.transactional_id, request.new_producer_id
        transaction = self.transactions.get(key)
        error = init_error(request, transaction, key in self.pending)
        if transaction is None and len(self.transactions) + len(self.pending) >= self.config.ids:
            error = error or E.POLICY_VIOLATION
        if error:
            return [Result(request.reply_to, error)]
        if transaction is None or is_rotation_due(request, transaction):
            if new == NONE:
                return [ProducerIdNeeded(request)]
            transaction = Transaction(key, new) if transaction is None else transaction.rotated(new)
        now_ms = self._now_ms(now)
        if transaction.state is S.ONGOING:
            busy = Result(request.reply_to, E.CONCURRENT_TRANSACTIONS)
            return self._fence(transaction, request, busy, now)
        epochs = next_epochs(transaction, request.producer_epoch)
        if epochs is None:
            return [Result(request.reply_to, E.PRODUCER_FENCED)]
        value = transaction.initialised(request.timeout_ms, *epochs, now_ms)
        result = Result(request.reply_to, E.NONE, value.producer_id, value.producer_epoch)
        return self._write(value, result, now)

    def _identity_error(self, request: AddPartitions | VerifyPartitions) -> ErrorCode:
        """Return the error of a request that names a producer."""
        key = request.transactional_id
        error = identity_error(
            self.transactions.get(key), request.producer_id, request.producer_epoch
        )
        return error or (E.CONCURRENT_TRANSACTIONS if key in self.pending else E.NONE)

    def _add(self, request: AddPartitions, now: float) -> list[Effect]:
        error = self._identity_error(request)
        result = Result(request.reply_to, error)
        if error:
            return [result]
        transaction = self.transactions[request.transactional_id]
        if transaction.state is S.ONGOING and request.partitions <= transaction.partitions:
            return [result]
        now_ms = self._now_ms(now)
        value = transaction.with_partitions(request.partitions, request.version, now_ms)
        return self._write(value, result, now)

    def _verify(self, request: VerifyPartitions, _now: float) -> list[Effect]:
        error = self._identity_error(request)
        missing = request.partitions
        if not error:
            transaction = self.transactions[request.transactional_id]
            missing -= transaction.partitions if transaction.state is S.ONGOING else frozenset()
        return [Result(request.reply_to, error, missing=missing)]

    def _end(self, request: EndTransaction, now: float) -> list[Effect]:
        transaction = self.transactions.get(request.transactional_id)
        error = end_error(request, transaction, request.transactional_id in self.pending)
        if transaction is None or error is not None:
            result = Result(request.reply_to, E.NONE if error is None else error)
            if transaction is not None and not error:
                result = current(request.reply_to, transaction)
            return [result]
        bumps = request.version >= EPOCH_BUMPED
        if bumps and transaction.is_exhausted and request.new_producer_id == NONE:
            return [ProducerIdNeeded(request)]
        next_id = request.new_producer_id if transaction.is_exhausted else NONE
        now_ms = self._now_ms(now)
        value = transaction.ended(request.commit, request.version, next_id, now_ms)
        return self._write(value, current(request.reply_to, value), now)

    # -- deadlines

    def _abort_expired(self, now: float, version: int) -> list[Effect]:
        """Abort the transactions whose timeout is over, and fence their producers."""
        now_ms = self._now_ms(now)
        ongoing = [each for each in self._settled() if each.state is S.ONGOING]
        due = [each for each in ongoing if each.start_ms + each.timeout_ms < now_ms]
        aborts = [AbortExpired.of(each, version) for each in due]
        return [effect for each in aborts for effect in self._abort(each, now)]

    def _abort(self, request: AbortExpired, now: float) -> list[Effect]:
        """Abort a transaction whose timeout is over, if it is still the same."""
        transaction = self.transactions.get(request.transactional_id)
        if transaction is None or request.transactional_id in self.pending:
            return []
        if AbortExpired.of(transaction, request.version, request.new_producer_id) != request:
            return []
        return self._fence(transaction, request, None, now)

    def _fence(
        self,
        transaction: Transaction,
        request: InitProducerId | AbortExpired,
        result: Result | None,
        now: float,
    ) -> list[Effect]:
        """Abort a transaction; a producer id whose epochs are used up makes way for another."""
        rotates = transaction.is_exhausted and request.version >= EPOCH_BUMPED
        if rotates and request.new_producer_id == NONE:
            return [ProducerIdNeeded(request)]
        new = request.new_producer_id if rotates else NONE
        fenced = transaction.fenced(self._now_ms(now), request.version, new)
        return self._write(fenced, result, now)

    def _forget_expired(self, now: float) -> list[Effect]:
        """Forget the transactional ids that were not used for so long."""
        now_ms = self._now_ms(now)
        oldest = now_ms - self.config.expiration_ms
        due = [each for each in self._settled() if each.is_idle and each.updated_ms <= oldest]
        dead = [each.after(Trigger.EXPIRED, now_ms) for each in due]
        return [effect for each in dead for effect in self._write(each, None, now)]

    def _settled(self) -> list[Transaction]:
        """Return what has no transition in flight."""
        return [each for key, each in self.transactions.items() if key not in self.pending]


_HANDLERS: Final[Mapping[type, Callable[[TransactionCoordinator, Any, float], list[Effect]]]] = {
    InitProducerId: TransactionCoordinator._init,
    AddPartitions: TransactionCoordinator._add,
    VerifyPartitions: TransactionCoordinator._verify,
    EndTransaction: TransactionCoordinator._end,
    AbortExpired: TransactionCoordinator._abort,
}

"""The producer: records in, requests out, one result for each record.

Law: every token comes back once; of a partition, in order; whatever brokers and networks do, within
delivery.timeout.ms.

    Send ─▶ intake ─▶ lanes ─▶ drain (ready, led, allowed) ─▶ Ask Produce ─▶ Answered ─▶ verdict
                        ▲                                                       │
                        └── again, split, numbered anew ◀───────────────────────┤
                                         Delivered, Failed (in order) ◀─────────┘
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import count
from typing import Final, NamedTuple

from ...errors import LocalProtocolError
from ...messages.api_key import ApiKey
from ...messages.produce_response import PartitionProduceResponse, ProduceResponse
from ...protocol.error_code import ErrorCode
from ..network.backoff import Rng
from ..network.cluster import Broker, ClusterView
from ..requests import (
    ClusterFailed,
    MetadataChanged,
    NoResponse,
    Reason,
    RequestMetadataUpdate,
    ResponseReceived,
    SendRequest,
    Sent,
    TrackTopics,
)
from .checking import checked
from .configuration import ProducerSettings
from .delivery_reports import DeliveryReports
from .events import (
    Abandon,
    CloseProducer,
    Delivered,
    Failed,
    Failure,
    Flush,
    Flushed,
    ProducerClosed,
    Send,
    Withdraw,
)
from .produce_requests import results
from .producer_id import IDENTITY, Identities, IdentityState
from .record_accumulator import RecordAccumulator, refused
from .sender import Load, Sender


class Mark(NamedTuple):
    """How far a flush reaches: batches by number, and parked records by arrival; -1: none now."""

    number: int
    arrival: int


CLOSED: Final = Failure(ErrorCode.NONE, Reason.CLOSED, "the producer is closed")


class Producer:
    """The machine; `owner` is its name in the client."""

    def __init__(
        self, settings: ProducerSettings, view: ClusterView, *, rng: Rng, owner: str = "producer"
    ) -> None:
        self._settings = settings
        self._owner = owner
        self._accumulator = RecordAccumulator(settings, view, rng)
        self._identities = Identities(owner, settings.request_timeout_s, settings.retry, rng)
        self._delivery_reports = DeliveryReports(
            settings, view, self._accumulator, self._identities, rng
        )
        self._drain = Sender(settings, view, self._accumulator, self._identities)
        self._tickets = count()
        self._loads: dict[int, Load] = {}
        self._flushes: dict[Hashable, Mark] = {}
        self._tracked: frozenset[str] = frozenset()
        self._closing = False
        self._closed = False
        self._due: float | None = None
        self._given: list[list[Hashable]] = []  # by the events since the last Send

    def handle(self, event: object, now: float) -> list[object]:
        """Take an event; a Send that only joins an open batch costs next to nothing.

        Raises InvalidValue, OutOfRange, and changes nothing, for a record that cannot be encoded.
        """
        if type(event) is Send:
            return self._send(event, now)
        handler = HANDLERS.get(type(event))
        if handler is None:
            raise LocalProtocolError(f"a producer does not know what {type(event).__name__} is")
        out = list(handler(self, event, now))
        self._settle(now, out)
        return out

    @property
    def begun(self) -> int:
        """The number of the batch that was begun last, -1 for none."""
        return self._accumulator.last_number

    def outstanding(self) -> Iterator[Hashable]:
        """Walk the tokens of all records that have no result, or whose result the last events may
        have lost to an exception; reads only.
        """
        for queue in self._accumulator.busy.values():
            for batch in queue.unresolved:
                yield from batch.tokens
        yield from self._accumulator.parked_tokens()
        for tokens in self._given:
            yield from tokens

    def next_deadline(self) -> float | None:
        return self._due

    def advance(self, now: float) -> list[object]:
        if self._due is None or now < self._due:
            return []
        out = list(self._accumulator.advance(now))
        for queue in list(self._accumulator.busy.values()):
            self._delivery_reports.expire(queue, now)
        self._settle(now, out)
        return out

    # The user's events.

    def _send(self, record: Send, now: float) -> list[object]:
        record = checked(record)
        if self._closing:
            return [refused(record, CLOSED)]
        if self._identities.failure is not None:
            return [refused(record, self._identities.failure)]
        accumulator, number = self._accumulator, self._accumulator.last_number
        out = accumulator.take(record, now)
        if not out and accumulator.last_number == number:
            return out  # it joined a batch that was there
        self._given.clear()
        if out or self._drain.worth_trying(now):
            self._settle(now, out)
        else:
            linger = now + self._settings.linger_s
            self._due = linger if self._due is None else min(self._due, linger)
        return out

    def _withdraw(self, event: Withdraw, _: float) -> Iterator[object]:
        self._accumulator.withdraw(event.token)
        yield from ()

    def _flush(self, event: Flush, _: float) -> Iterator[object]:
        self._flushes[event.token] = Mark(
            self._accumulator.last_number, self._accumulator.last_arrival
        )
        yield from ()

    def _close(self, _: CloseProducer, __: float) -> Iterator[object]:
        self._closing = True
        yield from ()

    def _abandon(self, _: Abandon, __: float) -> Iterator[object]:
        self._closing = True
        yield from self._accumulator.fail_parked(CLOSED)
        self._delivery_reports.fail_all(CLOSED)

    # The network's events.

    def _answered(self, event: ResponseReceived, now: float) -> Iterator[object]:
        if event.ask.key == IDENTITY:
            self._identities.answered(event, now)
            yield from self._if_refused()
            return
        load = self._unload(event.ask)
        assert isinstance(event.message, ProduceResponse)
        found = results(event.message, load.rows)
        endpoints = tuple(
            Broker(each.node_id, each.host, each.port, each.rack)
            for each in event.message.node_endpoints
        )
        for queue, batch in load.batches:
            row = found.get((queue.topic, queue.partition))
            if row is None:
                row = PartitionProduceResponse(
                    error_code=ErrorCode.NETWORK_EXCEPTION, error_message="not in the answer"
                )
            yield from self._delivery_reports.judge(queue, batch, row, endpoints, now)

    def _unanswered(self, event: NoResponse, now: float) -> Iterator[object]:
        if event.ask.key == IDENTITY:
            self._identities.unanswered(event, now)
            yield from self._if_refused()
            return
        failure = Failure(event.code, event.reason, event.detail)
        if event.retriable:
            yield RequestMetadataUpdate()
        for queue, batch in self._unload(event.ask).batches:
            if batch.done:
                queue.in_flight.remove(batch)
            elif event.retriable:
                self._delivery_reports.again(queue, batch, failure, now)
            else:
                queue.in_flight.remove(batch)
                self._delivery_reports.fail(queue, batch, failure)

    def _sent(self, event: Sent, _: float) -> Iterator[object]:
        for queue, batch in self._unload(event.ask).batches:
            queue.in_flight.remove(batch)
            if not batch.done:
                batch.deliver(-1, -1)
        yield from ()

    def _metadata_changed(self, _: MetadataChanged, now: float) -> Iterator[object]:
        for queue in self._accumulator.busy.values():
            if queue.led_anew:  # KIP-951: another broker leads, there is nothing to wait for
                queue.led_anew, queue.not_before = False, now
        missing = self._accumulator.unknown_topics()
        if missing:
            yield RequestMetadataUpdate(missing)

    def _cluster_failed(self, event: ClusterFailed, _: float) -> Iterator[object]:
        failure = Failure(ErrorCode.NONE, event.reason, event.detail)
        yield from self._accumulator.fail_parked(failure)

    def _if_refused(self) -> Iterator[object]:
        failure = self._identities.failure
        if self._identities.state is not IdentityState.REFUSED or failure is None:
            return
        yield from self._accumulator.fail_parked(failure)
        self._delivery_reports.fail_all(failure)

    def _unload(self, ask: SendRequest) -> Load:
        assert isinstance(ask.key, int)
        load = self._loads.pop(ask.key)
        self._drain.unloaded(load)
        return load

    # After every event.

    def _settle(self, now: float, out: list[object]) -> None:
        """Give results, place what waits, send what can be sent, say what is finished."""
        self._results(out)
        if self._accumulator.waiting:
            out += self._accumulator.retry(now)
        self._given += [each.tokens for each in out if isinstance(each, Failed)]
        topics = frozenset(self._accumulator.topics)
        if topics != self._tracked:
            self._tracked = topics
            out.append(TrackTopics(self._owner, topics))
        if self._settings.idempotent and self._accumulator.busy:
            out += self._identities.ask(now)
        flush_to = self._flush_to()
        for load in self._drain.loads(now, flush_to):
            ticket = next(self._tickets)
            self._loads[ticket] = load
            out.append(self._ask(ticket, load))
        unbuilt = self._drain.unbuilt > 0
        if unbuilt:
            self._results(out)
        if self._drain.leaderless:
            out.append(RequestMetadataUpdate())
        self._finished(out)
        # where batches failed just now there is room for what is parked
        self._due = now if unbuilt else self._next_due(now, flush_to)

    def _flush_to(self) -> int:
        """Say up to which batch nothing lingers; what was parked before a flush belongs to it."""
        accumulator = self._accumulator
        for token, mark in self._flushes.items():
            if accumulator.parked_since(mark.arrival):
                self._flushes[token] = Mark(accumulator.last_number, mark.arrival)
            elif mark.arrival >= 0:
                self._flushes[token] = Mark(accumulator.last_number, -1)
        if self._closing:
            return accumulator.last_number
        return max((mark.number for mark in self._flushes.values()), default=-1)

    def _ask(self, ticket: int, load: Load) -> SendRequest:
        return SendRequest(
            self._owner,
            ticket,
            load.node,
            ApiKey.PRODUCE,
            load.body,
            self._settings.request_timeout_s,
            has_response=self._settings.acks != 0,
        )

    def _results(self, out: list[object]) -> None:
        for key, queue in list(self._accumulator.busy.items()):
            for batch in queue.resolved():
                self._accumulator.used -= batch.size
                self._given.append(batch.tokens)
                if batch.failure is not None:
                    out.append(Failed(queue.topic, queue.partition, batch.tokens, batch.failure))
                else:
                    out.append(
                        Delivered(
                            queue.topic,
                            queue.partition,
                            batch.tokens,
                            batch.base_offset,
                            batch.log_append_time,
                        )
                    )
            if not queue.unresolved:
                del self._accumulator.busy[key]

    def _finished(self, out: list[object]) -> None:
        oldest = min(
            (queue.unresolved[0].number for queue in self._accumulator.busy.values()), default=None
        )
        for token, mark in list(self._flushes.items()):
            if mark.arrival < 0 and (oldest is None or oldest > mark.number):
                del self._flushes[token]
                out.append(Flushed(token))
        if self._closing and not self._closed and oldest is None and not self._accumulator.waiting:
            self._closed = True
            out.append(ProducerClosed())

    def _next_due(self, now: float, flush_to: int) -> float | None:
        found = [self._accumulator.next_deadline(), self._drain.next_due(now, flush_to)]
        for queue in self._accumulator.busy.values():
            found.append(queue.unresolved[0].created_at + self._settings.delivery_timeout_s)
        asking = self._identities.state is IdentityState.NONE and self._accumulator.busy
        if self._settings.idempotent and asking:
            found.append(self._identities.again_at)
        return min((at for at in found if at is not None), default=None)


P = Producer

HANDLERS: Final[Mapping[type, Callable[..., Iterator[object]]]] = {
    Withdraw: P._withdraw,
    Flush: P._flush,
    CloseProducer: P._close,
    Abandon: P._abandon,
    ResponseReceived: P._answered,
    NoResponse: P._unanswered,
    Sent: P._sent,
    MetadataChanged: P._metadata_changed,
    ClusterFailed: P._cluster_failed,
}

"""Collects the transactions of a capture, by transactional id.

A transaction begins with the first request that adds to it, and ends with EndTxn, or with the
InitProducerId of a new producer; memory grows with transactional ids, not with transactions.

    InitProducerId ------------> producer id, epoch; aborts what is open
    AddPartitionsToTxn --.
    AddOffsetsToTxn -----+-----> begin, partitions, offsets    (Produce and TxnOffsetCommit add
    Produce -------------+                                      partitions themselves: KIP-890)
    TxnOffsetCommit -----'
    EndTxn --------------------> commit, abort; the next epoch (KIP-890)
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, Final

from kafkawire.capture.exchanges.exchanges import Ended, Exchange
from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.tables.extraction.entities import ERROR_CODES, Entities
from kafkawire.messages.api_key import ApiKey
from kafkawire.protocol.error_code import ErrorCode

from .reading import Collector, Reading
from .transaction import ORDERS, IdHistory, Producer, State, Transaction

FENCED: Final = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)
"""Errors of a producer whose epoch is over: its transaction was aborted by the coordinator."""

IMPLICIT_VERSION: Final = 12
"""From this version on, Produce adds its partitions to the transaction (KIP-890)."""


MAGIC_AT: Final = 16
PRODUCER_AT: Final = 43
PRODUCER: Final = Struct(">qh")
"""Magic, and producer id and epoch, in the header of a record batch."""


class Transactions(Collector):
    """Collects transactions.

    all: the histories, by transactional id. last_ns: the time of the last packet.
    """

    entities = frozenset({ERROR_CODES})

    def __init__(self, reading: Reading) -> None:
        self._names = reading.context.names
        self._histories: dict[str, IdHistory] = {}
        self.last_ns = NO_TIME

    def in_order(self, order: str) -> list[IdHistory]:
        """Return the histories in one of ORDERS."""
        return sorted(self.all, key=ORDERS[order])

    @property
    def all(self) -> list[IdHistory]:
        """Return the histories, by id."""
        return sorted(self._histories.values(), key=lambda one: one.transactional_id)

    def finish(self) -> None:
        """Handle the end of the capture: explain what is still open."""
        for history in self._histories.values():
            if history.current is not None:
                self._explain(history, history.current)

    def ended(self, connection: Ended) -> None:
        """Note until when the capture has packets, of whatever connection."""
        self.last_ns = max(self.last_ns, connection.last_ns)

    def exchange(self, exchange: Exchange, entities: Entities) -> None:
        """Handle the next exchange."""
        request = exchange.request
        if request is None or request.message is None:
            return
        if request.time_ns != NO_TIME:
            self.last_ns = max(self.last_ns, request.time_ns)
        handle = None if request.api_key is None else HANDLERS.get(request.api_key)
        transactional_id = None if handle is None else _id_of(request.message)
        if handle is None or not transactional_id:
            return
        history = self._histories.get(transactional_id)
        if history is None:
            history = self._histories[transactional_id] = IdHistory(transactional_id)
        history.clients[request.client_id] = None
        handle(self, history, exchange, entities)

    # -- requests

    def _init(self, history: IdHistory, exchange: Exchange, entities: Entities) -> None:
        request, response = _messages(exchange)
        history.timeout_ms = request.transaction_timeout_ms
        if response is None or response.error_code:
            history.errors.update(list(entities.error_codes))
            return
        producer = Producer(response.producer_id, response.producer_epoch)
        if history.current is not None and response.ongoing_txn_producer_id < 0:
            same = request.producer_id == history.current.producer.producer_id
            who = "of the same producer" if same else f"of client {_client(exchange)!r}"
            reason = f"fenced by InitProducerId {who}, epoch {producer.producer_epoch}"
            history.end(State.ABORTED, reason, exchange.main_row.time_ns)
        history.set_producer(producer)

    def _add_partitions(self, history: IdHistory, exchange: Exchange, entities: Entities) -> None:
        request, _ = _messages(exchange)
        if request.transactions:
            return  # of a broker, for several producers: only verified, or added by their Produce
        producer = Producer(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
        open_one = self._open(history, exchange, entities, producer)
        if open_one is not None and not entities.error_codes:
            for one in request.v3_and_below_topics:
                for partition in one.partitions:
                    topic = self._names.topic(one.name)
                    open_one.add_partition(topic, partition, implicit=False)

    def _add_offsets(self, history: IdHistory, exchange: Exchange, entities: Entities) -> None:
        request, _ = _messages(exchange)
        open_one = self._open(history, exchange, entities, _producer(request))
        if open_one is not None and not entities.error_codes:
            open_one.groups.setdefault(request.group_id, 0)

    def _commit_offsets(self, history: IdHistory, exchange: Exchange, entities: Entities) -> None:
        request, _ = _messages(exchange)
        open_one = self._open(history, exchange, entities, _producer(request))
        if open_one is not None and not entities.error_codes:
            count = sum(len(topic.partitions) for topic in request.topics)
            before = open_one.groups.get(request.group_id, 0)
            open_one.groups[request.group_id] = before + count

    def _produce(self, history: IdHistory, exchange: Exchange, entities: Entities) -> None:
        request, _ = _messages(exchange)
        producer = next(
            filter(
                None,
                (
                    _of_batch(data.records)
                    for one in request.topic_data
                    for data in one.partition_data
                ),
            ),
            history.producer,
        )
        open_one = self._open(history, exchange, entities, producer)
        if open_one is None:
            return
        implicit = (exchange.main_row.api_version or 0) >= IMPLICIT_VERSION
        for one in request.topic_data:
            topic = self._names.topic(one.name, one.topic_id)
            for data in one.partition_data:
                open_one.bytes += len(data.records or b"")
                if not entities.error_codes:
                    open_one.add_partition(topic, data.index, implicit=implicit)

    def _end(self, history: IdHistory, exchange: Exchange, entities: Entities) -> None:
        request, response = _messages(exchange)
        row = exchange.main_row
        codes = set(entities.error_codes)
        if history.is_stale(_producer(request)):
            history.errors.update(codes)
            return
        if history.current is None:
            if history.last is not None and history.last.state is not State.UNKNOWN:
                history.errors.update(codes)
                return  # sent again, or of a producer that was fenced
            if history.last is None:
                begin = NO_TIME if not history.producers else row.time_ns
                history.current = Transaction(
                    history.transactional_id, _producer(request), row.client_id, begin
                )
            else:  # the response to the first EndTxn was not captured
                history.reopen()
        assert history.current is not None
        errors = history.current.errors
        errors.update(codes)
        verb = "commit" if request.committed else "abort"
        if response is None:
            history.end(State.UNKNOWN, f"no response to EndTxn ({verb})", row.time_ns)
        elif not codes:
            reason = "" if request.committed else f"by the client{_after(errors)}"
            state = State.COMMITTED if request.committed else State.ABORTED
            history.end(state, reason, row.time_ns)
            history.set_producer(Producer(response.producer_id, response.producer_epoch))
        elif codes & FENCED:
            history.end(State.ABORTED, f"fenced: {_names(codes)} at EndTxn ({verb})", row.time_ns)
        elif not any(_is_retriable(code) for code in codes):
            history.end(State.UNKNOWN, f"{_names(codes)} at EndTxn ({verb})", row.time_ns)

    # -- the open transaction

    def _open(
        self, history: IdHistory, exchange: Exchange, entities: Entities, producer: Producer
    ) -> Transaction | None:
        """Return the transaction that a request belongs to; None if it failed to begin one."""
        row = exchange.main_row
        codes = list(entities.error_codes)
        last = history.last
        if last is not None and last.end_ns != NO_TIME and row.time_ns <= last.end_ns:
            last.errors.update(codes)  # its response came late, or never
            return last
        if history.is_stale(producer):
            history.errors.update(codes)
            return None
        if history.current is None:
            if codes:
                history.errors.update(codes)
                return None
            if producer.producer_id >= 0:
                history.set_producer(producer)
            history.current = Transaction(
                history.transactional_id, history.producer, row.client_id, row.time_ns
            )
        history.current.errors.update(codes)
        return history.current

    def _explain(self, history: IdHistory, hanging: Transaction) -> None:
        """Say why a transaction has no end."""
        fenced = {code for code in hanging.errors if code in FENCED}
        late = self._is_late(history, hanging)
        timeout = f"the timeout of {history.timeout_ms} ms passed" if late else ""
        if fenced:
            reason = f"fenced: {_names(fenced)}"
            history.end(State.ABORTED, "; ".join(filter(None, (timeout, reason))), NO_TIME)
        else:
            hanging.reason = timeout + (_after(hanging.errors) if hanging.errors else "")

    def _is_late(self, history: IdHistory, hanging: Transaction) -> bool:
        if history.timeout_ms is None or hanging.begin_ns == NO_TIME:
            return False
        return self.last_ns - hanging.begin_ns > history.timeout_ms * 1_000_000


HANDLERS: Final[dict[int, Callable[[Transactions, IdHistory, Exchange, Entities], None]]] = {
    ApiKey.INIT_PRODUCER_ID: Transactions._init,
    ApiKey.ADD_PARTITIONS_TO_TXN: Transactions._add_partitions,
    ApiKey.ADD_OFFSETS_TO_TXN: Transactions._add_offsets,
    ApiKey.TXN_OFFSET_COMMIT: Transactions._commit_offsets,
    ApiKey.END_TXN: Transactions._end,
    ApiKey.PRODUCE: Transactions._produce,
}
"""API key -> what handles its exchanges."""


def _id_of(message: Any) -> str | None:
    """Return the transactional id of a request."""
    id = getattr(message, "transactional_id", None)
    if id is None:
        id = getattr(message, "v3_and_below_transactional_id", None)
    return id if isinstance(id, str) else None


def _messages(exchange: Exchange) -> tuple[Any, Any]:
    request, response = exchange.request, exchange.response
    assert request is not None
    return request.message, None if response is None else response.message


def _of_batch(records: bytes | None) -> Producer | None:
    """Return the producer in the header of the first record batch, which is not compressed."""
    if records is None or len(records) < PRODUCER_AT + PRODUCER.size or records[MAGIC_AT] != 2:
        return None
    return Producer(*PRODUCER.unpack_from(records, PRODUCER_AT))


def _producer(request: Any) -> Producer:
    return Producer(request.producer_id, request.producer_epoch)


def _client(exchange: Exchange) -> str:
    return exchange.main_row.client_id or exchange.client


def _names(codes: set[int]) -> str:
    return ", ".join(ErrorCode.name_of(code) for code in sorted(codes))


def _after(errors: Any) -> str:
    return f" after {_names(set(errors))}" if errors else ""


def _is_retriable(code: int) -> bool:
    try:
        return ErrorCode(code).retriable
    except ValueError:
        return False

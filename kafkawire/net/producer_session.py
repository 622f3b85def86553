"""The state behind a producer's calls: machine, futures of records, flushes.

Each record that the machine accepted gets its result in its future, in order within a partition.

    a call ─▶ event ─▶ machine ─▶ Delivered, Failed, ... ─▶ futures
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Hashable, Iterable, Mapping
from itertools import count, islice, repeat
from typing import Final, NamedTuple, TypeAlias, assert_never, cast

from ..client.cluster import ClusterView
from ..client.config import Setting, client_metrics, read_config
from ..client.failures import AlreadyStarted, ClientFailed
from ..client.metrics import MetricName
from ..client.metrics.tables import PRODUCER, RECORDS_FAILED
from ..client.producer import (
    PRODUCER_KEYS,
    Abandon,
    Appended,
    Blocked,
    Cancel,
    CloseProducer,
    Delivered,
    Failed,
    Flush,
    Flushed,
    ProducerClosed,
    TransactionDone,
    TransactionFailed,
    producer_settings,
)
from ..client.producer import Producer as ProducerMachine
from ..client.producer.events import UserEffect
from ..client.producer.record_failures import raised
from .clients.driver import DriverFailed
from .clients.loop_iteration import LoopIteration
from .clients.open_client import open_client
from .clients.sent_rows import SentBatches
from .clients.transactions import TransactionCalls
from .measured import measured

UNKNOWN: Final = -1


class RecordMetadata(NamedTuple):
    """The position of a record; offset -1 if the broker did not report it (acks=0).

    timestamp: milliseconds, the broker's own for topics with log append time.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


NEW: Final = tuple.__new__
_Token: TypeAlias = asyncio.Future[RecordMetadata]
"""The machine's token of a record: the future of its result."""


class ProducerSession(TransactionCalls):
    """A producer's lifecycle and its events with the machine; `Producer` has the calls."""

    def __init__(self, config: Mapping[str, Setting]) -> None:
        self._values = read_config(PRODUCER_KEYS, config)
        super().__init__(producer_settings(self._values))
        self._metrics = client_metrics(self._values, "producer", PRODUCER)
        self._last_batch_number = -1
        self._iteration = LoopIteration()
        self._blocked: dict[Hashable, asyncio.Future[None]] = {}
        self._flushes: dict[Hashable, asyncio.Future[None]] = {}
        self._done: asyncio.Future[None] | None = None
        self._sent = SentBatches()

    async def start(self) -> None:
        """Start to connect; `async with` calls it."""
        if self._driver is not None:
            raise AlreadyStarted("the producer")
        self._done = asyncio.get_running_loop().create_future()
        self._driver = open_client(
            self._values,
            self._owners,
            self._on_effect,
            auto_create_topics=True,
            metrics=self._metrics,
        )

    def metrics(self) -> dict[MetricName, float]:
        """Return what this producer measures, by Kafka's names."""
        driver, machine = self._running()
        name, group = self._metrics.name, self._metrics.group
        return {
            **measured(self._metrics, driver),
            name(group, "buffer-available-bytes"): float(machine.available_bytes),
            name(group, "buffer-total-bytes"): float(self._settings.buffer_memory),
        }

    async def flush(self) -> None:
        """Send all accepted records without lingering; wait until each has its result."""
        driver, _ = self._running()
        token = next(self._tokens)
        done = self._flushes[token] = driver.loop.create_future()
        driver.handle(Flush(token))
        try:
            await done
        finally:
            self._flushes.pop(token, None)

    async def close(self, timeout_s: float | None = None) -> None:
        """Deliver all accepted records, abort a transaction that is open, then close.

        timeout_s: how long that may take; records without a result then fail. None waits for at
        most delivery.timeout.ms.
        """
        driver, done = self._driver, self._done
        if driver is None or done is None:
            return
        try:
            driver.handle(CloseProducer())
            if timeout_s is None and self._settings.transactional_id is not None:
                timeout_s = self._settings.delivery_timeout_s  # its coordinator may be gone
            await asyncio.wait([done], timeout=timeout_s)
        finally:
            driver.handle(Abandon())
            self._machine = None
            await driver.close()

    def _owners(self, view: ClusterView) -> Mapping[str, ProducerMachine]:
        self._machine = ProducerMachine(
            self._settings, view, rng=random.random, metrics=self._metrics
        )
        return {"producer": self._machine}

    async def _wait(self, token: _Token, waiting: asyncio.Future[None]) -> None:
        """Wait until a blocked record is appended to a batch or has failed."""
        try:
            await waiting
        finally:
            if self._blocked.pop(token, None) is not None:
                driver, _ = self._running()
                driver.handle(Cancel(token))
                token.cancel()

    def _on_effect(self, effect: UserEffect | DriverFailed) -> None:
        match effect:
            case Delivered():
                self._delivered(effect)
                self._iteration.on_result()
            case Failed():
                self._failed(effect)
                self._iteration.on_result()
            case Blocked(token=token):
                self._blocked[token] = asyncio.get_running_loop().create_future()
            case Appended(token=token):
                self._placed(token)
            case Flushed(token=token):
                _complete(self._flushes.get(token))
            case ProducerClosed():
                _complete(self._done)
            case TransactionDone() | TransactionFailed():
                self._on_transaction(effect)
            case DriverFailed(error=error):
                self._client_failed(error)
            case _:
                assert_never(effect)

    def _client_failed(self, error: ClientFailed) -> None:
        """Fail everything that waits: the machine is closed."""
        machine, self._machine = self._machine, None
        tokens = [] if machine is None else list(machine.outstanding())
        self._sent.fail(tokens, lambda: error)
        for future in self._pending(tokens):
            future.set_exception(error)
        for waiting in (*self._flushes.values(), *self._calls.values()):
            if not waiting.done():
                waiting.set_exception(error)
        _complete(self._done)

    def _pending(self, tokens: list[Hashable]) -> list[asyncio.Future[RecordMetadata]]:
        """Return the futures without a result of these records; none is blocked any more."""
        for token in tokens:
            self._placed(token)
        futures = cast(list[_Token], [token for token in tokens if type(token) is not int])
        return [future for future in futures if not future.done()]

    def _delivered(self, effect: Delivered) -> None:
        offset, appended = effect.base_offset, effect.log_append_time
        offsets = repeat(UNKNOWN) if offset == UNKNOWN else count(offset)
        times = effect.timestamps if appended == UNKNOWN else repeat(appended)
        if self._sent:
            self._deliver_with_rows(effect, offsets, times)
            return
        # a result for each record, without bytecode for each
        rows = zip(repeat(effect.topic), repeat(effect.partition), offsets, times, strict=False)
        results = map(NEW, repeat(RecordMetadata), rows)
        for future, result in zip(cast(list[_Token], effect.tokens), results, strict=False):
            if not future.done():
                future.set_result(result)

    def _deliver_with_rows(
        self, effect: Delivered, offsets: Iterable[int], times: Iterable[int]
    ) -> None:
        """Deliver a batch that may have rows of `send_batch` besides records with futures."""
        topic, partition = effect.topic, effect.partition
        of_rows = list(islice(offsets, len(effect.tokens)))
        self._sent.place(effect.tokens, partition, of_rows)
        for token, offset, time in zip(effect.tokens, of_rows, times, strict=False):
            if type(token) is not int:
                future = cast(_Token, token)
                if not future.done():
                    future.set_result(RecordMetadata(topic, partition, offset, time))

    def _failed(self, effect: Failed) -> None:
        if self._driver is not None:
            self._metrics.record(RECORDS_FAILED, len(effect.tokens), self._driver.now())
        self._sent.fail(effect.tokens, lambda: raised(effect.failure))
        for future in self._pending(effect.tokens):
            future.set_exception(raised(effect.failure))
            if self._settings.transactional_id is not None:
                future.exception()  # the commit raises: the user need not look

    def _placed(self, token: Hashable) -> None:
        _complete(self._blocked.pop(token, None))


def _complete(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)

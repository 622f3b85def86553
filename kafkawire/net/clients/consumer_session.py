"""The state behind a consumer's calls: machine, buffered records, futures, listener calls.

Buffered records belong to the machine until they are returned: they go back before any other
event. Each pending call gets its result, or ClientClosed.

    a call --> event --> machine --> effect --> records | error | future | listener
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Generic, Protocol, assert_never

from ...client.arguments import seconds
from ...client.cluster import ClusterView
from ...client.config import Setting, client_metrics
from ...client.consumer import Consumer as ConsumerMachine
from ...client.consumer import (
    ConsumerRecord,
    TopicPartition,
    consumer_config,
    events,
    read_consumer_config,
)
from ...client.consumer.columns import FetchedColumns
from ...client.consumer.deserializing import Deserializers
from ...client.metrics import MetricName
from ...client.metrics.tables import CONSUMER, RECORDS_CONSUMED
from ...client.serialization import Deserializer, KeyT, ValueT
from ..interceptors import OnCommit, OnConsume, intercepted, notify
from ..measured import lags
from ..sockets.memory import keep_freed
from .driver import DriverFailed
from .polling_client import PollingClient

if TYPE_CHECKING:
    from ...client.consumer.arrow import ArrowBatches

LOG: Final = logging.getLogger("kafkawire.consumer")
NANOSECONDS_PER_MILLISECOND: Final = 1_000_000
COPIES: Final = 4
"""Fetched records in memory: as received, as a frame, as the field of a response, as values."""


class RebalanceListener(Protocol):
    """Receives changes of the consumer's assignment; its methods may be coroutines.

    Called during a poll, `unsubscribe` or `close`. An exception of a method is raised by that
    call.
    """

    def on_partitions_revoked(
        self, partitions: Collection[TopicPartition]
    ) -> Awaitable[None] | None:
        """They are still assigned to this consumer, until this returns."""
        ...

    def on_partitions_assigned(
        self, partitions: Collection[TopicPartition]
    ) -> Awaitable[None] | None:
        """They are newly assigned; none of their records was returned yet."""
        ...

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """They are already assigned to other members: their offsets cannot be committed."""
        ...


class ConsumerSession(
    PollingClient[ConsumerMachine, ConsumerRecord, ConsumerRecord[KeyT, ValueT]],
    Generic[KeyT, ValueT],
):
    """A consumer's lifecycle and its events with the machine; `Consumer` has the calls."""

    what = "consumer"

    def __init__(
        self,
        config: Mapping[str, Setting],
        *,
        key_deserializer: Deserializer[KeyT] | None = None,
        value_deserializer: Deserializer[ValueT] | None = None,
        on_consume: Sequence[OnConsume[KeyT, ValueT]] | None = None,
        on_commit: Sequence[OnCommit] | None = None,
    ) -> None:
        self._deserializers = Deserializers(key_deserializer, value_deserializer)
        self._on_consume = tuple(on_consume or ())
        self._on_commit = tuple(on_commit or ())
        changes = self._deserializers or on_consume
        values = read_consumer_config(config)
        metrics = client_metrics(values, "consumer", CONSUMER)
        super().__init__(values, self._user_record if changes else None, metrics)
        self._config = consumer_config(self._values)
        self._unread_columns: FetchedColumns | None = None
        self._arrow: ArrowBatches | None = None
        self._listener: RebalanceListener | None = None
        self._listener_call: events.CallListener | None = None
        self._listener_task: asyncio.Task[None] | None = None

    # -- lifecycle

    async def start(self) -> None:
        """Start to connect; `async with` calls it."""
        await super().start()
        keep_freed(COPIES * self._config.max_partition_fetch_bytes)

    async def close(self, timeout_s: float = 30.0) -> None:
        """Commit offsets if enable.auto.commit is on, leave the group, and close.

        timeout_s: how long that may take. On return nothing is open, even if cancelled.
        """
        await super().close(timeout_s)

    def metrics(self) -> dict[MetricName, float]:
        """Return what this consumer measures, by Kafka's names; lags as of the last fetches."""
        positions = self._running()[1].positions
        return {
            **super().metrics(),
            **lags(self._metrics, positions, self._config.isolation_level),
        }

    # -- events and effects

    def _owners(self, view: ClusterView) -> Mapping[str, ConsumerMachine]:
        self._machine = ConsumerMachine(
            self._config,
            view,
            rng=random.random,
            clock_ms=lambda: time.time_ns() // NANOSECONDS_PER_MILLISECOND,
        )
        return {"consumer": self._machine}

    def _send_event(self, event: events.UserEvent) -> None:
        """Pass the machine an event of the user; buffered records go back first."""
        driver, _ = self._running()
        interrupted = self._return_records() and self._polling
        try:
            driver.handle(event)
        finally:
            if interrupted:  # another task's poll was about to return them
                driver.handle(self._poll_event)

    def _poll_finished(self) -> bool:
        return self._unread_columns is not None or super()._poll_finished()

    def _return_records(self) -> bool:
        """Return records and columns to the machine that the user has not seen; whether any."""
        columns, self._unread_columns = self._unread_columns, None
        if columns is not None:
            self._metrics.record(RECORDS_CONSUMED, -columns.rows, self._clock())
            self._running()[0].handle(events.ReturnColumns(columns))
        return super()._return_records() or columns is not None

    def _user_record(self, raw: ConsumerRecord) -> ConsumerRecord[KeyT, ValueT]:
        """Make the record that the user gets. Raises DeserializationFailed."""
        record: ConsumerRecord[KeyT, ValueT] = self._deserializers.deserialized(raw)
        return intercepted(self._on_consume, record, LOG)

    def _returned(self, records: list[ConsumerRecord]) -> events.ReturnRecords:
        return events.ReturnRecords(records)

    async def _wait_until(self, finished: Callable[[], bool]) -> None:
        """Wait, and call the listener when requested."""
        while True:
            if self._listener_task is not None:
                task = self._listener_task
                try:
                    await asyncio.shield(task)
                finally:
                    # otherwise this task is cancelled while others wait, or another call began
                    if task.done() and self._listener_task is task:
                        self._listener_task = None
            elif self._listener_call is not None:
                self._listener_task = asyncio.ensure_future(
                    self._call_listener(self._listener_call)
                )
                self._listener_call = None
            elif finished():
                return
            else:
                self._calls.changed.clear()
                await self._calls.changed.wait()

    async def _call_listener(self, call: events.CallListener) -> None:
        """Call the listener; the rebalance continues even if the caller is cancelled."""
        try:
            if self._listener is not None:
                callback = getattr(self._listener, f"on_partitions_{call.change.name.lower()}")
                result = callback(call.partitions)
                if inspect.isawaitable(result):
                    await result
        finally:
            if self._driver is not None:
                self._driver.handle(events.ListenerDone(call.serial))

    async def _request(self, key: object, event: events.UserEvent) -> object:
        future = self._calls.expect(key)
        try:
            self._send_event(event)
            return await future
        finally:
            self._calls.forget(key)

    def _time(self, timeout_s: float | None) -> float:
        if timeout_s is None:
            return self._config.default_api_timeout_s
        return seconds(timeout_s)

    def _on_effect(self, effect: events.UserEffect | DriverFailed) -> None:
        """Handle the machine's effects for its user."""
        match effect:
            case events.Deliver() | events.DeliverColumns():
                self._on_delivery(effect)
            case events.Raise(error=error):
                self._error = error
            case events.CallListener():
                self._listener_call = effect
            case events.DiscardRecords(partitions=partitions):
                self._discard(frozenset(partitions))
            case events.OffsetsCommitted(offsets=offsets):
                notify(self._on_commit, LOG, offsets)
            case events.Warn(error=error):
                LOG.warning("%s", error)
            case events.Done(key=key, error=error) if error is not None:
                self._calls.resolve(key, error)
            case (
                events.Done(key=key)
                | events.CommittedFound(key=key)
                | events.OffsetsFound(key=key)
                | events.PositionFound(key=key)
            ):
                self._calls.resolve(key, effect)
            case events.Closed() | DriverFailed():
                self._on_end(effect)
            case _:
                assert_never(effect)
        self._calls.changed.set()

    def _on_delivery(self, effect: events.Deliver | events.DeliverColumns) -> None:
        if isinstance(effect, events.Deliver):
            self._delivered(effect.records)
        else:
            self._unread_columns = effect.columns
            self._metrics.record(RECORDS_CONSUMED, effect.columns.rows, self._clock())

    def _discard(self, partitions: frozenset[TopicPartition]) -> None:
        left = [each for each in self._unread if each[:2] not in partitions]
        self._unread = iter(left)
        columns = self._unread_columns
        if columns is not None and columns.partition in partitions:
            self._unread_columns = None

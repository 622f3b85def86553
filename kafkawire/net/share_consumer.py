"""Consuming from asyncio as a member of a share group.

A record is returned once for each delivery; records that are still buffered here are never
accepted. A cancelled call loses nothing: the next one returns its records.

    async with ShareConsumer({"bootstrap.servers": "localhost:9092", "group.id": "g"}) as consumer:
        consumer.subscribe(["orders"])
        async for record in consumer:
            ...
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Generic, TypeAlias, assert_never

from ..client.arguments import seconds, topic_names
from ..client.cluster import ClusterView
from ..client.config import Setting, client_metrics, read_config
from ..client.consumer import TopicPartition
from ..client.consumer import events as calls
from ..client.consumer.deserializing import Deserializers
from ..client.consumer.failures import DeserializationFailed
from ..client.member_id import new_member_id
from ..client.metrics.tables import SHARE_CONSUMER
from ..client.serialization import Deserializer, KeyT, ValueT
from ..client.share_consumer import (
    SHARE_CONSUMER_KEYS,
    AcknowledgeFailed,
    AcknowledgementRange,
    AcknowledgeType,
    ShareRecord,
    events,
    share_consumer_config,
)
from ..client.share_consumer import ShareConsumer as ShareConsumerMachine
from ..client.share_consumer.configuration import KEYS_OF_GROUPS
from ..errors import InvalidValue
from .clients.driver import DriverFailed
from .clients.polling_client import PollingClient

LOG: Final = logging.getLogger("kafkawire.share_consumer")

AcknowledgementCallback: TypeAlias = Callable[
    [TopicPartition, tuple[AcknowledgementRange, ...], AcknowledgeFailed | None], object
]
"""Called with a partition, ranges of offsets with their types, and why they failed, if they did."""
Results: TypeAlias = dict[TopicPartition, AcknowledgeFailed | None]


class ShareConsumer(
    PollingClient[ShareConsumerMachine, ShareRecord, ShareRecord[KeyT, ValueT]],
    Generic[KeyT, ValueT],
):
    """Reads records as a member of a share group (KIP-932); `SHARE_CONSUMER_KEYS` has all keys.

    key_deserializer, value_deserializer: make keys and values of bytes; without, these are bytes.
    A poll returns the records before one that cannot be deserialized, the next one raises
    DeserializationFailed and releases it; in explicit mode the user may acknowledge the error.

    Raises ConfigurationError for an unknown key or an invalid value. Used by one task at a time;
    other tasks may commit. A call with a value of a wrong type or out of range raises InvalidValue
    or OutOfRange, and changes nothing.
    """

    what = "share consumer"

    def __init__(
        self,
        config: Mapping[str, Setting],
        *,
        key_deserializer: Deserializer[KeyT] | None = None,
        value_deserializer: Deserializer[ValueT] | None = None,
    ) -> None:
        deserializers = Deserializers(key_deserializer, value_deserializer)
        deserialize = deserializers.deserialized if deserializers else None
        values = read_config(SHARE_CONSUMER_KEYS, config, KEYS_OF_GROUPS)
        metrics = client_metrics(values, "consumer-share", SHARE_CONSUMER)
        super().__init__(values, deserialize, metrics)
        self._config = share_consumer_config(self._values)
        if self._config.explicit:
            self._poll_interval_s = math.inf  # a poll requires that all are acknowledged
        self._callback: AcknowledgementCallback | None = None

    # -- lifecycle

    async def close(self, timeout_s: float = 30.0) -> None:
        """Send pending acknowledgements, leave the group, and close.

        Records that were not acknowledged are released: also those that are only accepted by the
        next poll or commit. timeout_s: how long that may take. On return nothing is open, even if
        cancelled.
        """
        await super().close(timeout_s)

    def _end(self, error: Exception) -> None:
        super()._end(error)
        self._unread = iter(())

    def _owners(self, view: ClusterView) -> Mapping[str, ShareConsumerMachine]:
        member_id = new_member_id(random.random)
        self._machine = ShareConsumerMachine(self._config, view, member_id, rng=random.random)
        return {"share_consumer": self._machine}

    def _on_deserialization_failed(self, error: DeserializationFailed) -> None:
        next(self._unread)  # the record counts as delivered
        self._running()[0].handle(events.Release(error.partitions[0], error.offset))

    def _returned(self, records: list[ShareRecord]) -> events.ReturnRecords:
        return events.ReturnRecords(records)

    # -- subscription

    def subscribe(self, topics: Iterable[str]) -> None:
        """Subscribe to topics by name; replaces the previous subscription.

        The group's members share the partitions: several may read one at the same time.
        """
        self._running()[0].handle(events.Subscribe(topic_names(topics)))

    async def unsubscribe(self) -> None:
        """Unsubscribe from everything, and leave the group; as `close`, but it can go on."""
        driver, _ = self._running()
        self._unread = iter(())
        key = next(self._calls.keys)
        done = self._calls.expect(key)
        driver.handle(calls.Unsubscribe(key))
        await done

    def subscription(self) -> frozenset[str]:
        """The subscribed topics."""
        return self._running()[1].subscription

    def acquisition_lock_timeout_s(self) -> float | None:
        """How long a returned record is this member's alone; None before the first records.

        Then it is delivered again, maybe to another member, unless it was acknowledged or renewed.
        """
        return self._running()[1].acquisition_lock_timeout_s

    # -- reading

    async def poll(
        self, timeout_s: float | None = None, *, max_records: int | None = None
    ) -> list[ShareRecord[KeyT, ValueT]]:
        """Return the next records: at least one, unless the timeout expires.

        In implicit mode, accepts all records returned before. In explicit mode, all must be
        acknowledged: else raises LocalProtocolError. Records that were renewed are returned again.

        timeout_s: None waits for ever. max_records: overrides max.poll.records.
        Raises ConsumerError or a subclass; the next poll tries again.
        """
        return await super().poll(timeout_s, max_records=max_records)

    # -- acknowledging

    def acknowledge(
        self,
        record: ShareRecord[KeyT, ValueT] | DeserializationFailed,
        type: AcknowledgeType = AcknowledgeType.ACCEPT,
    ) -> None:
        """Decide what becomes of a returned record, or of one that could not be deserialized.

        Sent with the next poll or commit; until then another type may replace it. Raises
        LocalProtocolError in implicit mode, and for a record that is not this member's.
        """
        if isinstance(record, DeserializationFailed):
            where = record.partitions[0]
        elif isinstance(record, ShareRecord):
            where = TopicPartition(record.topic, record.partition)
        else:
            raise InvalidValue(f"expected a ShareRecord, got {record!r}", "record")
        self._running()[0].handle(events.Acknowledge(where, record.offset, type))

    async def commit(self, *, timeout_s: float | None = None) -> Results:
        """Send acknowledgements, and wait until all have ended; in implicit mode, of all records.

        Returns why those of a partition failed, and None where they are in effect; also of those
        that an earlier poll or `commit_async` has sent, if they had not ended.
        timeout_s: None is default.api.timeout.ms.
        """
        return await self._commit(timeout_s)

    def commit_async(self) -> asyncio.Future[Results]:
        """Commit as `commit` does, without waiting: the future has the result."""
        return self._commit(None)

    def set_acknowledgement_callback(self, callback: AcknowledgementCallback | None) -> None:
        """Call this for the acknowledgements of each partition once they have ended.

        Without a callback, failures are logged. It runs in the event loop, and must not block.
        """
        self._callback = callback

    def _commit(self, timeout_s: float | None) -> asyncio.Future[Results]:
        wait_s = self._config.default_api_timeout_s if timeout_s is None else seconds(timeout_s)
        driver, _ = self._running()
        interrupted = not self._config.explicit and self._return_records() and self._polling
        key = next(self._calls.keys)
        future: asyncio.Future[Results] = self._calls.expect(key)  # type: ignore[assignment]  # of Committed
        driver.handle(events.Commit(key, wait_s))
        if interrupted:  # another task's poll was about to return them
            driver.handle(self._poll_event)
        return future

    # -- events and effects

    def _on_effect(self, effect: events.UserEffect | DriverFailed) -> None:
        """Handle the machine's effects for its user."""
        match effect:
            case events.Deliver(records=records):
                self._delivered(records)
            case calls.Raise(error=error):
                self._error = error
            case calls.Warn(error=warning):
                LOG.warning("%s", warning)
            case events.Acknowledged():
                self._on_acknowledged(effect)
            case events.Committed(key=key, results=results):
                self._calls.resolve(key, dict(results))
            case calls.Done(key=key):
                self._calls.resolve(key, None)
            case calls.Closed() | DriverFailed():
                self._on_end(effect)
            case _:
                assert_never(effect)
        self._calls.changed.set()

    def _on_acknowledged(self, effect: events.Acknowledged) -> None:
        if self._callback is not None:
            loop = asyncio.get_running_loop()
            loop.call_soon(self._callback, effect.partition, effect.ranges, effect.error)
        elif effect.error is not None:
            LOG.warning("%s", effect.error)

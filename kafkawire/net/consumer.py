"""Consuming from asyncio.

A record is returned once; a commit covers the records returned before the last poll, never
those still buffered here. A cancelled call loses nothing: the next one returns its records.

    async with Consumer({"bootstrap.servers": "localhost:9092", "group.id": "g"}) as consumer:
        consumer.subscribe(["orders"])
        async for record in consumer:
            ...
"""

# over 300 lines: one class, the calls of a consumer

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..client.consumer import (
    CommitKind,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    RequestTimedOut,
    Reset,
    ResetPolicy,
    SubscriptionPattern,
    TopicPartition,
    events,
)
from ..client.consumer.checking import (
    offset_of,
    offsets_of,
    partition_of,
    partitions_of,
    times_of,
    topics_of,
)
from ..client.consumer.offsets.lookups import EARLIEST, LATEST
from ..client.group_metadata import ConsumerGroupMetadata
from ..client.serialization import KeyT, ValueT
from ..errors import LocalProtocolError
from ..values.decoder import ValueDecoder
from ..values.record_values import RecordValues
from .clients.consumer_session import ConsumerSession, RebalanceListener

if TYPE_CHECKING:
    import pyarrow as pa


class Consumer(ConsumerSession[KeyT, ValueT]):
    """Reads records. Configured under Kafka's names; `CONSUMER_KEYS` has all keys.

    key_deserializer, value_deserializer: make keys and values of bytes; without, these are bytes.
    A poll returns the records before one that cannot be deserialized, the next one raises
    DeserializationFailed, and again until the user has sought past it. on_consume, on_commit:
    interceptors (`interceptors`), called for each record that is returned, and after commits.

    Raises ConfigurationError for an unknown key or an invalid value. Used by one task at a time;
    other tasks may commit and look up offsets. A call with a value of a wrong type or out of
    range raises InvalidValue or OutOfRange, and changes nothing.
    """

    # -- columns

    async def poll_batch(
        self,
        timeout_s: float | None = None,
        *,
        max_records: int | None = None,
        keys: ValueDecoder | None = None,
        values: ValueDecoder | None = None,
    ) -> pa.RecordBatch | None:
        """Return the next records of one partition as columns; None if the timeout expires.

        Columns: topic, partition, offset, timestamp, key, value, headers. timeout_s, errors: as for
        `poll`. max_records: None for all of a fetch. keys, values: decoders, whose results are
        added as `key_decoded` and `value_decoded`. Deserializers and `on_consume` are not called.
        Raises MissingPackage without the extra `tables`.
        """
        from ..client.consumer.arrow import ArrowBatches, decoded

        if self._arrow is None:
            self._arrow = ArrowBatches()
        decoders = RecordValues(values, keys)
        while True:
            await self._poll(timeout_s, events.Poll(max_records, columns=True))
            columns = self._unread_columns
            if columns is None:
                return None
            batch = self._arrow.batch(columns)
            if values is not None or keys is not None:
                batch = await asyncio.to_thread(decoded, batch, decoders)
            if self._unread_columns is columns:  # else a call of another task has returned them
                self._unread_columns = None
                return batch

    async def batches(
        self,
        *,
        max_records: int | None = None,
        keys: ValueDecoder | None = None,
        values: ValueDecoder | None = None,
    ) -> AsyncIterator[pa.RecordBatch]:
        """Iterate over records as columns, for ever; parameters and errors as of `poll_batch`."""
        while True:
            batch = await self.poll_batch(max_records=max_records, keys=keys, values=values)
            if batch is not None:
                yield batch

    # -- subscription and position

    def subscribe(
        self,
        topics: Iterable[str] | re.Pattern[str] | SubscriptionPattern,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Subscribe to topics, by name or by a pattern of whole names, as a member of the group.

        A SubscriptionPattern is matched by the brokers (`group.protocol=consumer`). Replaces the
        previous subscription; no topics at all unsubscribes. Raises LocalProtocolError after
        `assign`, or without a group.id.
        """
        self._send_event(events.Subscribe(topics_of(topics), listener is not None))
        self._listener = listener

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign partitions manually, without a group; replaces the previous assignment."""
        self._send_event(events.Assign(partitions_of(partitions)))

    async def unsubscribe(self) -> None:
        """Unsubscribe from everything; leaves the group."""
        key = next(self._calls.keys)
        done = self._calls.expect(key)
        self._send_event(events.Unsubscribe(key))
        await self._wait_until(done.done)
        done.result()

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Set the position of a partition."""
        to = offset_of(offset)
        self._send_event(events.Seek(partition_of(partition), to.offset, to.leader_epoch))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Seek partitions to their first records; all assigned ones if none is given."""
        self._seek_to(partitions, ResetPolicy(Reset.EARLIEST))

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Seek partitions to their end; all assigned ones if none is given."""
        self._seek_to(partitions, ResetPolicy(Reset.LATEST))

    def seek_to_time(self, timestamp_ms: int, *partitions: TopicPartition) -> None:
        """Seek partitions to the first record not older than a time; all if none is given."""
        self._seek_to(partitions, ResetPolicy(Reset.TIMESTAMP, timestamp_ms))

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these partitions until they are resumed."""
        self._send_event(events.Pause(partitions_of(partitions)))

    def resume(self, *partitions: TopicPartition) -> None:
        """Resume paused partitions."""
        self._send_event(events.Resume(partitions_of(partitions)))

    # -- state

    def assignment(self) -> frozenset[TopicPartition]:
        """The assigned partitions."""
        return self._running()[1].assignment

    def subscription(self) -> frozenset[str]:
        """The subscribed topics; of a pattern, those that match.

        Of a SubscriptionPattern those of the assigned partitions: the brokers know the others.
        """
        machine = self._running()[1]
        if machine.subscription.broker_pattern:
            return frozenset(each.topic for each in machine.assignment)
        return machine.subscription.topics if machine.subscription.in_group else frozenset()

    def group_metadata(self) -> ConsumerGroupMetadata:
        """The member, with its present or last generation, for `Producer.send_offsets` (KIP-447).

        Raises LocalProtocolError without a group.id.
        """
        return self._running()[1].group_metadata

    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        positions = self._running()[1].positions
        return frozenset(each for each in positions if positions[each].paused)

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """The high watermark of a partition as of the last fetch; None before the first."""
        positions = self._running()[1].positions
        high_watermark = positions[partition].high_watermark if partition in positions else -1
        return None if high_watermark < 0 else high_watermark

    def known_position(self, partition: TopicPartition) -> int | None:
        """The offset of the next record of an assigned partition; None while it is not known."""
        position = self._running()[1].positions.position(partition)
        return None if position is None else position.offset

    # -- offsets

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        *,
        timeout_s: float | None = None,
    ) -> None:
        """Commit offsets, the next ones to read; without any, those of all returned records.

        Retries until timeout_s (default.api.timeout.ms). Raises CommitFailed.
        """
        await self._commit(offsets, CommitKind.SYNC, timeout_s)

    def commit_async(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None
    ) -> asyncio.Future[object]:
        """Commit as `commit` does, but without retries and waiting: the future has the result.

        Futures complete in the order of the calls.
        """
        return self._commit(offsets, CommitKind.ASYNC, None)

    async def committed(
        self, *partitions: TopicPartition, timeout_s: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offsets of the group; None without one. Raises LookupFailed."""
        key = next(self._calls.keys)
        wanted = partitions_of(partitions)
        result = await self._request(key, events.GetCommitted(key, wanted, self._time(timeout_s)))
        assert isinstance(result, events.CommittedFound)
        if result.error is not None:
            raise result.error
        return dict(result.offsets)

    async def position(self, partition: TopicPartition, *, timeout_s: float | None = None) -> int:
        """Return the offset of the next record. Raises RequestTimedOut if it stays unknown."""
        key = next(self._calls.keys)
        where = partition_of(partition)
        try:
            async with asyncio.timeout(self._time(timeout_s)):
                result = await self._request(key, events.GetPosition(key, where))
        except TimeoutError:
            self._send_event(events.CancelGetPosition(key))
            raise RequestTimedOut("position unknown", partitions=[where]) from None
        assert isinstance(result, events.PositionFound)
        if result.offset is None:
            raise LocalProtocolError(f"not assigned: {where}")
        return result.offset

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Find the first records not older than given times; None without such a record.

        times: milliseconds since the epoch. Raises LookupFailed, RequestTimedOut.
        """
        key = next(self._calls.keys)
        times = times_of(times)
        result = await self._request(key, events.GetOffsets(key, times, self._time(timeout_s)))
        assert isinstance(result, events.OffsetsFound)
        for error in result.failed.values():
            raise error
        return dict(result.offsets)

    async def beginning_offsets(
        self, *partitions: TopicPartition, timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offsets of partitions."""
        return await self._list_offsets(partitions, EARLIEST, timeout_s)

    async def end_offsets(
        self, *partitions: TopicPartition, timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the end offsets of partitions, as isolation.level defines them."""
        return await self._list_offsets(partitions, LATEST, timeout_s)

    # -- helpers

    def _commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None,
        kind: CommitKind,
        timeout_s: float | None,
    ) -> asyncio.Future[object]:
        to_commit = None if offsets is None else offsets_of(offsets)
        key = next(self._calls.keys)
        event = events.Commit(key, to_commit, kind, self._time(timeout_s))
        future = self._calls.expect(key)
        try:
            self._send_event(event)
        except BaseException:
            self._calls.forget(key)
            raise
        return future

    def _seek_to(self, partitions: Sequence[TopicPartition], policy: ResetPolicy) -> None:
        wanted = partitions_of(partitions)
        self._send_event(events.SeekTo(wanted or tuple(sorted(self.assignment())), policy))

    async def _list_offsets(
        self, partitions: Iterable[TopicPartition], end: int, timeout_s: float | None
    ) -> dict[TopicPartition, int]:
        times = dict.fromkeys(partitions_of(partitions), end)
        offsets = await self.offsets_for_times(times, timeout_s=timeout_s)
        return {each: 0 if at is None else at.offset for each, at in offsets.items()}

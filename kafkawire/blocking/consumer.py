"""The consumer whose calls wait."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias

from ..client.config import Setting
from ..client.consumer import (
    ConsumerRecord,
    OffsetAndMetadata,
    SubscriptionPattern,
    TopicPartition,
)
from ..client.serialization import Deserializer, KeyT, ValueT
from ..net import consumer as asynchronous
from ..net.interceptors import OnCommit, OnConsume
from ..values.decoder import ValueDecoder
from .client import BlockingClient, future_in_threads, in_loop, waiting

if TYPE_CHECKING:
    import pyarrow as pa


class RebalanceListener(Protocol):
    """Receives changes of the consumer's assignment, in a thread of their own.

    Called during a poll, `unsubscribe` or `close`, which waits for it; the methods may call the
    consumer. An exception of a method is raised by that call.
    """

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """They are still assigned to this consumer, until this returns."""
        ...

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """They are newly assigned; none of their records was returned yet."""
        ...

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        """They are already assigned to other members: their offsets cannot be committed."""
        ...


_Client: TypeAlias = asynchronous.Consumer[Any, Any]


class Consumer(BlockingClient[asynchronous.Consumer[KeyT, ValueT]], Generic[KeyT, ValueT]):
    """Reads records; see `kafkawire.net.consumer.Consumer`.

    Functions of the user run in the consumer's thread, and cannot call the consumer.
    """

    kind = asynchronous.Consumer

    def __init__(
        self,
        config: Mapping[str, Setting],
        *,
        key_deserializer: Deserializer[KeyT] | None = None,
        value_deserializer: Deserializer[ValueT] | None = None,
        on_consume: Sequence[OnConsume[KeyT, ValueT]] | None = None,
        on_commit: Sequence[OnCommit] | None = None,
    ) -> None:
        super().__init__(
            config,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            on_consume=on_consume,
            on_commit=on_commit,
        )

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
        self._subscribe(topics, None if listener is None else _InThread(listener))

    _subscribe = in_loop(_Client.subscribe)
    metrics = in_loop(_Client.metrics)
    assign = in_loop(_Client.assign)
    unsubscribe = waiting(_Client.unsubscribe)
    seek = in_loop(_Client.seek)
    seek_to_beginning = in_loop(_Client.seek_to_beginning)
    seek_to_end = in_loop(_Client.seek_to_end)
    seek_to_time = in_loop(_Client.seek_to_time)
    pause = in_loop(_Client.pause)
    resume = in_loop(_Client.resume)
    assignment = in_loop(_Client.assignment)
    subscription = in_loop(_Client.subscription)
    group_metadata = in_loop(_Client.group_metadata)
    paused = in_loop(_Client.paused)
    high_watermark = in_loop(_Client.high_watermark)
    known_position = in_loop(_Client.known_position)
    commit = waiting(_Client.commit)
    committed = waiting(_Client.committed)
    position = waiting(_Client.position)
    offsets_for_times = waiting(_Client.offsets_for_times)
    beginning_offsets = waiting(_Client.beginning_offsets)
    end_offsets = waiting(_Client.end_offsets)
    poll_batch = waiting(_Client.poll_batch)

    def poll(
        self, timeout_s: float | None = None, *, max_records: int | None = None
    ) -> list[ConsumerRecord[KeyT, ValueT]]:
        """Return the next records: at least one, unless the timeout expires.

        timeout_s: None waits for ever. max_records: overrides max.poll.records.
        Raises ConsumerError or a subclass; the next poll tries again.
        """
        return self._run(self._client.poll(timeout_s, max_records=max_records))

    def batches(
        self,
        *,
        max_records: int | None = None,
        keys: ValueDecoder | None = None,
        values: ValueDecoder | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Iterate over records as columns, for ever; parameters and errors as of `poll_batch`."""
        while True:
            batch = self.poll_batch(max_records=max_records, keys=keys, values=values)
            if batch is not None:
                yield batch

    def commit_async(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None
    ) -> Future[object]:
        """Commit as `commit` does, but without retries and waiting: the future has the result.

        Futures complete in the order of the calls.
        """

        async def commit() -> Future[object]:
            return future_in_threads(self._client.commit_async(offsets))

        return self._run(commit())

    def __iter__(self) -> Iterator[ConsumerRecord[KeyT, ValueT]]:
        """Iterate over records, for ever."""
        return self

    def __next__(self) -> ConsumerRecord[KeyT, ValueT]:
        """Return the next record, as soon as there is one."""
        return self._run(self._client.__anext__())

    def close(self, timeout_s: float = 30.0) -> None:
        """Commit offsets if enable.auto.commit is on, leave the group, and close.

        timeout_s: how long that may take.
        """
        self._close(self._client.close(timeout_s))


class _InThread:
    """Calls a listener in a thread, so that it may wait for the consumer."""

    def __init__(self, listener: RebalanceListener) -> None:
        self.on_partitions_revoked = _in_thread(listener.on_partitions_revoked)
        self.on_partitions_assigned = _in_thread(listener.on_partitions_assigned)
        self.on_partitions_lost = _in_thread(listener.on_partitions_lost)


_Change: TypeAlias = Callable[[Collection[TopicPartition]], None]


def _in_thread(method: _Change) -> Callable[[Collection[TopicPartition]], Awaitable[None]]:
    async def call(partitions: Collection[TopicPartition]) -> None:
        await asyncio.to_thread(method, partitions)

    return call

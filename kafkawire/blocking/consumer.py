"""The consumer whose calls wait."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import Protocol, TypeAlias

from ..client.consumer import (
    ConsumerRecord,
    OffsetAndMetadata,
    SubscriptionPattern,
    TopicPartition,
)
from ..net import consumer as asynchronous
from .client import BlockingClient, future_in_threads, in_loop, waiting


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


class Consumer(BlockingClient[asynchronous.Consumer]):
    """Reads records; see `kafkawire.net.consumer.Consumer`."""

    kind = asynchronous.Consumer

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

    _subscribe = in_loop(asynchronous.Consumer.subscribe)
    assign = in_loop(asynchronous.Consumer.assign)
    unsubscribe = waiting(asynchronous.Consumer.unsubscribe)
    seek = in_loop(asynchronous.Consumer.seek)
    seek_to_beginning = in_loop(asynchronous.Consumer.seek_to_beginning)
    seek_to_end = in_loop(asynchronous.Consumer.seek_to_end)
    seek_to_time = in_loop(asynchronous.Consumer.seek_to_time)
    pause = in_loop(asynchronous.Consumer.pause)
    resume = in_loop(asynchronous.Consumer.resume)
    assignment = in_loop(asynchronous.Consumer.assignment)
    subscription = in_loop(asynchronous.Consumer.subscription)
    group_metadata = in_loop(asynchronous.Consumer.group_metadata)
    paused = in_loop(asynchronous.Consumer.paused)
    high_watermark = in_loop(asynchronous.Consumer.high_watermark)
    known_position = in_loop(asynchronous.Consumer.known_position)
    poll = waiting(asynchronous.Consumer.poll)
    commit = waiting(asynchronous.Consumer.commit)
    committed = waiting(asynchronous.Consumer.committed)
    position = waiting(asynchronous.Consumer.position)
    offsets_for_times = waiting(asynchronous.Consumer.offsets_for_times)
    beginning_offsets = waiting(asynchronous.Consumer.beginning_offsets)
    end_offsets = waiting(asynchronous.Consumer.end_offsets)

    def commit_async(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None
    ) -> Future[object]:
        """Commit as `commit` does, but without retries and waiting: the future has the result.

        Futures complete in the order of the calls.
        """

        async def commit() -> Future[object]:
            return future_in_threads(self._client.commit_async(offsets))

        return self._run(commit())

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Iterate over records, for ever."""
        return self

    def __next__(self) -> ConsumerRecord:
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

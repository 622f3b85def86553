"""Consuming from asyncio.

Law: a record is returned once; what is committed is what was returned before the last poll, never
what still waits here. A call that is cancelled loses nothing: what was fetched for it comes with
the next.

    async with Consumer({"bootstrap.servers": "localhost:9092", "group.id": "g"}) as consumer:
        consumer.subscribe(["orders"])
        async for record in consumer:
            ...
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from ..client.arguments import seconds
from ..client.consumer import (
    CommitKind,
    ConsumerRecord,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    RequestTimedOut,
    Reset,
    ResetPolicy,
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
from ..client.failures import ClientClosed
from ..errors import LocalProtocolError
from .consumer_session import FRESH_SECONDS, ConsumerSession, RebalanceListener


class Consumer(ConsumerSession):
    """Reads records. Settings under Kafka's names; `CONSUMER_KEYS` has them all.

    Raises ConfigurationError for a setting that is unknown or wrong. Used by one task at a time;
    commits and look-ups may be made from others. A call with a value of a wrong type or out of
    range raises InvalidValue or OutOfRange, and changes nothing.
    """

    # -- what to read

    def subscribe(
        self,
        topics: Iterable[str] | re.Pattern[str],
        listener: RebalanceListener | None = None,
    ) -> None:
        """Read topics, by name or by a pattern of whole names, as a member of the group.

        Replaces what was subscribed to before; no topics at all unsubscribes. Raises
        LocalProtocolError where partitions are assigned, or there is no group.id.
        """
        self._tell(events.Subscribe(topics_of(topics), listener is not None))
        self._listener = listener

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions, outside of any group's assignment; replaces what was assigned."""
        self._tell(events.Assign(partitions_of(partitions)))

    async def unsubscribe(self) -> None:
        """Read nothing any more; leaves the group."""
        key = next(self._keys)
        done = self._expect(key)
        self._tell(events.Unsubscribe(key))
        await self._attend(done.done)
        done.result()

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Read a partition from that offset on."""
        to = offset_of(offset)
        self._tell(events.Seek(partition_of(partition), to.offset, to.leader_epoch))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Read partitions from the first record they have; all that are ours if none is named."""
        self._seek_to(partitions, ResetPolicy(Reset.EARLIEST))

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Read partitions from the next record they get; all that are ours if none is named."""
        self._seek_to(partitions, ResetPolicy(Reset.LATEST))

    def seek_to_time(self, timestamp_ms: int, *partitions: TopicPartition) -> None:
        """Read partitions from the first record that is not older; all if none is named."""
        self._seek_to(partitions, ResetPolicy(Reset.TIMESTAMP, timestamp_ms))

    def pause(self, *partitions: TopicPartition) -> None:
        """Return nothing of these partitions until they are resumed."""
        self._tell(events.Pause(partitions_of(partitions)))

    def resume(self, *partitions: TopicPartition) -> None:
        """Go on with partitions that were paused."""
        self._tell(events.Resume(partitions_of(partitions)))

    # -- what there is

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are ours now."""
        return self._running()[1].assignment

    def subscription(self) -> frozenset[str]:
        """The topics that are subscribed to; of a pattern, those that match."""
        machine = self._running()[1]
        return machine.subscription.topics if machine.subscription.in_group else frozenset()

    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        positions = self._running()[1].positions
        return frozenset(each for each in positions if positions[each].paused)

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """The end of a partition as of the last fetch; None before the first."""
        positions = self._running()[1].positions
        known = positions[partition].high_watermark if partition in positions else -1
        return None if known < 0 else known

    # -- reading

    async def poll(
        self, timeout_s: float | None = None, *, max_records: int | None = None
    ) -> list[ConsumerRecord]:
        """Return the next records: at least one, unless the time is up.

        timeout_s: None waits for ever. max_records: in place of max.poll.records.
        Raises ConsumerError (its subclasses say of which kind); the next poll tries again.
        """
        driver, _ = self._running()
        if timeout_s is not None:
            seconds(timeout_s)
        if self._polling:
            raise LocalProtocolError("another poll of this consumer is under way")
        self._hand_back()
        self._most = max_records
        driver.handle(events.Poll(max_records))
        self._polling = True
        try:
            async with asyncio.timeout(timeout_s):
                await self._attend(self._has_answer)
        except TimeoutError:
            if not self._has_answer():
                return []
        finally:
            self._polling = False
            driver.handle(events.StopPolling())
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        if self._closed:
            raise ClientClosed("the consumer")
        taken, self._records, self._at = self._records[self._at :], [], 0
        return taken

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord:
        if self._at == len(self._records) or self._clock() >= self._fresh_until:
            records = await self.poll()
            self._records, self._at = records, 0
            self._fresh_until = self._clock() + FRESH_SECONDS
        record = self._records[self._at]
        self._at += 1
        return record

    # -- offsets

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        *,
        timeout_s: float | None = None,
    ) -> None:
        """Commit offsets, the next ones to read; without any, of all that was returned.

        Tries again until timeout_s (default.api.timeout.ms). Raises CommitFailed.
        """
        await self._commit(offsets, CommitKind.SYNC, timeout_s)

    def commit_async(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None
    ) -> asyncio.Future[object]:
        """Commit as `commit` does, but once, and without waiting: the future has the result.

        Futures are done in the order of the calls.
        """
        return self._commit(offsets, CommitKind.ASYNC, None)

    async def committed(
        self, *partitions: TopicPartition, timeout_s: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Say what the group has committed; None where nothing is. Raises LookupFailed."""
        key = next(self._keys)
        wanted = partitions_of(partitions)
        answer = await self._ask(key, events.GetCommitted(key, wanted, self._time(timeout_s)))
        assert isinstance(answer, events.CommittedFound)
        if answer.error is not None:
            raise answer.error
        return dict(answer.found)

    async def position(self, partition: TopicPartition, *, timeout_s: float | None = None) -> int:
        """Say which offset is returned next. Raises RequestTimedOut while that is not known."""
        key = next(self._keys)
        where = partition_of(partition)
        try:
            async with asyncio.timeout(self._time(timeout_s)):
                answer = await self._ask(key, events.GetPosition(key, where))
        except TimeoutError:
            self._tell(events.CancelGetPosition(key))
            raise RequestTimedOut("the position is not known", partitions=[where]) from None
        assert isinstance(answer, events.PositionFound)
        if answer.offset is None:
            raise LocalProtocolError(f"not assigned: {where}")
        return answer.offset

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Find the first records not older than given times in milliseconds since the epoch; None
        where there is none. Raises LookupFailed, RequestTimedOut.
        """
        key = next(self._keys)
        times = times_of(times)
        answer = await self._ask(key, events.GetOffsets(key, times, self._time(timeout_s)))
        assert isinstance(answer, events.OffsetsFound)
        for error in answer.failed.values():
            raise error
        return dict(answer.found)

    async def beginning_offsets(
        self, *partitions: TopicPartition, timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        """Say which offsets partitions begin with."""
        return await self._ends(partitions, EARLIEST, timeout_s)

    async def end_offsets(
        self, *partitions: TopicPartition, timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        """Say behind which offsets partitions end, for what isolation.level lets us read."""
        return await self._ends(partitions, LATEST, timeout_s)

    # -- inside

    def _commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None,
        kind: CommitKind,
        timeout_s: float | None,
    ) -> asyncio.Future[object]:
        given = None if offsets is None else offsets_of(offsets)
        key = next(self._keys)
        event = events.Commit(key, given, kind, self._time(timeout_s))
        future = self._expect(key)
        try:
            self._tell(event)
        except BaseException:
            del self._answers[key]
            raise
        return future

    def _seek_to(self, partitions: Sequence[TopicPartition], policy: ResetPolicy) -> None:
        wanted = partitions_of(partitions)
        self._tell(events.SeekTo(wanted or tuple(sorted(self.assignment())), policy))

    async def _ends(
        self, partitions: Iterable[TopicPartition], end: int, timeout_s: float | None
    ) -> dict[TopicPartition, int]:
        times = dict.fromkeys(partitions_of(partitions), end)
        found = await self.offsets_for_times(times, timeout_s=timeout_s)
        return {each: 0 if at is None else at.offset for each, at in found.items()}

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
import inspect
import logging
import random
import re
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from itertools import count
from types import TracebackType
from typing import Final, Protocol, Self

from ..client.config import Setting, read_config
from ..client.consumer import (
    CONSUMER_KEYS,
    CommitKind,
    ConsumerRecord,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    RequestTimedOut,
    Reset,
    ResetPolicy,
    TopicPartition,
    consumer_config,
    events,
)
from ..client.consumer import Consumer as ConsumerMachine
from ..client.consumer.lookups import EARLIEST, LATEST
from ..client.failures import ClientClosed
from ..client.requests import ClusterView, Machine
from ..errors import LocalProtocolError
from .driver import Driver
from .session import open_client

LOG: Final = logging.getLogger("kafkawire.consumer")
NANOSECONDS_PER_MILLISECOND: Final = 1_000_000
FRESH_SECONDS: Final = 1.0
"""How long records are returned from here before the group is asked about first."""


class RebalanceListener(Protocol):
    """Is told what becomes of the consumer's partitions; its methods may be coroutines.

    Called while the consumer is in a poll, `unsubscribe` or `close`. What a method raises, that
    call raises.
    """

    def on_partitions_revoked(
        self, partitions: Collection[TopicPartition]
    ) -> Awaitable[None] | None:
        """They are still ours, and will be somebody else's after this returns."""
        ...

    def on_partitions_assigned(
        self, partitions: Collection[TopicPartition]
    ) -> Awaitable[None] | None:
        """They are ours, and nothing of them has been returned yet."""
        ...

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """They are somebody else's already: what was read of them cannot be committed."""
        ...


class Consumer:
    """Reads records. Settings under Kafka's names; `CONSUMER_KEYS` has them all.

    Raises ConfigurationError for a setting that is unknown or wrong. Used by one task at a time;
    commits and look-ups may be made from others.
    """

    def __init__(self, config: Mapping[str, Setting]) -> None:
        self._values = read_config(CONSUMER_KEYS, config)
        self._config = consumer_config(self._values)
        self._driver: Driver | None = None
        self._machine: ConsumerMachine | None = None
        self._keys = count()
        self._answers: dict[object, asyncio.Future[object]] = {}
        self._news = asyncio.Event()
        self._records: list[ConsumerRecord] = []
        self._at = 0
        self._fresh_until = 0.0
        self._error: Exception | None = None
        self._polling = False
        self._most: int | None = None
        self._closed = False
        self._listener: RebalanceListener | None = None
        self._call: events.CallListener | None = None
        self._calling: asyncio.Task[None] | None = None

    # -- its life

    async def start(self) -> None:
        """Begin to connect; `async with` does it."""
        if self._driver is not None:
            raise ClientClosed("a consumer is opened once; this one was, or")
        self._driver = open_client(self._values, self._owners, self._take)

    async def close(self, timeout_s: float = 30.0) -> None:
        """Commit what was read if that is done automatically, leave the group, and end.

        timeout_s: how long that may take. When this returns nothing is open, cancelled or not.
        """
        driver = self._driver
        if driver is None:
            return
        try:
            if not self._closed:
                self._hand_back()
                driver.handle(events.Close(timeout_s))
                await self._attend(lambda: self._closed)
        finally:
            self._closed = True
            self._end()
            await driver.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

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
        wanted = topics
        if not isinstance(wanted, re.Pattern):
            if isinstance(wanted, str):
                raise LocalProtocolError(f"topics are a list of names, not the text {wanted!r}")
            wanted = tuple(wanted)
        self._tell(events.Subscribe(wanted, listener is not None))
        self._listener = listener

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions, outside of any group's assignment; replaces what was assigned."""
        self._tell(events.Assign(tuple(TopicPartition(*each) for each in partitions)))

    async def unsubscribe(self) -> None:
        """Read nothing any more; leaves the group."""
        key = next(self._keys)
        done = self._expect(key)
        self._tell(events.Unsubscribe(key))
        await self._attend(done.done)
        done.result()

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Read a partition from that offset on."""
        if isinstance(offset, int):
            offset = OffsetAndMetadata(offset)
        self._tell(events.Seek(TopicPartition(*partition), offset.offset, offset.leader_epoch))

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
        self._tell(events.Pause(tuple(TopicPartition(*each) for each in partitions)))

    def resume(self, *partitions: TopicPartition) -> None:
        """Go on with partitions that were paused."""
        self._tell(events.Resume(tuple(TopicPartition(*each) for each in partitions)))

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
        if self._at == len(self._records) or self._overdue():
            records = await self.poll()
            self._records, self._at = records, 0
            self._fresh_until = self._running()[0].now() + FRESH_SECONDS
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
        wanted = tuple(TopicPartition(*each) for each in partitions)
        answer = await self._ask(key, events.AskCommitted(key, wanted, self._time(timeout_s)))
        assert isinstance(answer, events.CommittedFound)
        if answer.error is not None:
            raise answer.error
        return dict(answer.found)

    async def position(self, partition: TopicPartition, *, timeout_s: float | None = None) -> int:
        """Say which offset is returned next. Raises RequestTimedOut while that is not known."""
        key = next(self._keys)
        try:
            async with asyncio.timeout(self._time(timeout_s)):
                answer = await self._ask(key, events.AskPosition(key, TopicPartition(*partition)))
        except TimeoutError:
            self._tell(events.Withdraw(key))
            raise RequestTimedOut("the position is not known", partitions=[partition]) from None
        assert isinstance(answer, events.PositionFound)
        if answer.offset is None:
            raise LocalProtocolError(f"not assigned: {partition}")
        return answer.offset

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Find the first records not older than given times in milliseconds since the epoch; None
        where there is none. Raises LookupFailed, RequestTimedOut.
        """
        key = next(self._keys)
        times = {TopicPartition(*each): at for each, at in times.items()}
        answer = await self._ask(key, events.AskOffsets(key, times, self._time(timeout_s)))
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

    def _owners(self, view: ClusterView) -> Mapping[str, Machine]:
        self._machine = ConsumerMachine(
            self._config,
            view,
            lot=random.random,
            clock_ms=lambda: time.time_ns() // NANOSECONDS_PER_MILLISECOND,
        )
        return {"consumer": self._machine}

    def _running(self) -> tuple[Driver, ConsumerMachine]:
        if self._driver is None or self._machine is None or self._closed:
            raise ClientClosed("the consumer")
        return self._driver, self._machine

    def _tell(self, event: object) -> None:
        """Tell the machine what the user wants; what waits here goes back first."""
        driver, _ = self._running()
        interrupted = self._hand_back() and self._polling
        try:
            driver.handle(event)
        finally:
            if interrupted:  # a poll of another task was just about to return them
                driver.handle(events.Poll(self._most))

    def _hand_back(self) -> bool:
        """Give what was not returned back to the machine, so that positions are the user's."""
        left = self._records[self._at :]
        self._records, self._at = [], 0
        if left:
            self._running()[0].handle(events.GiveBack(left))
        return bool(left)

    def _overdue(self) -> bool:
        return self._running()[0].now() >= self._fresh_until

    def _has_answer(self) -> bool:
        return self._at < len(self._records) or self._error is not None or self._closed

    async def _attend(self, finished: Callable[[], bool]) -> None:
        """Wait, and call the listener when it is to be called."""
        while True:
            if self._calling is not None:
                await asyncio.shield(self._calling)
                self._calling = None
            elif self._call is not None:
                self._calling = asyncio.ensure_future(self._run(self._call))
                self._call = None
            elif finished():
                return
            else:
                self._news.clear()
                await self._news.wait()

    async def _run(self, call: events.CallListener) -> None:
        """Call the listener; whatever becomes of the caller, the group goes on behind it."""
        try:
            if self._listener is not None:
                told = getattr(self._listener, f"on_partitions_{call.change.name.lower()}")
                result = told(call.partitions)
                if inspect.isawaitable(result):
                    await result
        finally:
            if self._driver is not None:
                self._driver.handle(events.ListenerDone(call.serial))

    def _expect(self, key: object) -> asyncio.Future[object]:
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._answers[key] = future
        return future

    async def _ask(self, key: object, event: object) -> object:
        future = self._expect(key)
        try:
            self._tell(event)
            return await future
        finally:
            self._answers.pop(key, None)

    def _commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None,
        kind: CommitKind,
        timeout_s: float | None,
    ) -> asyncio.Future[object]:
        given = None
        if offsets is not None:
            given = {
                TopicPartition(*each): OffsetAndMetadata(at) if isinstance(at, int) else at
                for each, at in offsets.items()
            }
        key = next(self._keys)
        event = events.Commit(key, given, kind, self._time(timeout_s))
        future = self._expect(key)
        try:
            self._tell(event)
        except LocalProtocolError:
            del self._answers[key]
            raise
        return future

    def _seek_to(self, partitions: Sequence[TopicPartition], policy: ResetPolicy) -> None:
        wanted = tuple(TopicPartition(*each) for each in partitions)
        self._tell(events.SeekTo(wanted or tuple(sorted(self.assignment())), policy))

    async def _ends(
        self, partitions: Iterable[TopicPartition], end: int, timeout_s: float | None
    ) -> dict[TopicPartition, int]:
        times = dict.fromkeys(partitions, end)
        found = await self.offsets_for_times(times, timeout_s=timeout_s)
        return {each: 0 if at is None else at.offset for each, at in found.items()}

    def _time(self, timeout_s: float | None) -> float:
        return self._config.default_api_timeout_s if timeout_s is None else timeout_s

    def _take(self, effect: object) -> None:
        """Hear what the machine says to its user."""
        match effect:
            case events.Deliver(records=records):
                self._records, self._at = records, 0
            case events.Raise(error=error):
                self._error = error
            case events.CallListener():
                self._call = effect
            case events.Forget(partitions=partitions):
                gone = frozenset(partitions)
                left = self._records[self._at :]
                self._records = [each for each in left if each[:2] not in gone]
                self._at = 0
            case events.Warn(error=error):
                LOG.warning("%s", error)
            case events.Closed():
                self._closed = True
                self._end()
            case events.Done(key=key, error=error) if error is not None:
                self._answer(key, error)
            case (
                events.Done(key=key)
                | events.CommittedFound(key=key)
                | events.OffsetsFound(key=key)
                | events.PositionFound(key=key)
            ):
                self._answer(key, effect)
            case _:
                raise AssertionError(f"a consumer said {effect!r}")
        self._news.set()

    def _answer(self, key: object, answer: object) -> None:
        future = self._answers.pop(key, None)
        if future is None or future.done():
            return
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    def _end(self) -> None:
        """Tell whoever still waits that nothing comes any more."""
        for key in list(self._answers):
            self._answer(key, ClientClosed("the consumer"))
        self._news.set()

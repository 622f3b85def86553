"""What a consumer keeps behind its calls: the driver and the machine, what was returned by neither
yet, who waits for which answer, and the listener's calls.

Law: what waits here belongs to the machine until it is returned: it goes back before anything else
is asked. Each call that waits gets its answer, or is told that the consumer is closed.

    a call --> event --> machine --> effect --> records | error | future | listener
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from itertools import count
from typing import Final, Protocol

from ..client.arguments import seconds
from ..client.config import Setting, read_config
from ..client.consumer import CONSUMER_KEYS, ConsumerRecord, TopicPartition, consumer_config, events
from ..client.consumer import Consumer as ConsumerMachine
from ..client.failures import ClientClosed
from ..client.network.cluster import ClusterView
from ..client.requests import Machine
from .driver import Driver, DriverFailed
from .open_client import open_client
from .scoped import Scoped

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


class ConsumerSession(Scoped):
    """A consumer's life, and its half of the talk with the machine; `Consumer` has the calls."""

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
        self._clock: Callable[[], float] = float  # the loop's, once there is one
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
        self._clock = self._driver.now

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

    # -- asking the machine

    def _owners(self, view: ClusterView) -> Mapping[str, Machine]:
        self._machine = ConsumerMachine(
            self._config,
            view,
            rng=random.random,
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
            self._running()[0].handle(events.ReturnRecords(left))
        return bool(left)

    def _has_answer(self) -> bool:
        return self._at < len(self._records) or self._error is not None or self._closed

    async def _attend(self, finished: Callable[[], bool]) -> None:
        """Wait, and call the listener when it is to be called."""
        while True:
            if self._calling is not None:
                calling = self._calling
                try:
                    await asyncio.shield(calling)
                finally:
                    # else we are cancelled, and others wait for it; or it is the next one already
                    if calling.done() and self._calling is calling:
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

    def _time(self, timeout_s: float | None) -> float:
        if timeout_s is None:
            return self._config.default_api_timeout_s
        return seconds(timeout_s)

    def _take(self, effect: object) -> None:
        """Hear what the machine says to its user."""
        match effect:
            case events.Deliver(records=records):
                self._records, self._at = records, 0
            case events.Raise(error=error):
                self._error = error
            case events.CallListener():
                self._call = effect
            case events.DiscardRecords(partitions=partitions):
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
            case DriverFailed(error=failure):
                self._error = failure
                self._closed = True
                self._end(failure)
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

    def _end(self, error: Exception | None = None) -> None:
        """Fail whoever still waits: nothing comes any more."""
        for key in list(self._answers):
            self._answer(key, error or ClientClosed("the consumer"))
        self._news.set()

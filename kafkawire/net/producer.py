"""Producing from asyncio.

Law: each record that `send` accepted gets its result in its future, those of a partition in order;
a `send` that is cancelled has either not happened or happens whole.

    async with Producer({"bootstrap.servers": "localhost:9092"}) as producer:
        future = await producer.send("orders", b"value", key=b"key")    # taken
        metadata = await future                                         # delivered
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Hashable, Mapping
from itertools import count
from typing import Final, NamedTuple, TypeAlias, cast

from ..client.config import Setting, read_config
from ..client.failures import BrokerError, ClientClosed, ClientError, ClientFailed, RequestFailed
from ..client.network.cluster import ClusterView
from ..client.producer import (
    PRODUCER_KEYS,
    Abandon,
    CloseProducer,
    Delivered,
    Failed,
    Failure,
    Flush,
    Flushed,
    Parked,
    Placed,
    ProducerClosed,
    Send,
    Withdraw,
    producer_settings,
)
from ..client.producer import Producer as ProducerMachine
from ..client.producer.checking import checked
from ..client.requests import Machine, Reason
from ..records import Headers
from .driver import Driver, DriverFailed
from .open_client import open_client
from .scoped import Scoped

NANOSECONDS_PER_MILLISECOND: Final = 1_000_000
UNKNOWN: Final = -1
TURN_SECONDS: Final = 0.001
"""How long records may come without the loop having its turn, which costs a hundredth of that."""


class RecordMetadata(NamedTuple):
    """Where a record is; offset -1 where the broker did not say (acks=0). timestamp: milliseconds,
    the broker's own where the topic has log append time.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


_Promise: TypeAlias = tuple[asyncio.Future[RecordMetadata], int]
"""What is owed for one record: its result; and its own timestamp. The machine's token for it."""


class Producer(Scoped):
    """Sends records. Settings under Kafka's names; `PRODUCER_KEYS` has them all.

    Raises ConfigurationError for a setting that is unknown or wrong.
    """

    def __init__(self, config: Mapping[str, Setting]) -> None:
        self._values = read_config(PRODUCER_KEYS, config)
        self._settings = producer_settings(self._values)
        self._driver: Driver | None = None
        self._machine: ProducerMachine | None = None
        self._tokens = count()
        self._begun = -1
        self._since: float | None = None  # when the first record came that the loop let come
        self._queued = 0
        self._turn = asyncio.Lock()
        self._parked: dict[Hashable, asyncio.Future[None]] = {}
        self._flushes: dict[Hashable, asyncio.Future[None]] = {}
        self._done: asyncio.Future[None] | None = None

    async def start(self) -> None:
        """Begin to connect; `async with` does it."""
        if self._driver is not None:
            raise ClientClosed("a producer is opened once; this one was, or")
        self._done = asyncio.get_running_loop().create_future()
        self._driver = open_client(self._values, self._owners, self._take, auto_create_topics=True)

    async def send(
        self,
        topic: str,
        value: bytes | None = None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Take a record to be sent, and give the future of its result.

        Waits while metadata of the topic is missing or buffer.memory is full, at most
        max.block.ms; and lets the loop run every millisecond, so that answers are heard however
        fast records come. timestamp: milliseconds since the epoch; None is now.
        bytearray and memoryview are taken for bytes, a list for a tuple; they are copied before
        this returns or waits.

        The future raises BrokerError or RequestFailed; `send` itself raises ClientClosed, and
        InvalidValue or OutOfRange for an argument of a wrong type or out of range: then nothing
        was queued.
        """
        driver, machine = self._running()
        if timestamp is None:
            timestamp = time.time_ns() // NANOSECONDS_PER_MILLISECOND
        now = driver.now()
        future: asyncio.Future[RecordMetadata] = driver.loop.create_future()
        token = future, timestamp
        record = Send(token, topic, partition, key, value, timestamp, headers)
        if self._queued or (self._since is not None and now > self._since + TURN_SECONDS):
            record = checked(record)  # before its owner can change it
            await self._breathe()
            driver, machine = self._running()
            now = driver.now()
        if self._since is None:
            self._since = now
            driver.loop.call_soon(self._turned)
        effects = machine.handle(record, now)
        if machine.begun != self._begun:
            self._begun = machine.begun
            driver.wake_by(machine.next_deadline())
        if effects:  # most join an open batch, and nothing else needs to be looked at
            driver.perform(driver.client.carry(effects, now))
            waiting = self._parked.get(token)
            if waiting is not None:
                await self._wait(token, waiting)
        return future

    async def deliver(
        self,
        topic: str,
        value: bytes | None = None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
    ) -> RecordMetadata:
        """Send a record and wait for its result; arguments and errors as of `send`."""
        future = await self.send(
            topic, value, key=key, partition=partition, headers=headers, timestamp=timestamp
        )
        return await future

    async def flush(self) -> None:
        """Send all that was taken without lingering; wait until each record has its result."""
        driver, _ = self._running()
        token = next(self._tokens)
        done = self._flushes[token] = driver.loop.create_future()
        driver.handle(Flush(token))
        try:
            await done
        finally:
            self._flushes.pop(token, None)

    async def close(self, timeout_s: float | None = None) -> None:
        """Deliver what was taken, then end.

        timeout_s: how long that may take; what has no result then fails. None waits as long as
        delivery.timeout.ms lets records live.
        """
        driver, done = self._driver, self._done
        if driver is None or done is None:
            return
        try:
            driver.handle(CloseProducer())
            await asyncio.wait([done], timeout=timeout_s)
        finally:
            driver.handle(Abandon())
            self._machine = None
            await driver.close()

    def _owners(self, view: ClusterView) -> Mapping[str, Machine]:
        self._machine = ProducerMachine(self._settings, view, rng=random.random)
        return {"producer": self._machine}

    def _running(self) -> tuple[Driver, ProducerMachine]:
        if self._driver is None or self._machine is None:
            raise ClientClosed("the producer")
        return self._driver, self._machine

    async def _breathe(self) -> None:
        """Let the loop run; records that come meanwhile keep their order behind this one."""
        self._queued += 1
        try:
            async with self._turn:
                if self._since is not None:
                    await asyncio.sleep(0)
        finally:
            self._queued -= 1

    def _turned(self) -> None:
        """The loop has run since the last record came."""
        self._since = None

    async def _wait(self, token: _Promise, waiting: asyncio.Future[None]) -> None:
        """Wait until a parked record is placed or has failed."""
        try:
            await waiting
        finally:
            if self._parked.pop(token, None) is not None:
                driver, _ = self._running()
                driver.handle(Withdraw(token))
                token[0].cancel()

    def _take(self, effect: object) -> None:
        match effect:
            case Delivered():
                self._delivered(effect)
            case Failed(tokens=tokens, failure=failure):
                for token in tokens:
                    self._placed(token)
                for future, _ in cast(list[_Promise], tokens):
                    if not future.done():
                        future.set_exception(raised(failure))
            case Parked(token=token):
                self._parked[token] = asyncio.get_running_loop().create_future()
            case Placed(token=token):
                self._placed(token)
            case Flushed(token=token):
                flushed = self._flushes.get(token)
                if flushed is not None and not flushed.done():
                    flushed.set_result(None)
            case ProducerClosed():
                assert self._done is not None
                if not self._done.done():
                    self._done.set_result(None)
            case DriverFailed(error=error):
                self._failed(error)
            case _:
                raise AssertionError(f"a producer said {effect!r}")

    def _failed(self, error: ClientFailed) -> None:
        """Fail all that waits: the machine will say nothing more."""
        machine, self._machine = self._machine, None
        tokens = [] if machine is None else list(machine.outstanding())
        for token in tokens:
            self._placed(token)
        futures = [future for future, _ in cast(list[_Promise], tokens)]
        for future in futures:
            if not future.done():
                future.set_exception(error)
        for flush in self._flushes.values():
            if not flush.done():
                flush.set_exception(error)
        if self._done is not None and not self._done.done():
            self._done.set_result(None)

    def _delivered(self, effect: Delivered) -> None:
        topic, partition, offset = effect.topic, effect.partition, effect.base_offset
        step = 0 if offset == UNKNOWN else 1
        appended = effect.log_append_time
        for future, timestamp in cast(list[_Promise], effect.tokens):
            if not future.done():
                at = timestamp if appended == UNKNOWN else appended
                future.set_result(RecordMetadata(topic, partition, offset, at))
            offset += step

    def _placed(self, token: Hashable) -> None:
        waiting = self._parked.pop(token, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)


def raised(failure: Failure) -> ClientError:
    """Make the exception for a failure."""
    if failure.reason is Reason.CLOSED:
        return ClientClosed("the producer")
    if failure.reason is not None:
        return RequestFailed(failure.reason, failure.detail)
    return BrokerError(failure.code, failure.detail)

"""What consumers and share consumers have in common: polls, and records that wait for their user.

Buffered records belong to the machine until they are returned. A cancelled poll loses nothing:
the next one returns its records.

    poll ─▶ Poll ─▶ machine ─▶ Deliver: records | Raise: error ─▶ poll
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from operator import length_hint
from typing import Any, ClassVar, Final, Generic, Protocol, Self, TypeVar, cast

from ...client.arguments import seconds
from ...client.cluster import ClusterView
from ...client.config import Values
from ...client.consumer.events import Close, Closed, Poll, StopPolling
from ...client.consumer.failures import DeserializationFailed
from ...client.failures import AlreadyStarted, ClientClosed
from ...client.metrics import MetricName, Metrics
from ...client.metrics.tables import POLL, RECORDS_CONSUMED
from ...errors import LocalProtocolError
from ..measured import measured
from ..scoped import Scoped
from ..sockets.socket import CLOSE_TIMEOUT_S
from .driver import Driver, DriverFailed
from .open_client import open_client
from .pending_calls import PendingCalls

POLL_INTERVAL_S: Final = 1.0
"""How long an iteration returns buffered records before the next poll of the machine."""


class PolledMachine(Protocol):
    """A machine that a user polls."""

    @property
    def polling(self) -> bool:
        """Whether a poll has not ended."""
        ...


MachineT = TypeVar("MachineT", bound=PolledMachine)
RawT = TypeVar("RawT")
RecordT = TypeVar("RecordT")


class PollingClient(Scoped, Generic[MachineT, RawT, RecordT]):
    """A client's lifecycle, and its polls. values: the checked configuration.

    metrics: what it measures. deserialize: makes the user's record of one with bytes, or raises
    DeserializationFailed; None where both are the same.
    """

    what: ClassVar[str]
    """What it is, in errors."""

    def __init__(
        self, values: Values, deserialize: Callable[[RawT], RecordT] | None, metrics: Metrics
    ) -> None:
        self._values = values
        self._metrics = metrics
        self._polled_at: float | None = None
        self._deserialize = deserialize
        self._driver: Driver[Any, Any] | None = None
        self._machine: MachineT | None = None
        self._calls = PendingCalls()
        self._unread: Iterator[RawT] = iter(())
        self._poll_interval_s = POLL_INTERVAL_S
        self._poll_due_at = 0.0
        self._clock: Callable[[], float] = float  # the loop's once started
        self._error: Exception | None = None
        self._polling = False
        self._poll_event = Poll()
        self._closed = False

    # -- lifecycle

    async def start(self) -> None:
        """Start to connect; `async with` calls it."""
        if self._driver is not None:
            raise AlreadyStarted(f"the {self.what}")
        self._driver = open_client(
            self._values, self._owners, self._on_effect, metrics=self._metrics
        )
        self._clock = self._driver.now

    async def close(self, timeout_s: float = 30.0) -> None:
        """Leave the group, and close.

        timeout_s: how long that may take. On return nothing is open, even if cancelled.
        """
        driver = self._driver
        if driver is None:
            return
        try:
            if not self._closed:
                self._return_records()
                driver.handle(Close(timeout_s))
                await self._wait_until(lambda: self._closed)
        finally:
            self._end(ClientClosed(f"the {self.what}"))
            await driver.close(min(timeout_s, CLOSE_TIMEOUT_S))

    def _end(self, error: Exception) -> None:
        """Fail what waits: the machine is closed."""
        self._closed = True
        self._calls.fail(error)

    def _on_end(self, effect: Closed | DriverFailed) -> None:
        """Handle that the machine is closed, because of the user or of an unexpected error."""
        if isinstance(effect, DriverFailed):
            self._error = effect.error
            self._end(effect.error)
        else:
            self._end(ClientClosed(f"the {self.what}"))

    def _running(self) -> tuple[Driver[Any, Any], MachineT]:
        if self._driver is None or self._machine is None or self._closed:
            raise ClientClosed(f"the {self.what}")
        return self._driver, self._machine

    # -- polls

    async def poll(
        self, timeout_s: float | None = None, *, max_records: int | None = None
    ) -> list[RecordT]:
        """Return the next records: at least one, unless the timeout expires.

        timeout_s: None waits for ever. max_records: overrides max.poll.records.
        Raises ConsumerError or a subclass; the next poll tries again.
        """
        await self._poll(timeout_s, Poll(max_records))
        return self._take()

    async def _poll(self, timeout_s: float | None, poll: Poll) -> None:
        """Poll the machine: then there are buffered records, unless the timeout has expired."""
        driver, machine = self._running()
        if timeout_s is not None:
            seconds(timeout_s)
        if self._polling:
            raise LocalProtocolError(f"another poll of this {self.what} is in progress")
        self._return_records()
        self._measure_poll(driver.now())
        self._poll_event = poll
        driver.handle(poll)
        self._polling = True
        try:
            async with asyncio.timeout(timeout_s):
                await self._wait_until(self._poll_finished)
        except TimeoutError:
            if not self._poll_finished():
                return
        finally:
            self._polling = False
            if machine.polling:  # no records, and no error
                driver.handle(StopPolling())
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        if self._closed:
            raise ClientClosed(f"the {self.what}")

    def metrics(self) -> dict[MetricName, float]:
        """Return what this client measures, by Kafka's names."""
        return measured(self._metrics, self._running()[0])

    def _measure_poll(self, now: float) -> None:
        if self._polled_at is not None:
            self._metrics.record(POLL, (now - self._polled_at) * 1000, now)
        self._polled_at = now

    def _delivered(self, records: list[RawT]) -> None:
        """Buffer records for the user, who consumes those that do not go back."""
        self._unread = iter(records)
        self._metrics.record(RECORDS_CONSUMED, len(records), self._clock())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RecordT:
        if self._clock() < self._poll_due_at:
            for record in self._unread:
                if self._deserialize is None:  # for each record: without another call
                    return record  # type: ignore[return-value]  # both types are the same
                return self._returned_record(record)
        await self._poll(None, Poll())
        self._poll_due_at = self._clock() + self._poll_interval_s
        return self._returned_record(next(self._unread))

    def _take(self) -> list[RecordT]:
        """Take the buffered records; if one cannot be deserialized, those before it."""
        records = list(self._unread)
        if self._deserialize is None:
            return cast(list[RecordT], records)
        taken: list[RecordT] = []
        for index, record in enumerate(records):
            try:
                taken.append(self._deserialize(record))
            except DeserializationFailed as error:
                self._unread = iter(records[index:])
                if taken:
                    break
                self._on_deserialization_failed(error)
                raise
        return taken

    def _returned_record(self, record: RawT) -> RecordT:
        """Return a record to the user; it stays buffered if it cannot be deserialized."""
        if self._deserialize is None:
            return record  # type: ignore[return-value]  # both are the same
        try:
            return self._deserialize(record)
        except DeserializationFailed as error:
            self._unread = iter([record, *self._unread])
            self._on_deserialization_failed(error)
            raise

    def _on_deserialization_failed(self, error: DeserializationFailed) -> None:
        """Handle an error that is about to be raised, of the first buffered record."""

    def _return_records(self) -> bool:
        """Return records to the machine that the user has not seen; whether there were any."""
        left = list(self._unread)
        if left:
            self._metrics.record(RECORDS_CONSUMED, -len(left), self._clock())
            self._running()[0].handle(self._returned(left))
        return bool(left)

    def _poll_finished(self) -> bool:
        return length_hint(self._unread) > 0 or self._error is not None or self._closed

    async def _wait_until(self, finished: Callable[[], bool]) -> None:
        while not finished():
            self._calls.changed.clear()
            await self._calls.changed.wait()

    # -- the machine

    @abstractmethod
    def _owners(self, view: ClusterView) -> Mapping[str, Any]:
        """Make the machine."""

    @abstractmethod
    def _returned(self, records: list[RawT]) -> object:
        """Return the event that these records were not processed."""

    @abstractmethod
    def _on_effect(self, effect: Any) -> None:
        """Handle the machine's effects for its user."""

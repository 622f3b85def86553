"""Reports what became of the records that `produce` sends, and of their transaction.

A record is reported once, in the order of the input; a transaction is committed only if every
record was delivered.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

import typer

from kafkawire.display import printable
from kafkawire.errors import InvalidRecordValue, UnusableSchema

from ..notes import print_note

if TYPE_CHECKING:
    from kafkawire.client.failures import ClientError
    from kafkawire.net.producer import Producer, RecordMetadata

MAX_PENDING: Final = 1000
COMMITTED: Final = "transaction committed"
ABORTED: Final = "transaction aborted"
UNKNOWN: Final = "transaction not known to be committed"


class DeliveryReport:
    """Counts delivered and failed lines, in input order, and prints the failures.

    place: where a line is, with its number. begun: whether lines are read. error: the last failure,
    if it is of the client. transaction: what became of it; None without one.
    """

    def __init__(self, verbose: bool, place: str) -> None:
        self.delivered = self.failed = 0
        self.begun = False
        self._verbose = verbose
        self._place = place
        self.error: ClientError | None = None
        self.transaction: str | None = None
        self._pending: deque[asyncio.Future[RecordMetadata]] = deque()

    @property
    def summary(self) -> str:
        """The numbers of records, and what became of their transaction."""
        counted = f"{self.delivered} delivered, {self.failed} failed"
        return counted if self.transaction is None else f"{counted}, {self.transaction}"

    async def add(self, future: asyncio.Future[RecordMetadata]) -> ClientError | None:
        """Add the future of the next line; return its error if it failed at once."""
        self._pending.append(future)
        while self._pending and (self._pending[0].done() or len(self._pending) > MAX_PENDING):
            await self._report_next()
        failed = future.exception() if future.done() and not future.cancelled() else None
        return failed if failed is None else _client_error(failed)

    async def drain(self) -> None:
        """Wait for all pending records."""
        while self._pending:
            await self._report_next()

    def created(self, topic: str) -> None:
        """Report that the cluster created the topic, if a record was delivered to it."""
        if self.delivered:
            print_note(f"topic {topic} was created")

    async def _report_next(self) -> None:
        from kafkawire.client.failures import ClientError

        line = self.delivered + self.failed + 1
        try:
            metadata = await asyncio.shield(self._pending[0])
        except (ClientError, InvalidRecordValue, UnusableSchema) as error:
            self.failed += 1
            self.error = _client_error(error)
            typer.echo(printable(f"{self._place.format(line)}: {error}"), err=True)
        else:
            self.delivered += 1
            if self._verbose:
                sys.stdout.write(
                    printable(f"{metadata.topic}-{metadata.partition} {metadata.offset}") + "\n"
                )
        self._pending.popleft()


def _client_error(error: BaseException) -> ClientError | None:
    from kafkawire.client.failures import ClientError

    return error if isinstance(error, ClientError) else None


async def in_transaction(
    producer: Producer, sends: Coroutine[Any, Any, None], report: DeliveryReport
) -> None:
    """Send records in a transaction; abort it if any was not delivered."""
    from kafkawire.client.failures import ProducerFenced, TransactionAbortable

    try:
        await producer.begin()
        report.transaction = ABORTED  # by the close, if this is interrupted
        await sends
        await report.drain()
        if report.failed:
            await producer.abort()
            return
        report.transaction = UNKNOWN
        await producer.commit()
        report.transaction = COMMITTED
    except (ProducerFenced, TransactionAbortable):
        report.transaction = ABORTED
        raise
    finally:
        sends.close()

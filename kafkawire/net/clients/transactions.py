"""The transactions of a producer, from asyncio.

Each call has its result, or raises. After a call that timed out or was cancelled, the same
call again waits for the same result.

    async with Producer({..., "transactional.id": "billing-1"}) as producer:
        async with producer.transaction():
            await producer.send("invoices", b"...")
            await producer.send_offsets(offsets, consumer.group_metadata())
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from contextlib import asynccontextmanager
from itertools import count

from ...client.arguments import INT32, text, whole
from ...client.consumer import OffsetAndMetadata, TopicPartition
from ...client.consumer.checking import offsets_of
from ...client.failures import ClientClosed, RequestFailed
from ...client.group_metadata import UNKNOWN_GENERATION, ConsumerGroupMetadata
from ...client.producer import (
    BeginTransaction,
    Cancel,
    EndTransaction,
    InitTransactions,
    ProducerSettings,
    SendOffsets,
    TransactionDone,
    TransactionFailed,
    TransactionOffset,
)
from ...client.producer import Producer as ProducerMachine
from ...client.producer.events import TransactionEvent, UserEffect, UserEvent
from ...client.producer.record_failures import transaction_error
from ...client.producer.transactions.states import TransactionState
from ...client.requests import Reason
from ...errors import InvalidValue, LocalProtocolError
from ..scoped import Scoped
from .driver import Driver


class TransactionCalls(Scoped):
    """The calls of a producer that are about transactions (KIP-98).

    Each waits at most max.block.ms and then raises RequestFailed; what it began goes on. All raise
    LocalProtocolError, and change nothing, if the transaction's state does not allow them.
    """

    def __init__(self, settings: ProducerSettings) -> None:
        self._settings = settings
        self._driver: Driver[UserEvent, UserEffect] | None = None
        self._machine: ProducerMachine | None = None
        self._tokens = count()
        self._calls: dict[Hashable, asyncio.Future[None]] = {}

    async def init_transactions(self) -> None:
        """Get a producer id for the transactional id; `begin` does so for the first transaction.

        Fences all producers that had the transactional id, and aborts their transaction. Call it
        before committed offsets are read, which such a transaction may be about to commit. Raises
        TransactionFatal.
        """
        await self._call(InitTransactions, "init_transactions")

    async def begin(self) -> None:
        """Begin a transaction: records sent from now on belong to it.

        Raises TransactionAbortable if the last one has to be aborted first; TransactionFatal.
        """
        _, machine = self._running()
        transactions = machine.transactions
        if transactions is not None and transactions.state in (
            TransactionState.UNINITIALIZED,
            TransactionState.INITIALIZING,
        ):
            await self.init_transactions()
        await self._call(BeginTransaction, "begin")

    async def send_offsets(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        group: ConsumerGroupMetadata,
    ) -> None:
        """Commit offsets of a consumer group, the next ones to read, with the transaction.

        group: `Consumer.group_metadata()`; the consumer must not commit by itself. Raises
        TransactionAbortable, also if the member lost its partitions (KIP-447), TransactionFatal;
        InvalidValue or OutOfRange.
        """
        listed = tuple(
            TransactionOffset(*where, at.offset, at.leader_epoch, at.metadata)
            for where, at in offsets_of(offsets).items()
        )
        member = _checked(group)
        await self._call(lambda token: SendOffsets(token, member, listed), "send_offsets")

    async def commit(self) -> None:
        """Send all records of the transaction, and commit it.

        Raises TransactionAbortable: it has to be aborted, as a record was not delivered or a
        coordinator refused; TransactionFatal, ProducerFenced.
        """
        await self._call(lambda token: EndTransaction(token, True), "commit")

    async def abort(self) -> None:
        """Discard all records of the transaction that are not sent, and abort it.

        Their futures raise TransactionAborted. Raises TransactionFatal, ProducerFenced.
        """
        await self._call(lambda token: EndTransaction(token, False), "abort")

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Begin a transaction, and commit it at the end of the block.

        An exception in the block, or one that says that the commit has to be aborted, aborts it and
        is raised.
        """
        await self.begin()
        try:
            yield
            await self.commit()
        except BaseException as error:
            await self._abort_after(error)
            raise

    async def _abort_after(self, error: BaseException) -> None:
        """Abort the transaction unless it is over, or its commit is under way."""
        if self._driver is None or self._machine is None or self._machine.transactions is None:
            return
        state = self._machine.transactions.state
        if state in (TransactionState.IN_TRANSACTION, TransactionState.ABORTABLE_ERROR):
            try:
                await self.abort()
            except Exception as failed:  # noqa: BLE001 - the first error is raised
                error.add_note(f"abort of the transaction failed: {failed}")

    async def _call(self, event: Callable[[Hashable], TransactionEvent], name: str) -> None:
        driver, machine = self._running()
        if machine.transactions is None:
            raise LocalProtocolError(f"{name} requires transactional.id")
        token = next(self._tokens)
        done = self._calls[token] = driver.loop.create_future()
        received: set[asyncio.Future[None]] = set()
        try:
            driver.handle(event(token))
            # unlike a timeout around it, this does not cancel what ends in the same turn
            received, _ = await asyncio.wait([done], timeout=self._settings.max_block_s)
        finally:
            self._calls.pop(token, None)
            if self._machine is not None and not received:
                driver.handle(Cancel(token))
        if not received:
            raise RequestFailed(Reason.TIMED_OUT, f"{name} within max.block.ms")
        done.result()

    def _on_transaction(self, effect: TransactionDone | TransactionFailed) -> None:
        done = self._calls.get(effect.token)
        if done is None or done.done():
            return
        if isinstance(effect, TransactionFailed):
            done.set_exception(transaction_error(effect))
        else:
            done.set_result(None)

    def _running(self) -> tuple[Driver[UserEvent, UserEffect], ProducerMachine]:
        if self._driver is None or self._machine is None:
            raise ClientClosed("the producer")
        return self._driver, self._machine


def _checked(group: object) -> ConsumerGroupMetadata:
    if not isinstance(group, ConsumerGroupMetadata):
        raise InvalidValue(f"expected ConsumerGroupMetadata, got {type(group).__name__}", "group")
    instance = group.group_instance_id
    return ConsumerGroupMetadata(
        text(group.group_id, "group.group_id"),
        whole(group.generation_id, "group.generation_id", UNKNOWN_GENERATION, INT32),
        text(group.member_id, "group.member_id"),
        None if instance is None else text(instance, "group.group_instance_id"),
    )

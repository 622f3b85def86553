"""The producer whose calls wait."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager

from ..net import producer as asynchronous
from ..net.producer import RecordMetadata
from ..records import Headers
from .client import BlockingClient, future_in_threads, waiting


class Producer(BlockingClient[asynchronous.Producer]):
    """Sends records; see `kafkawire.net.producer.Producer`.

    Each call passes from thread to thread: many records a second are for the asyncio producer.
    """

    kind = asynchronous.Producer

    def send(
        self,
        topic: str,
        value: bytes | None = None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
    ) -> Future[RecordMetadata]:
        """Accept a record for sending; return the future of its result.

        Waits while metadata of the topic is missing or buffer.memory is full, at most
        max.block.ms. Arguments and errors as in `kafkawire.net.producer.Producer.send`.
        """

        async def accept() -> Future[RecordMetadata]:
            pending = await self._client.send(
                topic, value, key=key, partition=partition, headers=headers, timestamp=timestamp
            )
            return future_in_threads(pending)

        return self._run(accept())

    deliver = waiting(asynchronous.Producer.deliver)
    flush = waiting(asynchronous.Producer.flush)
    init_transactions = waiting(asynchronous.Producer.init_transactions)
    begin = waiting(asynchronous.Producer.begin)
    send_offsets = waiting(asynchronous.Producer.send_offsets)
    commit = waiting(asynchronous.Producer.commit)
    abort = waiting(asynchronous.Producer.abort)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Begin a transaction, and commit it at the end of the block.

        An exception in the block, or one that says that the commit has to be aborted, aborts it and
        is raised.
        """
        transaction = self._client.transaction()
        self._run(_enter(transaction))
        try:
            yield
        except BaseException as error:
            self._run(_leave(transaction, error))
            raise
        self._run(_leave(transaction, None))

    def close(self, timeout_s: float | None = None) -> None:
        """Deliver all accepted records, then close.

        timeout_s: how long that may take; records without a result then fail. None waits for at
        most delivery.timeout.ms.
        """
        self._close(self._client.close(timeout_s))


async def _enter(transaction: AbstractAsyncContextManager[None]) -> None:
    await transaction.__aenter__()


async def _leave(
    transaction: AbstractAsyncContextManager[None], error: BaseException | None
) -> None:
    kind, trace = (None, None) if error is None else (type(error), error.__traceback__)
    await transaction.__aexit__(kind, error, trace)

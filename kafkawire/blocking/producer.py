"""The producer whose calls wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from ..client.config import Setting
from ..client.producer.serializing import HeaderPairs
from ..client.serialization import KeyT, Serializer, ValueT
from ..net import producer as asynchronous
from ..net.interceptors import OnAcknowledgement, OnSend
from ..net.producer import RecordMetadata
from .client import BlockingClient, future_in_threads, in_loop, waiting

if TYPE_CHECKING:
    import pyarrow as pa

_Client: TypeAlias = asynchronous.Producer[Any, Any]


class Producer(BlockingClient[asynchronous.Producer[KeyT, ValueT]], Generic[KeyT, ValueT]):
    """Sends records; see `kafkawire.net.producer.Producer`.

    Each call passes from thread to thread: many records a second are for the asyncio producer.
    """

    kind = asynchronous.Producer

    def __init__(
        self,
        config: Mapping[str, Setting],
        *,
        key_serializer: Serializer[KeyT] | None = None,
        value_serializer: Serializer[ValueT] | None = None,
        on_send: Sequence[OnSend[KeyT, ValueT]] | None = None,
        on_acknowledgement: Sequence[OnAcknowledgement[KeyT, ValueT]] | None = None,
    ) -> None:
        super().__init__(
            config,
            key_serializer=key_serializer,
            value_serializer=value_serializer,
            on_send=on_send,
            on_acknowledgement=on_acknowledgement,
        )

    def send(
        self,
        topic: str,
        value: ValueT | None = None,
        *,
        key: KeyT | None = None,
        partition: int | None = None,
        headers: HeaderPairs = (),
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

    def send_batch(self, topic: str, batch: pa.RecordBatch) -> Future[pa.RecordBatch]:
        """Accept the records of a batch for sending; return the future of their results.

        Arguments, results and errors as in `kafkawire.net.producer.Producer.send_batch`.
        """

        async def accept() -> Future[pa.RecordBatch]:
            return future_in_threads(await self._client.send_batch(topic, batch))

        return self._run(accept())

    def deliver(
        self,
        topic: str,
        value: ValueT | None = None,
        *,
        key: KeyT | None = None,
        partition: int | None = None,
        headers: HeaderPairs = (),
        timestamp: int | None = None,
    ) -> RecordMetadata:
        """Send a record and wait for its result; arguments and errors as in `send`."""
        return self._run(
            self._client.deliver(
                topic, value, key=key, partition=partition, headers=headers, timestamp=timestamp
            )
        )

    metrics = in_loop(_Client.metrics)
    flush = waiting(_Client.flush)
    init_transactions = waiting(_Client.init_transactions)
    begin = waiting(_Client.begin)
    send_offsets = waiting(_Client.send_offsets)
    commit = waiting(_Client.commit)
    abort = waiting(_Client.abort)

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

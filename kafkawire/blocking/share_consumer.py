"""The share consumer whose calls wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from typing import Any, Generic, TypeAlias

from ..client.config import Setting
from ..client.serialization import Deserializer, KeyT, ValueT
from ..client.share_consumer import ShareRecord
from ..net import share_consumer as asynchronous
from ..net.share_consumer import Results
from .client import BlockingClient, future_in_threads, in_loop, waiting

_Client: TypeAlias = asynchronous.ShareConsumer[Any, Any]


class ShareConsumer(
    BlockingClient[asynchronous.ShareConsumer[KeyT, ValueT]], Generic[KeyT, ValueT]
):
    """Reads records as a member of a share group; see `kafkawire.net.share_consumer`.

    Functions of the user run in the consumer's thread, and cannot call the consumer.
    """

    kind = asynchronous.ShareConsumer

    def __init__(
        self,
        config: Mapping[str, Setting],
        *,
        key_deserializer: Deserializer[KeyT] | None = None,
        value_deserializer: Deserializer[ValueT] | None = None,
    ) -> None:
        super().__init__(
            config, key_deserializer=key_deserializer, value_deserializer=value_deserializer
        )

    metrics = in_loop(_Client.metrics)
    subscribe = in_loop(_Client.subscribe)
    unsubscribe = waiting(_Client.unsubscribe)
    subscription = in_loop(_Client.subscription)
    acquisition_lock_timeout_s = in_loop(_Client.acquisition_lock_timeout_s)
    acknowledge = in_loop(_Client.acknowledge)
    commit = waiting(_Client.commit)
    set_acknowledgement_callback = in_loop(_Client.set_acknowledgement_callback)

    def poll(
        self, timeout_s: float | None = None, *, max_records: int | None = None
    ) -> list[ShareRecord[KeyT, ValueT]]:
        """Return the next records; arguments and errors as in `kafkawire.net.share_consumer`."""
        return self._run(self._client.poll(timeout_s, max_records=max_records))

    def commit_async(self) -> Future[Results]:
        """Commit as `commit` does, without waiting: the future has the result."""

        async def commit() -> Future[Results]:
            return future_in_threads(self._client.commit_async())

        return self._run(commit())

    def __iter__(self) -> Iterator[ShareRecord[KeyT, ValueT]]:
        """Iterate over records, for ever."""
        return self

    def __next__(self) -> ShareRecord[KeyT, ValueT]:
        """Return the next record, as soon as there is one."""
        return self._run(self._client.__anext__())

    def close(self, timeout_s: float = 30.0) -> None:
        """Send pending acknowledgements, leave the group, and close.

        Records that were not acknowledged are released. timeout_s: how long that may take.
        """
        self._close(self._client.close(timeout_s))

"""The share consumer whose calls wait."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future

from ..client.share_consumer import ShareRecord
from ..net import share_consumer as asynchronous
from ..net.share_consumer import Results
from .client import BlockingClient, future_in_threads, in_loop, waiting


class ShareConsumer(BlockingClient[asynchronous.ShareConsumer]):
    """Reads records as a member of a share group; see `kafkawire.net.share_consumer`."""

    kind = asynchronous.ShareConsumer

    subscribe = in_loop(asynchronous.ShareConsumer.subscribe)
    unsubscribe = waiting(asynchronous.ShareConsumer.unsubscribe)
    subscription = in_loop(asynchronous.ShareConsumer.subscription)
    acquisition_lock_timeout_s = in_loop(asynchronous.ShareConsumer.acquisition_lock_timeout_s)
    poll = waiting(asynchronous.ShareConsumer.poll)
    acknowledge = in_loop(asynchronous.ShareConsumer.acknowledge)
    commit = waiting(asynchronous.ShareConsumer.commit)
    set_acknowledgement_callback = in_loop(asynchronous.ShareConsumer.set_acknowledgement_callback)

    def commit_async(self) -> Future[Results]:
        """Commit as `commit` does, without waiting: the future has the result."""

        async def commit() -> Future[Results]:
            return future_in_threads(self._client.commit_async())

        return self._run(commit())

    def __iter__(self) -> Iterator[ShareRecord]:
        """Iterate over records, for ever."""
        return self

    def __next__(self) -> ShareRecord:
        """Return the next record, as soon as there is one."""
        return self._run(self._client.__anext__())

    def close(self, timeout_s: float = 30.0) -> None:
        """Send pending acknowledgements, leave the group, and close.

        Records that were not acknowledged are released. timeout_s: how long that may take.
        """
        self._close(self._client.close(timeout_s))

"""The calls of a client's user that wait for the machine: a future for each, by its key.

A future gets its result once; all that are left fail when the client ends.
"""

from __future__ import annotations

import asyncio
from itertools import count


class PendingCalls:
    """The pending calls of one client. keys: for new calls. changed: set with each result."""

    def __init__(self) -> None:
        self.keys = count()
        self.changed = asyncio.Event()
        self._futures: dict[object, asyncio.Future[object]] = {}

    def expect(self, key: object) -> asyncio.Future[object]:
        """Return the future of a call."""
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._futures[key] = future
        return future

    def forget(self, key: object) -> None:
        """Forget a call that was not made, or whose caller no longer waits."""
        self._futures.pop(key, None)

    def resolve(self, key: object, result: object) -> None:
        """End a call with its result, or with an exception."""
        future = self._futures.pop(key, None)
        if future is None or future.done():
            return
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)

    def fail(self, error: Exception) -> None:
        """Fail all pending calls."""
        for key in list(self._futures):
            self.resolve(key, error)
        self.changed.set()

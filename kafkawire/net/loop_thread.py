"""An event loop in a thread of its own, for code without one, such as tests.

What runs in the loop is accessed only there; every call here is submitted to it and awaited.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from ..errors import LocalProtocolError

T = TypeVar("T")
TIMEOUT_SECONDS: Final = 30.0
THREAD_NAME: Final = "kafkawire-broker"


class LoopThread:
    """The loop, from its start on, and its thread. name: of the thread; what: of what runs in it.

    Raises LocalProtocolError where nothing runs: before the start, after the end, and in the loop
    itself, which would wait for itself.
    """

    loop: asyncio.AbstractEventLoop

    def __init__(self, name: str = THREAD_NAME, what: str = "the cluster") -> None:
        self._what = what
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread, once."""
        if self._was_started:
            raise LocalProtocolError(f"{self._what} was already started")
        self.loop = asyncio.new_event_loop()
        self._thread.start()

    def end(self) -> None:
        """Cancel unfinished tasks, and end the thread. Raises TimeoutError if one does not end."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(TIMEOUT_SECONDS)
        if not self.has_ended:
            raise TimeoutError(f"{self._what} has not ended within {TIMEOUT_SECONDS:g} seconds")

    @property
    def _was_started(self) -> bool:
        return self._thread.ident is not None

    @property
    def has_ended(self) -> bool:
        """Whether it was started, and nothing runs in it any more."""
        return self._was_started and not self._thread.is_alive()

    def check_runs(self) -> None:
        """Raise LocalProtocolError where a call would wait for nothing."""
        if not self._was_started:
            raise LocalProtocolError(f"{self._what} was not started: `with` does")
        if self.has_ended:
            raise LocalProtocolError(f"{self._what} is closed")
        if threading.current_thread() is self._thread:
            raise LocalProtocolError(f"{self._what} was called in its own event loop")

    def run(
        self,
        work: Coroutine[Any, Any, T],
        timeout: float | None = TIMEOUT_SECONDS,
        unmet: str = "the event loop has not done it",
    ) -> T:
        """Run a coroutine in the loop; return its result. An interrupt cancels it.

        unmet: what TimeoutError says; the coroutine is cancelled then.
        """
        try:
            self.check_runs()
        except LocalProtocolError:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result(timeout)
        except KeyboardInterrupt:
            future.cancel()
            raise
        except TimeoutError:
            if future.done():  # the error is the coroutine's own, or it has ended meanwhile
                return future.result()
        future.cancel()
        raise TimeoutError(f"{unmet} within {timeout:g} seconds")

    def call(self, work: Callable[[], T]) -> T:
        """Call a function in the loop; return its result."""

        async def called() -> T:
            return work()

        return self.run(called())

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        left = asyncio.all_tasks(self.loop)  # unfinished tasks of clients
        for task in left:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

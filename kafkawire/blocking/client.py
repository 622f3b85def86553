"""What the blocking clients have in common: a loop in a thread, and methods that wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from functools import wraps
from types import TracebackType
from typing import Any, ClassVar, Concatenate, Final, Generic, ParamSpec, Self, TypeVar

from ..client.config import Setting
from ..client.failures import AlreadyStarted, ClientClosed
from ..net.loop_thread import LoopThread
from ..net.scoped import Scoped

C_co = TypeVar("C_co", bound=Scoped, covariant=True)
P = ParamSpec("P")
T = TypeVar("T")

THREAD_NAME: Final = "kafkawire-client"


class BlockingClient(Generic[C_co]):
    """A client of `kafkawire.net` in a thread of its own. Raises ConfigurationError.

    `with` starts it and closes it. functions: of the user, which are called in that thread.
    """

    kind: ClassVar[type[Any]]
    """The class of the client in the loop."""

    def __init__(self, config: Mapping[str, Setting], **functions: object) -> None:
        self._client: C_co = type(self).kind(config, **functions)
        self._thread: LoopThread | None = None
        self._is_closed = False

    def start(self) -> None:
        """Start to connect; `with` calls it."""
        if self._thread is not None or self._is_closed:
            raise AlreadyStarted(f"the {self._name}")
        self._thread = LoopThread(THREAD_NAME, f"the {self._name}")
        self._thread.start()
        try:
            self._run(self._client.start())
        except BaseException:
            self.close()
            raise

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop, and wait for its result."""
        thread = self._thread
        if thread is None:
            work.close()
            raise ClientClosed(f"the {self._name}")
        return thread.run(work, None)

    def _close(self, work: Coroutine[Any, Any, None]) -> None:
        """Close the client, and end the thread, whatever happens."""
        if self._thread is None:
            work.close()
            return
        try:
            self._run(work)
        finally:
            thread, self._thread, self._is_closed = self._thread, None, True
            thread.end()

    @property
    def _name(self) -> str:
        return type(self).__name__.lower()

    def close(self) -> None:
        """Close; `with` calls it."""
        self._close(self._client.close())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def waiting(
    method: Callable[Concatenate[C_co, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[BlockingClient[C_co], P], T]:
    """Make a method that waits for the result of a coroutine of the client."""

    @wraps(method)
    def wait(self: BlockingClient[C_co], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(method(self._client, *args, **kwargs))

    return wait


def in_loop(
    method: Callable[Concatenate[C_co, P], T],
) -> Callable[Concatenate[BlockingClient[C_co], P], T]:
    """Make a method that calls one of the client in its loop."""

    @wraps(method)
    def call(self: BlockingClient[C_co], /, *args: P.args, **kwargs: P.kwargs) -> T:
        async def called() -> T:
            return method(self._client, *args, **kwargs)

        return self._run(called())

    return call


def future_in_threads(pending: asyncio.Future[T]) -> Future[T]:
    """Return a future for other threads with the result of one of the loop.

    It cannot be cancelled: what it waits for goes on.
    """
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def done(result: asyncio.Future[T]) -> None:
        if result.cancelled():
            future.set_exception(ClientClosed("the client"))
            return
        error = result.exception()
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result.result())

    pending.add_done_callback(done)
    return future

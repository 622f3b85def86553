"""An event loop in a thread: results of coroutines, and what takes too long."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from kafkawire.net.loop_thread import LoopThread


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    thread = LoopThread("tests")
    thread.start()
    yield thread
    thread.end()
    assert thread.has_ended


class LateFuture(Future[str]):
    """Has its result at the end of the wait for it, just too late for the wait to see."""

    def result(self, timeout: float | None = None) -> str:
        if timeout is None:
            return super().result()
        self.set_result("late")
        raise TimeoutError


def test_a_result_that_comes_as_the_wait_ends_is_returned(
    thread: LoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(work: Coroutine[Any, Any, str], _: asyncio.AbstractEventLoop) -> Future[str]:
        work.close()
        return LateFuture()

    async def work() -> str:
        raise AssertionError("the future has the result")

    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", late)
    assert thread.run(work()) == "late"


def test_a_timeout_of_the_coroutine_is_its_own(thread: LoopThread) -> None:
    async def work() -> None:
        raise TimeoutError("of the coroutine")

    with pytest.raises(TimeoutError, match="of the coroutine"):
        thread.run(work())


def test_what_takes_too_long_is_cancelled(thread: LoopThread) -> None:
    cancelled = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(TimeoutError, match=r"not there within 0\.01 seconds"):
        thread.run(work(), 0.01, "not there")
    thread.run(cancelled.wait())

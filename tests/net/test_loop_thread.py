"""An event loop in a thread: results of coroutines, and what takes too long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import pytest

from kafkawire.errors import LocalProtocolError
from kafkawire.net import loop_thread
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


def test_a_call_is_refused_where_it_would_wait_for_nothing() -> None:
    async def work() -> None:
        raise AssertionError("it does not run")

    thread = LoopThread("tests", "the thing")
    with pytest.raises(LocalProtocolError, match=r"^the thing was not started: `with` does$"):
        thread.run(work())
    thread.start()
    with pytest.raises(LocalProtocolError, match=r"^the thing was called in its own event loop$"):
        thread.call(lambda: thread.run(work()))
    with pytest.raises(LocalProtocolError, match=r"^the thing was already started$"):
        thread.start()
    thread.end()
    with pytest.raises(LocalProtocolError, match=r"^the thing is closed$"):
        thread.run(work())
    with pytest.raises(LocalProtocolError, match=r"^the thing was already started$"):
        thread.start()


def test_a_thread_that_is_not_started_leaves_no_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    def new_event_loop() -> None:
        raise AssertionError("it has a selector and two sockets, which nobody closes")

    monkeypatch.setattr(asyncio, "new_event_loop", new_event_loop)
    LoopThread("tests")


def test_a_task_that_does_not_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = asyncio.Event()

    async def stays() -> None:
        while not may_end.is_set():
            with suppress(asyncio.CancelledError):
                await may_end.wait()

    async def begin() -> asyncio.Task[None]:
        task = asyncio.create_task(stays())
        await asyncio.sleep(0)
        return task

    thread = LoopThread("tests", "the thing")
    thread.start()
    task = thread.run(begin())
    with monkeypatch.context() as patch:
        patch.setattr(loop_thread, "TIMEOUT_SECONDS", 0.01)
        with pytest.raises(TimeoutError, match=r"^the thing has not ended within 0\.01 seconds$"):
            thread.end()
    thread.loop.call_soon_threadsafe(may_end.set)
    while not thread.has_ended:
        time.sleep(0.001)
    assert task.done()

"""When sends let the event loop run, and what they look at meanwhile."""

from __future__ import annotations

import asyncio
import socket
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kafkawire.net.clients import loop_iteration
from kafkawire.net.clients.loop_iteration import LOOK_SECONDS, YIELD_SECONDS, LoopIteration
from kafkawire.net.sockets.readiness import Readiness


def transport(of: socket.socket | None) -> Any:
    return SimpleNamespace(get_extra_info=lambda _: of)


def test_received_bytes_are_seen_before_the_loop_reads_them() -> None:
    ours, theirs = socket.socketpair()
    others, _ = socket.socketpair()
    with ours, theirs, others, _:
        readiness = Readiness()
        number = readiness.add(transport(ours))
        readiness.add(transport(others))
        assert not readiness.any()
        theirs.send(b"x")
        assert readiness.any()
        readiness.remove(number)
        assert not readiness.any()


def test_a_transport_without_a_socket_may_have_received_something() -> None:
    readiness = Readiness()
    number = readiness.add(transport(None))
    assert readiness.any()
    readiness.remove(number)
    assert not readiness.any()


def test_sends_go_on_until_something_is_received_or_a_millisecond_is_over() -> None:
    ours, theirs = socket.socketpair()

    async def scenario() -> None:
        iteration, readiness = LoopIteration(), Readiness()
        readiness.add(transport(ours))
        iteration.begin(100.0, asyncio.get_running_loop(), has_backlog=True)
        now = iteration.look_at
        assert now == 100.0 + LOOK_SECONDS
        assert iteration.is_over(now)
        assert iteration.look(now, readiness)
        assert not iteration.is_over(now), "nothing was received"
        assert iteration.look_at == now + LOOK_SECONDS
        theirs.send(b"x")
        assert not iteration.look(iteration.look_at, readiness)
        assert iteration.is_over(iteration.look_at)
        ours.recv(1)
        assert iteration.look(iteration.look_at, readiness)
        assert not iteration.look(100.0 + YIELD_SECONDS, readiness), "other tasks wait"
        await asyncio.sleep(0)
        assert not iteration.begun
        assert not iteration.is_over(200.0)

    with ours, theirs:
        asyncio.run(scenario())


def test_without_a_backlog_sends_look_at_nothing() -> None:
    async def scenario() -> None:
        iteration = LoopIteration()
        iteration.begin(100.0, asyncio.get_running_loop(), has_backlog=False)
        assert iteration.look_at == iteration.yield_at == 100.0 + YIELD_SECONDS

    asyncio.run(scenario())


def test_a_paced_send_waits_for_a_result_or_a_millisecond() -> None:
    async def scenario() -> None:
        iteration = LoopIteration()
        iteration.begin(100.0, asyncio.get_running_loop(), has_backlog=True)
        iteration.pace()
        assert iteration.is_over(0.0)
        waiting = [asyncio.ensure_future(iteration.run_loop()) for _ in range(3)]
        for _ in range(4):
            await asyncio.sleep(0)
        assert not any(each.done() for each in waiting), "they keep their order"
        iteration.on_result()
        for _ in range(4):
            await asyncio.sleep(0)
        assert all(each.done() for each in waiting)
        iteration.pace()
        await iteration.run_loop()  # a broker that does not respond
        assert not iteration.is_over(0.0)

    asyncio.run(scenario())


def test_a_result_before_the_next_send_is_not_waited_for() -> None:
    async def scenario() -> None:
        iteration = LoopIteration()
        iteration.pace()
        iteration.on_result()
        assert not iteration.is_over(0.0)
        waiting = asyncio.ensure_future(iteration.run_loop())
        await asyncio.sleep(0)
        assert waiting.done()

    asyncio.run(scenario())


def test_a_result_ends_the_wait_without_a_timer_or_a_future_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_iteration, "PACE_SECONDS", 300.0)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        timers: list[asyncio.TimerHandle] = []
        futures: list[weakref.ref[asyncio.Future[Any]]] = []
        call_later, create_future = loop.call_later, loop.create_future

        def timed(delay: float, callback: Callable[..., object], *of: Any) -> asyncio.TimerHandle:
            timers.append(call_later(delay, callback, *of))
            return timers[-1]

        def created() -> asyncio.Future[Any]:
            future = create_future()
            futures.append(weakref.ref(future))
            return future

        iteration = LoopIteration()
        with monkeypatch.context() as patch:
            patch.setattr(loop, "call_later", timed)
            patch.setattr(loop, "create_future", created)
            iteration.pace()
            waiting = asyncio.ensure_future(iteration.run_loop())
            await asyncio.sleep(0)
            assert not waiting.done()
            iteration.on_result()
            await waiting
        assert [each.cancelled() for each in timers] == [True]
        timers.clear()
        assert [each() for each in futures] == [None]

    asyncio.run(scenario())

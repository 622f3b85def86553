"""What the shell of a client does with effects, bytes and deadlines."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, cast

import pytest

from kafkawire.client.client import Client
from kafkawire.client.network.transport import BytesReceived, Write
from kafkawire.net.clients.driver import Driver
from kafkawire.net.producer import Producer
from kafkawire.net.server_thread import ServerThread


class Machine:
    """In the place of a client: gives the effects it was made with."""

    def __init__(self, effects: Sequence[object]) -> None:
        self.effects = effects
        self.deadline: float | None = None
        self.advanced = 0

    def handle(self, _event: object, _now: float) -> Sequence[object]:
        return self.effects

    def advance(self, _now: float) -> Sequence[object]:
        self.advanced += 1
        return []

    def next_deadline(self) -> float | None:
        return self.deadline


class DueOnce(Machine):
    """One that is due at once after an event, and has an effect then."""

    def handle(self, _event: object, now: float) -> Sequence[object]:
        self.deadline = now
        return self.effects

    def advance(self, _now: float) -> Sequence[object]:
        self.deadline = None
        return ["due"]


class Sink:
    """In the place of a socket."""

    def __init__(self, seen: list[object]) -> None:
        self.seen = seen

    def write(self, buffers: list[bytes]) -> None:
        self.seen.append(buffers)


def driver_of(machine: Machine, seen: list[object]) -> Driver[Any, Any]:
    driver: Driver[Any, Any] = Driver(cast(Client[Any, Any], machine), seen.append)
    driver._sockets[1] = cast(Any, Sink(seen))
    return driver


def test_requests_are_written_before_the_user_learns_of_results() -> None:
    async def scenario() -> list[object]:
        seen: list[object] = []
        driver = driver_of(Machine(["delivered", Write(1, [b"next"]), "flushed"]), seen)
        driver.handle("a response")
        return seen

    assert asyncio.run(scenario()) == [[b"next"], "delivered", "flushed"]


def test_what_is_due_at_once_is_done_after_requests_are_written() -> None:
    async def scenario() -> list[object]:
        seen: list[object] = []
        driver = driver_of(DueOnce([Write(1, [b"next"])]), seen)
        driver.handle("a response")
        assert driver._timer is None
        return seen

    assert asyncio.run(scenario()) == [[b"next"], "due"]


class Shifted(asyncio.SelectorEventLoop):
    """A loop with a clock of its own."""

    def time(self) -> float:
        return super().time() + 1000


def test_the_clock_is_that_of_the_loop_without_its_function() -> None:
    async def scenario(ahead: float) -> bool:
        loop = asyncio.get_running_loop()
        driver = driver_of(Machine([]), [])
        assert time.monotonic() + ahead <= driver.now() <= loop.time()
        return driver.now is time.monotonic

    assert asyncio.run(scenario(0.0))
    with asyncio.Runner(loop_factory=Shifted) as runner:
        assert not runner.run(scenario(1000))


def test_a_later_deadline_does_not_set_the_timer_again() -> None:
    async def scenario() -> None:
        machine = Machine([])
        driver = driver_of(machine, [])
        machine.deadline = driver.now() + 1000
        driver.handle("a request")
        timer = driver._timer
        assert timer is not None
        machine.deadline += 30
        driver.handle("another one")
        assert driver._timer is timer
        assert not timer.cancelled()
        machine.deadline -= 500
        driver.handle("an urgent one")
        assert timer.cancelled()
        assert driver._timer is not None
        assert driver._timer.when() == machine.deadline
        machine.deadline = None
        driver.handle("the last response")
        assert driver._timer is None

    asyncio.run(scenario())


def test_a_timer_that_wakes_too_early_is_set_again() -> None:
    async def scenario() -> None:
        machine = Machine([])
        driver = driver_of(machine, [])
        machine.deadline = driver.now() + 0.005
        driver.handle("a request")
        machine.deadline += 1000
        driver.handle("another one")
        while not machine.advanced:
            await asyncio.sleep(0)
        assert driver._timer is not None
        assert driver._timer.when() == machine.deadline
        driver._set_timer(None)

    asyncio.run(scenario())


def test_bytes_inside_a_frame_do_not_run_the_machines(
    kafka_broker: ServerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with Producer({"bootstrap.servers": kafka_broker.bootstrap}) as producer:
            await producer.deliver("t", b"connected")
            driver = producer._driver
            assert driver is not None
            handled: list[object] = []
            with monkeypatch.context() as patch:
                patch.setattr(driver, "handle", handled.append)
                [number] = driver._sockets
                for part in (b"\0\0\0\x0a", b"half"):
                    driver.received(number, part)
                driver.received(number, b"ended")
                assert handled == [
                    BytesReceived(number, b"\0\0\0\x0a"),
                    BytesReceived(number, b"half"),
                    BytesReceived(number, b"ended"),
                ], "the machine has not seen the size: each may begin a frame"
                patch.undo()
            driver.received(number, b"\0\0\0\x0a")
            with monkeypatch.context() as patch:
                patch.setattr(driver, "handle", handled.append)
                handled.clear()
                for part in (b"half", b" of "):
                    driver.received(number, part)
                assert not handled
                driver.received(number, b"it")
                assert handled == [BytesReceived(number, b"it")]

    asyncio.run(scenario())

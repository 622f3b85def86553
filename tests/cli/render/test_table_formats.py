"""A thread that writes row groups: their order, their number, errors, the end."""

from __future__ import annotations

from threading import Event, current_thread, main_thread
from time import sleep

import pytest

from kafkawire_cli.render.table_formats import WAITING, Writes, WritesInThread


class Full(Exception):
    """Raised by a write."""


def fails() -> None:
    raise Full


def test_it_writes_in_order_in_one_thread() -> None:
    written = list[tuple[int, bool]]()

    def write(number: int) -> None:
        written.append((number, current_thread() is main_thread()))

    writes = WritesInThread()
    for number in range(100):
        writes.call(write, number)
    writes.finish()
    assert written == [(number, False) for number in range(100)]


def test_a_few_calls_wait() -> None:
    waiting, seen = Event(), list[int]()
    scheduled = 0

    def write(number: int) -> None:
        if number == 0:
            waiting.wait(60)
            sleep(0.1)  # time in which calls without a bound would go on
        seen.append(scheduled - number)

    writes = WritesInThread()
    for number in range(10 * WAITING):
        if number == WAITING:
            waiting.set()
        writes.call(write, number)
        scheduled += 1
    writes.finish()
    assert seen[0] == max(seen) == WAITING


@pytest.mark.parametrize("writes", [Writes(), WritesInThread()], ids=["at once", "in a thread"])
def test_an_error_is_raised_and_later_calls_can_be_made(writes: Writes) -> None:
    made = list[int]()

    def fail() -> None:
        writes.call(fails)
        writes.finish()

    with pytest.raises(Full):
        fail()
    writes.call(made.append, 1)
    writes.finish()
    assert made == [1]


def test_an_error_is_raised_by_a_later_call() -> None:
    writes = WritesInThread()
    for _ in range(WAITING):
        writes.call(fails)
    with pytest.raises(Full):
        writes.call(fails)
    with pytest.raises(Full):
        writes.finish()
    writes.finish()  # nothing is left to raise


def test_after_an_error_it_waits_for_the_call_that_runs() -> None:
    begun, made = Event(), list[int]()

    def write() -> None:
        begun.set()
        sleep(0.1)  # time in which `finish` would return without waiting
        made.append(1)

    writes = WritesInThread()
    writes.call(fails)
    writes.call(write)
    begun.wait(60)
    with pytest.raises(Full):
        writes.finish()
    assert made == [1], "the file would be closed while it is written"

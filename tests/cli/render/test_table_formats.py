"""A thread that writes row groups: their order, their number, errors, the end."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event, current_thread, main_thread

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
    made, begun, may_end = list[int](), Event(), Event()

    def write(number: int) -> None:
        begun.set()
        may_end.wait(60)
        made.append(number)

    def numbers() -> Iterator[int]:
        for number in range(WAITING + 1):
            if number == WAITING:  # the next call has to wait
                begun.wait(60)
                assert not made
                may_end.set()
            yield number

    writes = WritesInThread()
    for number in numbers():
        writes.call(write, number)
    assert made[0] == 0, "the last call did not wait for the first"
    writes.finish()
    assert made == list(range(WAITING + 1))


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
    first, may_end, made = Event(), Event(), list[int]()

    def fails_late() -> None:
        first.set()
        may_end.wait(60)
        raise Full

    writes = WritesInThread()
    writes.call(fails_late)
    writes.call(made.append, 1)
    first.wait(60)
    may_end.set()
    with pytest.raises(Full):
        writes.finish()
    assert made in ([], [1])
    made.append(2)
    writes.call(made.append, 3)
    writes.finish()
    assert made[-2:] == [2, 3], "a call was made after `finish` had returned"

"""Processes that print by turns: what `decode --jobs` divides its work with.

Law: what is printed comes out in the order in which it was handed over, whoever printed it; each
process writes what it printed itself, when its turn has come, so that nobody copies it.

    this process   gives 1, 2 to another | prints 3, holds it | gives 4     | writes 3 | ...
    the other       `--> prints and writes 1, 2 -------------- prints 4, holds it  `--> writes 4

The others are forked, so nothing starts up; what they are given lies in memory that is shared, as
a pipe would be full before they come to read it.
"""

from __future__ import annotations

import os
import pickle
import select
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from errno import ECHILD
from mmap import mmap
from multiprocessing import Pipe, get_all_start_methods, get_context
from multiprocessing.connection import Connection
from tempfile import SpooledTemporaryFile
from typing import Final, Generic, NamedTuple, TypeVar

from .. import pipes
from ..input.inputs import InputError
from ..render.messages import Printed

Task = TypeVar("Task")

ROOM: Final = 1 << 22
"""Bytes of memory shared with a process, for what it is given."""

HELD: Final = 1 << 25
"""Bytes of text that a process keeps in memory until its turn."""

CHUNK: Final = 1 << 20


class Stretch:
    """Tasks of one process that follow one another: they take one turn. left: of them, those whose
    text is not written yet.
    """

    def __init__(self, number: int, other: Other) -> None:
        self.number = number
        self.other = other
        self.left = 0


class Ended(NamedTuple):
    """What came of a task whose text is written, or could not be."""

    clean: bool
    error: InputError | None = None
    failure: OSError | None = None


class Given(NamedTuple):
    """A task on its way: its stretch, and where it lies in the shared memory; behind its pickle
    begin the buffers that are not copied into that.
    """

    stretch: int
    start: int
    end: int
    sizes: list[int]


def can_fork() -> bool:
    """Whether work can be divided here: processes fork, and have standard output in common."""
    try:
        sys.stdout.fileno()
    except OSError:  # a stand-in
        return False
    return "fork" in get_all_start_methods()


class Turns(Generic[Task]):
    """Processes that do tasks beside this one, and what waits for its turn.

    do: does a task; what it yields is used before it goes on. ahead: tasks that a process may have
    waiting. What the generators here yield is to be written to `sys.stdout.buffer` before they go
    on.
    """

    def __init__(self, number: int, do: Callable[[Task], Iterable[Printed]], ahead: int) -> None:
        self._others = [Other(do) for _ in range(number)]
        self._ahead = ahead
        self._queue: deque[Stretch | Printed] = deque()
        self._held = self._stretches = 0

    def give(self, task: Callable[[], Task]) -> bool:
        """Give another process a task; False where all of them have enough, or it is too long."""
        other = min(self._others, key=lambda one: len(one.tasks))
        if len(other.tasks) >= self._ahead:
            return False
        buffers: list[pickle.PickleBuffer] = []
        pickled = pickle.dumps(task(), 5, buffer_callback=buffers.append)
        parts = [memoryview(pickled), *(buffer.raw() for buffer in buffers)]
        sizes = [len(part) for part in parts]
        place = other.place(sum(sizes))
        if place is None:
            return False
        other.put(place[0], parts)
        last = self._queue[-1] if self._queue else None
        if isinstance(last, Stretch) and last.other is other:
            stretch = last
        else:
            self._stretches += 1
            stretch = Stretch(self._stretches, other)
            self._queue.append(stretch)
        stretch.left += 1
        other.tasks.append((stretch, place))
        other.send(Given(stretch.number, *place, sizes))
        if last is None:
            _give_turn(stretch)
        return True

    def say(self, printed: Printed) -> Iterator[Printed]:
        """Give, or hold until its turn, what this process printed."""
        if not self._queue:
            yield printed
            return
        printed = printed._replace(text=bytes(printed.text))
        self._queue.append(printed)
        self._held += len(printed.text)
        while self._held > HELD:
            yield from self.wait()

    def ready(self) -> Iterator[Printed]:
        """Give what has its turn by now, and give others theirs."""
        for other in self._others:
            while other.heard():
                yield other.hear()
        yield from self._passed()

    def wait(self) -> Iterator[Printed]:
        """Wait until the turn has passed on, if there is anything to wait for."""
        first = self._queue[0] if self._queue else None
        while isinstance(first, Stretch) and first.left:
            yield first.other.hear()
        yield from self._passed()

    def rest(self) -> Iterator[Printed]:
        """Wait for all that is left, and give it."""
        while self._queue:
            yield from self.wait()

    def _passed(self) -> Iterator[Printed]:
        while self._queue:
            first = self._queue[0]
            if isinstance(first, Printed):
                self._held -= len(first.text)
                yield first
            elif first.left:
                return
            self._queue.popleft()
            if self._queue and isinstance(following := self._queue[0], Stretch):
                _give_turn(following)

    def end(self) -> None:
        """End the processes: rows that are not written by now are not wanted any more."""
        for other in self._others:
            other.end()


def _give_turn(stretch: Stretch) -> None:
    sys.stdout.flush()
    stretch.other.send(stretch.number)


class Other:
    """Another process, what it was given and has not ended, and the wire to it: there go tasks and
    the numbers of stretches whose turn has come; back comes how each task ended.
    """

    def __init__(self, do: Callable[[Task], Iterable[Printed]]) -> None:
        self._room = mmap(-1, ROOM)
        self.tasks: deque[tuple[Stretch, tuple[int, int]]] = deque()
        self.wire, its = Pipe()
        sys.stdout.flush()  # else what is buffered would be there twice
        self._process = get_context("fork").Process(
            target=_work, args=(do, its, self.wire, self._room), daemon=True
        )
        self._process.start()
        its.close()
        self._told = select.poll()
        self._told.register(self.wire.fileno(), select.POLLIN)

    def place(self, size: int) -> tuple[int, int] | None:
        """Find a place behind what lies there, or at the beginning; None where there is no room."""
        if not self.tasks:
            start, most = 0, ROOM
        else:
            oldest, newest = self.tasks[0][1], self.tasks[-1][1]
            start, most = newest[1], ROOM if newest >= oldest else oldest[0]
            if start + size > most and most == ROOM:
                start, most = 0, oldest[0]
        return (start, start + size) if start + size <= most else None

    def put(self, start: int, parts: list[memoryview]) -> None:
        """Put data there."""
        for part in parts:
            self._room[start : start + len(part)] = part
            start += len(part)

    def send(self, told: Given | int) -> None:
        """Tell it something; where it has ended, what comes back says so."""
        with suppress(ConnectionError):
            self.wire.send(told)

    def heard(self) -> bool:
        """Whether `hear` need not wait."""
        return bool(self._told.poll(0))

    def hear(self) -> Printed:
        """Wait until a task has ended. Raises OSError where that could not be written, or nobody is
        there to do it any more.
        """
        try:
            ended: Ended = self.wire.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            reason = f"a process ended with {self._process.exitcode}; rows are missing"
            raise ChildProcessError(ECHILD, reason, "--jobs") from None
        if ended.failure is not None:
            raise ended.failure
        stretch, _ = self.tasks.popleft()
        stretch.left -= 1
        return Printed(b"", ended.clean, ended.error)

    def end(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.join()
        self.wire.close()
        self._room.close()


# -- in the other process


def _work(
    do: Callable[[Task], Iterable[Printed]], wire: Connection, mine: Connection, room: mmap
) -> None:
    mine.close()  # else this process would not hear that the other has ended
    output = _Output(wire)
    with suppress(EOFError, KeyboardInterrupt):  # nobody waits for it any more
        while True:
            try:
                _do(do, room, output)
            except OSError as failure:
                wire.send(Ended(False, failure=failure))
                break
    os._exit(0)


def _do(do: Callable[[Task], Iterable[Printed]], room: mmap, output: _Output) -> None:
    given = output.next()
    at = given.start
    parts = []
    for size in given.sizes:
        parts.append(room[at : at + size])
        at += size
    task: Task = pickle.loads(parts[0], buffers=parts[1:])
    clean, error = True, None
    for printed in do(task):
        output.write(given.stretch, printed.text)
        clean = clean and printed.clean
        error = printed.error or error
    output.end(given.stretch, Ended(clean, error))


class _Held:
    """Text of a stretch whose turn has not come, and the tasks it is of."""

    def __init__(self, stretch: int) -> None:
        self.stretch = stretch
        self.text = SpooledTemporaryFile(HELD)  # noqa: SIM115  # closed when it is written
        self.ended: list[Ended] = []


class _Output:
    """Standard output, written to when this process has its turn; until then text is held."""

    def __init__(self, wire: Connection) -> None:
        self._wire = wire
        self._told = select.poll()
        self._told.register(wire.fileno(), select.POLLIN)
        self._tasks: deque[Given] = deque()
        self._held: deque[_Held] = deque()
        self._turn = 0

    def next(self) -> Given:
        """Wait for the next task."""
        while not self._tasks:
            self._hear()
        return self._tasks.popleft()

    def write(self, stretch: int, text: bytes | memoryview) -> None:
        """Write text of a stretch, or hold it."""
        while self._told.poll(0):
            self._hear()
        if stretch <= self._turn:
            pipes.write(text)
        else:
            self._of(stretch).text.write(text)

    def end(self, stretch: int, ended: Ended) -> None:
        """Say how a task ended as soon as its text is written."""
        if stretch <= self._turn:
            sys.stdout.flush()
            self._wire.send(ended)
        else:
            self._of(stretch).ended.append(ended)

    def _of(self, stretch: int) -> _Held:
        if not self._held or self._held[-1].stretch != stretch:
            self._held.append(_Held(stretch))
        return self._held[-1]

    def _hear(self) -> None:
        heard: Given | int = self._wire.recv()
        if isinstance(heard, Given):
            self._tasks.append(heard)
            return
        self._turn = heard
        while self._held and self._held[0].stretch <= heard:
            held = self._held.popleft()
            held.text.seek(0)
            while text := held.text.read(CHUNK):
                pipes.write(text)
            sys.stdout.flush()
            held.text.close()
            for ended in held.ended:
                self._wire.send(ended)

"""Runs tasks in a forked process, and delivers their results when it is their turn.

Results before their turn are kept; a task is done once all of its results are delivered.
"""

from __future__ import annotations

import pickle
import select
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Final, NamedTuple, TypeAlias

from kafkawire.errors import KafkaWireError

from .. import pipes
from ..render.messages import Printed
from .forked import Sent, Taken, put, receive, send, take
from .shared_memory import Pickled, SharedMemory, pickled

Parts: TypeAlias = Sequence[bytes | memoryview]
"""A result as bytes: a pickle, and the buffers that it refers to, or the text that it lacks."""

BUFFERED_BYTES: Final = 1 << 25
"""Bytes of results that a process keeps in memory until their turn."""


class Turn(NamedTuple):
    """It is the turn of the results of a run, and of those before."""

    run: int


class Done(NamedTuple):
    """The results of a task are delivered, or the reason for the end."""

    error: KafkaWireError | OSError | None = None


def serve(
    run_task: Callable[[Any], Iterable[object]],
    is_output: bool,
    connection: Connection,
    tasks: SharedMemory,
    results: SharedMemory,
) -> None:
    """Run tasks until the parent exits.

    is_output: results are Printed, whose texts are written to standard output; the parent gets the
    rest of them.
    """
    outbox = _Outbox(connection, results, is_output=is_output)
    try:
        while True:
            sent = outbox.next()
            for result in _results(run_task, take(connection, tasks, sent)):
                if isinstance(result, Done):
                    outbox.finish(sent.number, result)
                else:
                    outbox.add(sent.number, result)
    except OSError as failure:  # output that cannot be written
        with suppress(ConnectionError):
            send(connection, Done(failure))


def _results(run_task: Callable[[Any], Iterable[object]], task: object) -> Iterator[object]:
    """Yield the results of a task and its Done, which has only what the task itself raised."""
    try:
        yield from run_task(task)
    except (KafkaWireError, OSError) as failure:
        yield Done(failure)
    else:
        yield Done()


class _InFile(NamedTuple):
    """The sizes of the parts of a result in a file."""

    sizes: list[int]


class _BufferedRun:
    """Results of a run whose turn has not come, and the ends of its tasks.

    The first BUFFERED_BYTES stay in memory, in the pieces they came in, without a copy; the rest is
    in a file.
    """

    def __init__(self, run: int) -> None:
        self.run = run
        self._entries: deque[list[memoryview] | _InFile | Done] = deque()
        self._size = 0
        self._file: BinaryIO | None = None

    def add(self, parts: Parts) -> None:
        """Add a result, whose parts may not change until it is taken."""
        self._size += sum(map(len, parts))
        if self._file is None and self._size > BUFFERED_BYTES:
            self._file = TemporaryFile()  # noqa: SIM115  # closed once all is taken
        if self._file is None:
            self._entries.append([memoryview(part) for part in parts])
            return
        self._file.writelines(parts)
        self._entries.append(_InFile([len(part) for part in parts]))

    def finish(self, done: Done) -> None:
        """Add the end of a task."""
        self._entries.append(done)

    def take(self) -> Iterator[Parts | Done]:
        """Return all in order; parts are valid until the next is requested."""
        file = self._file
        if file is not None:
            file.seek(0)
        while self._entries:
            entry = self._entries.popleft()
            if isinstance(entry, _InFile):
                assert file is not None
                yield [file.read(size) for size in entry.sizes]
            else:
                yield entry
                if not isinstance(entry, Done):
                    for part in entry:
                        part.release()
        if file is not None:
            file.close()


class _Outbox:
    """What a worker sends: results are delivered at their turn, and kept before."""

    def __init__(self, connection: Connection, memory: SharedMemory, *, is_output: bool) -> None:
        self._connection = connection
        self._memory = memory
        self._is_output = is_output
        self._poll = select.poll()
        self._poll.register(connection.fileno(), select.POLLIN)
        self._tasks: deque[Sent] = deque()
        self._buffered: deque[_BufferedRun] = deque()
        self._turn = 0

    def next(self) -> Sent:
        """Wait for the next task."""
        while not self._tasks:
            self._receive()
        return self._tasks.popleft()

    def add(self, run: int, result: object) -> None:
        """Deliver a result of a run, or keep it."""
        while self._poll.poll(0):
            self._receive()
        parts = _printed(result) if isinstance(result, Printed) else pickled(result).parts
        if run <= self._turn:
            self._deliver(parts)
        else:
            self._buffer(run).add(parts)

    def finish(self, run: int, done: Done) -> None:
        """Report the end of a task once its results are delivered."""
        if run <= self._turn:
            self._report(done)
        else:
            self._buffer(run).finish(done)

    def _buffer(self, run: int) -> _BufferedRun:
        if not self._buffered or self._buffered[-1].run != run:
            self._buffered.append(_BufferedRun(run))
        return self._buffered[-1]

    def _deliver(self, parts: Parts) -> None:
        if self._is_output:
            rest, text = parts
            pipes.write(text)
            self._connection.send_bytes(rest)
            return
        while not put(self._connection, self._memory, Pickled(parts)):
            self._receive()

    def _report(self, done: Done) -> None:
        if self._is_output:
            sys.stdout.flush()
        send(self._connection, done)

    def _receive(self) -> None:
        message: Sent | Taken | Turn = receive(self._connection)
        if isinstance(message, Sent):
            self._tasks.append(message)
        elif isinstance(message, Taken):
            self._memory.free()
        else:
            self._turn = message.run
            while self._buffered and self._buffered[0].run <= message.run:
                for entry in self._buffered.popleft().take():
                    if isinstance(entry, Done):
                        self._report(entry)
                    else:
                        self._deliver(entry)


def _printed(printed: Printed) -> Parts:
    """Divide output into its text, which stays where it is, and the rest."""
    return [pickle.dumps(printed._replace(text=b""), 5), printed.text]

"""A forked process that runs tasks, and writes their output when it is its turn.

Output before the turn of its run is buffered; a result is reported once its output is written.
"""

from __future__ import annotations

import select
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from tempfile import TemporaryFile
from typing import BinaryIO, Final, NamedTuple, TypeVar

from .. import pipes
from ..input.inputs import InputError
from ..render.messages import Printed
from .forked import Forked, SubmittedTask, receive, send
from .shared_memory import SharedMemory

Task = TypeVar("Task")

SHARED_BYTES: Final = 1 << 22
"""Bytes of memory shared with each worker, for task data."""

BUFFERED_BYTES: Final = 1 << 25
"""Bytes of output that a process buffers in memory until its turn."""

CHUNK: Final = 1 << 20


class Run:
    """Consecutive tasks of one worker, which are written in one turn.

    pending: the number of tasks whose output is not yet written.
    """

    def __init__(self, number: int, worker: Worker) -> None:
        self.number = number
        self.worker = worker
        self.pending = 0


class TaskDone(NamedTuple):
    """The result of a task: its output has been written, or writing failed."""

    clean: bool
    error: InputError | None = None
    failure: OSError | None = None


class Worker(Forked):
    """A forked process and its queue of tasks.

    The connection carries tasks and the numbers of runs whose turn has come to the worker, and the
    result of each task back.
    """

    def __init__(self, run_task: Callable[[Task], Iterable[Printed]]) -> None:
        self.runs: deque[Run] = deque()
        super().__init__(partial(_work, run_task), SHARED_BYTES)

    def done(self) -> Printed:
        """Wait until a task is done.

        Raises OSError if its output could not be written, or if the worker died.
        """
        done: TaskDone = self.receive()
        if done.failure is not None:
            raise done.failure
        self.tasks.free()
        self.runs.popleft().pending -= 1
        return Printed(b"", done.clean, done.error)


# -- in the worker


def _work(
    run_task: Callable[[Task], Iterable[Printed]], connection: Connection, tasks: SharedMemory
) -> None:
    output = _WorkerOutput(connection)
    while True:
        try:
            _run_next(run_task, tasks, output)
        except OSError as failure:
            send(connection, TaskDone(False, failure=failure))
            break


def _run_next(
    run_task: Callable[[Task], Iterable[Printed]], tasks: SharedMemory, output: _WorkerOutput
) -> None:
    submitted = output.next()
    task: Task = tasks.value(submitted.span)
    run = submitted.number
    clean, error = True, None
    for printed in run_task(task):
        output.write(run, printed.text)
        clean = clean and printed.clean
        error = printed.error or error
    output.finish(run, TaskDone(clean, error))


class _BufferedRun:
    """Output of a run whose turn has not come, and the results of its tasks.

    The first BUFFERED_BYTES stay in memory, in the pieces they came in, without a copy; the rest is
    in a file.
    """

    def __init__(self, run: int) -> None:
        self.run = run
        self.done: list[TaskDone] = []
        self._pieces: list[memoryview] = []
        self._size = 0
        self._file: BinaryIO | None = None

    def add(self, text: bytes | memoryview) -> None:
        """Add output, which may not change until it is taken."""
        self._size += len(text)
        if self._file is None and self._size > BUFFERED_BYTES:
            self._file = TemporaryFile()  # noqa: SIM115  # closed once written
        if self._file is None:
            self._pieces.append(memoryview(text))
        else:
            self._file.write(text)

    def take(self) -> Iterator[bytes | memoryview]:
        """Return the output, in pieces that are valid until the next one is requested."""
        for piece in self._pieces:
            with piece:
                yield piece
        if self._file is not None:
            with self._file as file:
                file.seek(0)
                while text := file.read(CHUNK):
                    yield text


class _WorkerOutput:
    """Standard output of a worker: written while it is its turn, buffered before."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._poll = select.poll()
        self._poll.register(connection.fileno(), select.POLLIN)
        self._tasks: deque[SubmittedTask] = deque()
        self._buffered: deque[_BufferedRun] = deque()
        self._turn = 0

    def next(self) -> SubmittedTask:
        """Wait for the next task."""
        while not self._tasks:
            self._receive()
        return self._tasks.popleft()

    def write(self, run: int, text: bytes | memoryview) -> None:
        """Write output of a run, or buffer it."""
        while self._poll.poll(0):
            self._receive()
        if run <= self._turn:
            pipes.write(text)
        else:
            self._buffer(run).add(text)

    def finish(self, run: int, done: TaskDone) -> None:
        """Report the result of a task as soon as its output is written."""
        if run <= self._turn:
            sys.stdout.flush()
            send(self._connection, done)
        else:
            self._buffer(run).done.append(done)

    def _buffer(self, run: int) -> _BufferedRun:
        if not self._buffered or self._buffered[-1].run != run:
            self._buffered.append(_BufferedRun(run))
        return self._buffered[-1]

    def _receive(self) -> None:
        message: SubmittedTask | int = receive(self._connection)
        if isinstance(message, SubmittedTask):
            self._tasks.append(message)
            return
        self._turn = message
        while self._buffered and self._buffered[0].run <= message:
            buffered = self._buffered.popleft()
            for text in buffered.take():
                pipes.write(text)
            sys.stdout.flush()
            for done in buffered.done:
                send(self._connection, done)

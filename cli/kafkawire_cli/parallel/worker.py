"""A forked process that runs tasks, and writes their output when it is its turn.

Law: output before the turn of its run is buffered; a result is reported once its output is written.
"""

from __future__ import annotations

import os
import pickle
import select
import sys
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from errno import ECHILD
from mmap import mmap
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from tempfile import SpooledTemporaryFile
from typing import Final, NamedTuple, TypeVar

from .. import pipes
from ..input.inputs import InputError
from ..render.messages import Printed

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


class SubmittedTask(NamedTuple):
    """A task sent to a worker: its run, and where its data lies in shared memory.

    The pickle comes first, then the out-of-band buffers. sizes: the length of each.
    """

    run: int
    start: int
    end: int
    sizes: list[int]


class Worker:
    """A forked process and its queue of tasks.

    The connection carries tasks and the numbers of runs whose turn has come to the worker, and the
    result of each task back.
    """

    def __init__(self, run_task: Callable[[Task], Iterable[Printed]]) -> None:
        self._memory = mmap(-1, SHARED_BYTES)
        self.tasks: deque[tuple[Run, tuple[int, int]]] = deque()
        self.connection, remote = Pipe()
        sys.stdout.flush()  # otherwise the fork would write the buffered output a second time
        self._process = get_context("fork").Process(
            target=_work, args=(run_task, remote, self.connection, self._memory), daemon=True
        )
        self._process.start()
        remote.close()
        self._poll = select.poll()
        self._poll.register(self.connection.fileno(), select.POLLIN)

    def allocate(self, size: int) -> tuple[int, int] | None:
        """Find free memory behind the newest task or at the start; None if there is not enough."""
        if not self.tasks:
            start, limit = 0, SHARED_BYTES
        else:
            oldest, newest = self.tasks[0][1], self.tasks[-1][1]
            start, limit = newest[1], SHARED_BYTES if newest >= oldest else oldest[0]
            if start + size > limit and limit == SHARED_BYTES:
                start, limit = 0, oldest[0]
        return (start, start + size) if start + size <= limit else None

    def copy(self, start: int, parts: list[memoryview]) -> None:
        """Copy task data into the shared memory."""
        for part in parts:
            self._memory[start : start + len(part)] = part
            start += len(part)

    def send(self, message: SubmittedTask | int) -> None:
        """Send a task or a run number. If the worker has died, `receive` raises the error."""
        with suppress(ConnectionError):
            self.connection.send(message)

    def poll(self) -> bool:
        """Return whether `receive` would return at once."""
        return bool(self._poll.poll(0))

    def receive(self) -> Printed:
        """Wait until a task is done.

        Raises OSError if its output could not be written, or if the worker died.
        """
        try:
            done: TaskDone = self.connection.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            reason = f"worker process exited with {self._process.exitcode}; rows are missing"
            raise ChildProcessError(ECHILD, reason, "--jobs") from None
        if done.failure is not None:
            raise done.failure
        run, _ = self.tasks.popleft()
        run.pending -= 1
        return Printed(b"", done.clean, done.error)

    def close(self) -> None:
        """Kill the worker, whatever it is doing."""
        self._process.kill()
        self._process.join()
        self.connection.close()
        self._memory.close()


# -- in the worker


def _work(
    run_task: Callable[[Task], Iterable[Printed]],
    connection: Connection,
    parent: Connection,
    memory: mmap,
) -> None:
    parent.close()  # otherwise the worker would not notice that its parent has exited
    output = _WorkerOutput(connection)
    with suppress(EOFError, KeyboardInterrupt):  # the parent no longer waits
        while True:
            try:
                _run_next(run_task, memory, output)
            except OSError as failure:
                connection.send(TaskDone(False, failure=failure))
                break
    os._exit(0)


def _run_next(
    run_task: Callable[[Task], Iterable[Printed]], memory: mmap, output: _WorkerOutput
) -> None:
    submitted = output.next()
    at = submitted.start
    parts = []
    for size in submitted.sizes:
        parts.append(memory[at : at + size])
        at += size
    task: Task = pickle.loads(parts[0], buffers=parts[1:])
    clean, error = True, None
    for printed in run_task(task):
        output.write(submitted.run, printed.text)
        clean = clean and printed.clean
        error = printed.error or error
    output.finish(submitted.run, TaskDone(clean, error))


class _BufferedRun:
    """Output of a run whose turn has not come, and the results of its tasks."""

    def __init__(self, run: int) -> None:
        self.run = run
        self.text = SpooledTemporaryFile(BUFFERED_BYTES)  # noqa: SIM115  # closed once written
        self.done: list[TaskDone] = []


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
            self._buffer(run).text.write(text)

    def finish(self, run: int, done: TaskDone) -> None:
        """Report the result of a task as soon as its output is written."""
        if run <= self._turn:
            sys.stdout.flush()
            self._connection.send(done)
        else:
            self._buffer(run).done.append(done)

    def _buffer(self, run: int) -> _BufferedRun:
        if not self._buffered or self._buffered[-1].run != run:
            self._buffered.append(_BufferedRun(run))
        return self._buffered[-1]

    def _receive(self) -> None:
        message: SubmittedTask | int = self._connection.recv()
        if isinstance(message, SubmittedTask):
            self._tasks.append(message)
            return
        self._turn = message
        while self._buffered and self._buffered[0].run <= message:
            buffered = self._buffered.popleft()
            buffered.text.seek(0)
            while text := buffered.text.read(CHUNK):
                pipes.write(text)
            sys.stdout.flush()
            buffered.text.close()
            for done in buffered.done:
                self._connection.send(done)

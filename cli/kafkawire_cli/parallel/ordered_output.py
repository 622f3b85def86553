"""Runs tasks in several processes and writes their output in input order, for `decode --jobs`.

Law: output appears in the order in which the tasks were submitted, whichever process made it. Each
process writes its own output itself when it is its turn, so output is not copied between processes.

    this process   submits 1, 2 to a worker | prints 3, buffers it | submits 4 | writes 3 | ...
    the worker       `--> prints and writes 1, 2 ---------- prints 4, buffers it  `--> writes 4

Workers are forked, so there is no start-up cost. Task data is passed in shared memory: a pipe would
fill up before the worker reads it.
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


def can_fork() -> bool:
    """Return whether workers can be used: processes can fork and share standard output."""
    try:
        sys.stdout.fileno()
    except OSError:  # a replacement without a file descriptor
        return False
    return "fork" in get_all_start_methods()


class OrderedOutput(Generic[Task]):
    """A pool of workers, and the output that waits for its turn.

    run_task: runs a task; each chunk of output that it yields is used before it continues.
    queue_size: tasks that a worker may have queued. The caller must write each chunk that these
    generators yield to `sys.stdout.buffer` before it asks for the next.
    """

    def __init__(
        self, number: int, run_task: Callable[[Task], Iterable[Printed]], queue_size: int
    ) -> None:
        self._workers = [Worker(run_task) for _ in range(number)]
        self._queue_size = queue_size
        self._queue: deque[Run | Printed] = deque()
        self._buffered = self._runs = 0

    def submit(self, task: Callable[[], Task]) -> bool:
        """Submit a task to the least busy worker.

        Return False if all queues are full or the task is too large.
        """
        worker = min(self._workers, key=lambda one: len(one.tasks))
        if len(worker.tasks) >= self._queue_size:
            return False
        buffers: list[pickle.PickleBuffer] = []
        pickled = pickle.dumps(task(), 5, buffer_callback=buffers.append)
        parts = [memoryview(pickled), *(buffer.raw() for buffer in buffers)]
        sizes = [len(part) for part in parts]
        span = worker.allocate(sum(sizes))
        if span is None:
            return False
        worker.copy(span[0], parts)
        last = self._queue[-1] if self._queue else None
        if isinstance(last, Run) and last.worker is worker:
            run = last
        else:
            self._runs += 1
            run = Run(self._runs, worker)
            self._queue.append(run)
        run.pending += 1
        worker.tasks.append((run, span))
        worker.send(SubmittedTask(run.number, *span, sizes))
        if last is None:
            _start_turn(run)
        return True

    def write(self, printed: Printed) -> Iterator[Printed]:
        """Yield output of this process, or buffer it until its turn."""
        if not self._queue:
            yield printed
            return
        printed = printed._replace(text=bytes(printed.text))
        self._queue.append(printed)
        self._buffered += len(printed.text)
        while self._buffered > BUFFERED_BYTES:
            yield from self.wait()

    def ready(self) -> Iterator[Printed]:
        """Yield the output whose turn has come, without waiting."""
        for worker in self._workers:
            while worker.poll():
                yield worker.receive()
        yield from self._advance()

    def wait(self) -> Iterator[Printed]:
        """Wait until the first run in the queue is written, if there is one."""
        first = self._queue[0] if self._queue else None
        while isinstance(first, Run) and first.pending:
            yield first.worker.receive()
        yield from self._advance()

    def drain(self) -> Iterator[Printed]:
        """Wait for all remaining output."""
        while self._queue:
            yield from self.wait()

    def _advance(self) -> Iterator[Printed]:
        while self._queue:
            first = self._queue[0]
            if isinstance(first, Printed):
                self._buffered -= len(first.text)
                yield first
            elif first.pending:
                return
            self._queue.popleft()
            if self._queue and isinstance(following := self._queue[0], Run):
                _start_turn(following)

    def close(self) -> None:
        """Kill the workers. Output that is not yet written is discarded."""
        for worker in self._workers:
            worker.close()


def _start_turn(run: Run) -> None:
    sys.stdout.flush()
    run.worker.send(run.number)


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

"""Runs tasks in several processes and returns their results in the order of the tasks.

Memory is bounded: a worker waits when its share of memory is full of results that this process
has not taken yet, and this process takes results before their turn only up to a number of bytes.

    this process   submits 1, 2 to a worker | makes 3 itself | takes 1, 2, yields 1, 2, 3
    the worker       `--> makes 1, puts it in shared memory, makes 2 --'
"""

from __future__ import annotations

import select
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Final, Generic, NamedTuple, TypeVar

from kafkawire.errors import KafkaWireError

from .forked import Forked, SubmittedTask, receive, send
from .shared_memory import Pickled, SharedMemory, Span, pickled, unpickled

Task = TypeVar("Task")
Result = TypeVar("Result")

TASK_BYTES: Final = 1 << 24
RESULT_BYTES: Final = 1 << 25
"""Bytes of memory shared with each worker, for tasks and for results."""

TAKEN_BYTES: Final = 1 << 26
"""Bytes of results that are taken before their turn."""


class _Finished(NamedTuple):
    """A result in shared memory; without a span, its parts follow as messages of their own."""

    sizes: list[int]
    span: Span | None


class _Taken(NamedTuple):
    """The parent has taken the oldest result from shared memory."""


class _Failed(NamedTuple):
    """Why a worker could not make a result."""

    error: KafkaWireError | OSError


class _Worker(Forked):
    """A worker, its unfinished entries in the queue, and the memory for its results."""

    def __init__(self, run_task: Callable[[Any], object]) -> None:
        self.entries: deque[_Entry] = deque()
        self.results = SharedMemory(RESULT_BYTES)
        super().__init__(partial(_work, run_task, self.results), TASK_BYTES)

    def take(self) -> int:
        """Wait for the oldest result and take it; return its size."""
        finished: _Finished = self.receive()
        if finished.span is None:
            parts = [self.connection.recv_bytes() for _ in finished.sizes]
        else:
            parts = self.results.get(finished.span)
            self.send(_Taken())
        self.tasks.free()
        entry = self.entries.popleft()
        entry.size = sum(finished.sizes)
        entry.finish(unpickled(parts))
        return entry.size

    def close(self) -> None:
        """Kill the worker."""
        super().close()
        self.results.close()


class _Entry:
    """A task in the queue: who makes it, and its result, once it is there."""

    def __init__(self, worker: _Worker | None) -> None:
        self.worker = worker
        self.is_finished = False
        self.result: Any = None
        self.size = 0

    def finish(self, result: object) -> None:
        self.result = result
        self.is_finished = True


class Results(Generic[Task, Result]):
    """A pool of workers, and the results that wait for their turn.

    run_task: makes a result of a task; both are pickled. queue_size: tasks that a worker may have
    queued.
    """

    def __init__(self, number: int, run_task: Callable[[Task], Result], queue_size: int) -> None:
        self._workers = [_Worker(run_task) for _ in range(number)]
        self._queue_size = queue_size
        self._max_entries = 2 * queue_size * (number + 1)
        self._queue: deque[_Entry] = deque()
        self._taken = 0

    def submit(self, task: Callable[[int], Task]) -> int | None:
        """Submit a task to the least busy worker, and return its index.

        task: makes the task for the worker with that index. Return None if all queues are full or
        the task is too large.
        """
        at = min(range(len(self._workers)), key=lambda at: len(self._workers[at].entries))
        worker = self._workers[at]
        if len(worker.entries) >= self._queue_size or not worker.submit(0, pickled(task(at))):
            return None
        entry = _Entry(worker)
        worker.entries.append(entry)
        self._queue.append(entry)
        return at

    def add(self, result: Result) -> None:
        """Add a result of this process."""
        entry = _Entry(None)
        entry.finish(result)
        self._queue.append(entry)

    def ready(self) -> Iterator[Result]:
        """Yield the results whose turn has come; wait for one only if the queue is long."""
        for worker in self._workers:
            while worker.entries and self._taken < TAKEN_BYTES and worker.poll():
                self._taken += worker.take()
        while self._queue and (self._queue[0].is_finished or len(self._queue) > self._max_entries):
            yield self._first()

    def drain(self) -> Iterator[Result]:
        """Wait for all remaining results."""
        while self._queue:
            yield self._first()

    def _first(self) -> Result:
        """Wait for the first result and remove it. Raises what its worker raised."""
        entry = self._queue[0]
        while not entry.is_finished:
            assert entry.worker is not None
            self._taken += entry.worker.take()
        self._queue.popleft()
        self._taken -= entry.size
        if isinstance(entry.result, _Failed):
            raise entry.result.error
        result: Result = entry.result
        return result

    def close(self) -> None:
        """Kill the workers."""
        for worker in self._workers:
            worker.close()


# -- in the worker


def _work(
    run_task: Callable[[Any], object],
    results: SharedMemory,
    connection: Connection,
    tasks: SharedMemory,
) -> None:
    output = _WorkerResults(connection, results)
    while True:
        submitted = output.next()
        try:
            made = run_task(unpickled(tasks.get(submitted.span)))
        except (KafkaWireError, OSError) as error:
            made = _Failed(error)
        output.put(pickled(made))


class _WorkerResults:
    """The results of a worker that its parent has not taken."""

    def __init__(self, connection: Connection, memory: SharedMemory) -> None:
        self._connection = connection
        self._memory = memory
        self._poll = select.poll()
        self._poll.register(connection.fileno(), select.POLLIN)
        self._submitted: deque[SubmittedTask] = deque()
        self._untaken = 0

    def next(self) -> SubmittedTask:
        """Wait for the next task."""
        while not self._submitted or self._poll.poll(0):
            self._receive()
        return self._submitted.popleft()

    def put(self, result: Pickled) -> None:
        """Put a result into the memory, as soon as there is room."""
        sizes = [len(part) for part in result.parts]
        while (span := self._memory.put(result)) is None and self._untaken:
            self._receive()
        send(self._connection, _Finished(sizes, span))
        if span is None:  # larger than the memory
            for part in result.parts:
                self._connection.send_bytes(part)
        else:
            self._untaken += 1

    def _receive(self) -> None:
        message = receive(self._connection)
        if isinstance(message, SubmittedTask):
            self._submitted.append(message)
        else:
            self._memory.free()
            self._untaken -= 1

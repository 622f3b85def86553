"""Runs tasks in several processes and returns their results in the order of the tasks.

Queues are bounded, and so is memory: a worker keeps its results until their turn, beyond some bytes
in a file, and waits while its share of memory is full of what this process has not taken. Results
that are output are written by the process that made them, so that text is not copied.

    this process   submits 1, 2 to a worker | makes 3 itself, keeps it | submits 4 | yields 3 | ...
    the worker       `--> makes 1, 2, delivers them ------ makes 4, keeps it -----`--> delivers 4

Workers are forked, so they start at once.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeVar

from .forked import Forked
from .shared_memory import Apart, pickled
from .worker import Done, Turn, serve

Task = TypeVar("Task")
Result = TypeVar("Result")

KEPT_BYTES: Final = 1 << 25
"""Bytes of its own results that this process keeps until their turn."""


class _Run:
    """Consecutive tasks of one worker, which it delivers in one turn.

    pending: the number of tasks that are not done.
    """

    def __init__(self, number: int, worker: _Worker) -> None:
        self.number = number
        self.worker = worker
        self.pending = 0

    def start(self) -> None:
        """Begin its turn."""
        sys.stdout.flush()
        self.worker.send(Turn(self.number))


class _Kept(NamedTuple):
    """A result of this process, which waits for its turn, and its bytes."""

    result: Any
    size: int


class _Worker(Forked):
    """A worker, and the runs of its unfinished tasks: one for each task."""

    def __init__(
        self, run_task: Callable[[Any], Iterable[object]], size: int, *, is_output: bool
    ) -> None:
        self.runs: deque[_Run] = deque()
        super().__init__(partial(serve, run_task, is_output), size)

    def received(self) -> Iterator[Any]:
        """Wait for a message, and yield the result in it.

        Raises what the task or writing its output raised, and ChildProcessError if the worker died.
        """
        message = self.receive()
        if not isinstance(message, Done):
            yield message
            return
        self.free()
        self.runs.popleft().pending -= 1
        if message.error is not None:
            raise message.error


class Pool(Generic[Task, Result]):
    """A pool of workers, and the results that wait for their turn.

    run_task: makes results of a task; both are pickled. queue_size: tasks that a worker may have
    queued. task_bytes: memory for these. is_output: results are Printed; the text of a worker's is
    empty, since the worker has written it. The caller must write the text of each before it
    requests the next; text that `run_task` yields is kept until its turn: a buffer may be used
    again when nothing views it any more.
    """

    def __init__(
        self,
        number: int,
        run_task: Callable[[Task], Iterable[Result]],
        queue_size: int,
        task_bytes: int,
        *,
        is_output: bool = False,
    ) -> None:
        self._workers = [_Worker(run_task, task_bytes, is_output=is_output) for _ in range(number)]
        self._queue_size = queue_size
        self._queue: deque[_Run | _Kept] = deque()
        self._kept = self._runs = 0

    def submit(self, task: Callable[[int], Task | Apart]) -> int | None:
        """Submit a task to the least busy worker, and return its index.

        task: makes the task for the worker with that index. Return None if all queues are full.
        """
        index = min(range(len(self._workers)), key=lambda index: len(self._workers[index].runs))
        worker = self._workers[index]
        if len(worker.runs) >= self._queue_size:
            return None
        last = self._queue[-1] if self._queue else None
        is_next = isinstance(last, _Run) and last.worker is worker
        run = last if isinstance(last, _Run) and is_next else _Run(self._runs + 1, worker)
        if not worker.put(pickled(task(index)), run.number):
            return None
        if not is_next:
            self._runs += 1
            self._queue.append(run)
        run.pending += 1
        worker.runs.append(run)
        if last is None:
            run.start()
        return index

    def add(self, result: Result, size: int) -> Iterator[Result]:
        """Yield a result of this process, or keep it until its turn. size: its bytes."""
        if not self._queue:
            yield result
            return
        self._queue.append(_Kept(result, size))
        self._kept += size
        while self._kept > KEPT_BYTES:
            yield from self.wait()

    def ready(self) -> Iterator[Result]:
        """Yield the results whose turn has come, without waiting."""
        for worker in self._workers:
            while worker.poll():
                yield from worker.received()
        yield from self._advance()

    def wait(self) -> Iterator[Result]:
        """Wait for the next message of the worker whose turn it is, if one is busy."""
        first = self._queue[0] if self._queue else None
        if isinstance(first, _Run) and first.pending:
            yield from first.worker.received()
        yield from self._advance()

    def drain(self) -> Iterator[Result]:
        """Wait for all remaining results."""
        while self._queue:
            yield from self.wait()

    def _advance(self) -> Iterator[Result]:
        while self._queue:
            first = self._queue[0]
            if isinstance(first, _Kept):
                self._kept -= first.size
                yield first.result
            elif first.pending:
                return
            self._queue.popleft()
            if self._queue and isinstance(following := self._queue[0], _Run):
                following.start()

    def close(self) -> None:
        """Kill the workers. Results that are not yet delivered are discarded."""
        for worker in self._workers:
            worker.close()

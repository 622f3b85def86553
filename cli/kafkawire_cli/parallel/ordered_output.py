"""Runs tasks in several processes and writes their output in input order, for `decode --jobs`.

Output appears in the order in which the tasks were submitted, whichever process made it. Each
process writes its own output itself when it is its turn, so output is not copied between processes.

    this process   submits 1, 2 to a worker | prints 3, buffers it | submits 4 | writes 3 | ...
    the worker       `--> prints and writes 1, 2 ---------- prints 4, buffers it  `--> writes 4

Workers are forked, so there is no start-up cost. Task data is passed in shared memory: a pipe would
fill up before the worker reads it.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from ..render.messages import Printed
from . import worker as worker_process
from .shared_memory import Apart, pickled
from .worker import Run, Worker

Task = TypeVar("Task")


class OrderedOutput(Generic[Task]):
    """A pool of workers, and the output that waits for its turn.

    run_task: runs a task; output that it yields is kept until its turn: a buffer may be used again
    when nothing views it any more. queue_size: tasks that a worker may have queued. The caller must
    write each chunk that these generators yield to `sys.stdout.buffer` before it requests the next.
    """

    def __init__(
        self, number: int, run_task: Callable[[Task], Iterable[Printed]], queue_size: int
    ) -> None:
        self._workers = [Worker(run_task) for _ in range(number)]
        self._queue_size = queue_size
        self._queue: deque[Run | Printed] = deque()
        self._buffered = self._runs = 0

    def submit(self, task: Callable[[int], Task | Apart]) -> int | None:
        """Submit a task to the least busy worker, and return its index.

        task: makes the task for the worker with that index. Return None if all queues are full or
        the task is too large.
        """
        at = min(range(len(self._workers)), key=lambda at: len(self._workers[at].runs))
        worker = self._workers[at]
        if len(worker.runs) >= self._queue_size:
            return None
        last = self._queue[-1] if self._queue else None
        is_next = isinstance(last, Run) and last.worker is worker
        run = last if isinstance(last, Run) and is_next else Run(self._runs + 1, worker)
        if not worker.submit(run.number, pickled(task(at))):
            return None
        if not is_next:
            self._runs += 1
            self._queue.append(run)
        run.pending += 1
        worker.runs.append(run)
        if last is None:
            _start_turn(run)
        return at

    def write(self, printed: Printed) -> Iterator[Printed]:
        """Yield output of this process, or keep it until its turn."""
        if not self._queue:
            yield printed
            return
        printed = printed._replace(text=memoryview(printed.text))
        self._queue.append(printed)
        self._buffered += len(printed.text)
        while self._buffered > worker_process.BUFFERED_BYTES:
            yield from self.wait()

    def ready(self) -> Iterator[Printed]:
        """Yield the output whose turn has come, without waiting."""
        for worker in self._workers:
            while worker.poll():
                yield worker.done()
        yield from self._advance()

    def wait(self) -> Iterator[Printed]:
        """Wait until the first run in the queue is written, if there is one."""
        first = self._queue[0] if self._queue else None
        while isinstance(first, Run) and first.pending:
            yield first.worker.done()
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
                if isinstance(first.text, memoryview):
                    first.text.release()
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

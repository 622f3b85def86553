"""A forked process that gets tasks in shared memory.

A process that dies is reported by whoever waits for it; it never outlives its parent.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from errno import ECHILD
from multiprocessing import Pipe, get_all_start_methods, get_context
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from kafkawire_codegen.whole_files import signals_blocked

from .shared_memory import Pickled, SharedMemory, Span


def can_fork() -> bool:
    """Return whether processes can fork and share standard output."""
    try:
        sys.stdout.fileno()
    except OSError:  # a replacement without a file descriptor
        return False
    return "fork" in get_all_start_methods()


class SubmittedTask(NamedTuple):
    """A task sent to a worker: a number that the parent gives it, and where its data lies."""

    number: int
    span: Span


def send(connection: Connection, message: object) -> None:
    """Send a message: `Connection.send` would make a pickler of its own for each."""
    connection.send_bytes(pickle.dumps(message, 5))


def receive(connection: Connection) -> Any:
    """Wait for a message. Raises EOFError at the end."""
    return pickle.loads(connection.recv_bytes())


class Forked:
    """A forked process, seen from its parent.

    serve: what it does, with its end of the connection, until EOFError.
    tasks: the shared memory for its tasks.
    """

    def __init__(self, serve: Callable[[Connection, SharedMemory], None], size: int) -> None:
        self.tasks = SharedMemory(size)
        self.connection, remote = Pipe()
        sys.stdout.flush()  # otherwise the fork would write the buffered output a second time
        # Python ignores what a signal handler raises in a function that is called at a fork
        with signals_blocked() as before:
            self._process = get_context("fork").Process(
                target=_serve,
                args=(serve, remote, self.connection, self.tasks, before),
                daemon=True,
            )
            self._process.start()
        remote.close()
        self._poll = select.poll()
        self._poll.register(self.connection.fileno(), select.POLLIN)

    def submit(self, number: int, task: Pickled) -> bool:
        """Submit a task; False if there is not enough memory."""
        span = self.tasks.put(task)
        if span is None:
            return False
        self.send(SubmittedTask(number, span))
        return True

    def send(self, message: object) -> None:
        """Send a message. If the process has died, `receive` raises the error."""
        with suppress(ConnectionError):
            send(self.connection, message)

    def poll(self) -> bool:
        """Return whether `receive` would return at once."""
        return bool(self._poll.poll(0))

    def receive(self) -> Any:
        """Wait for a message. Raises ChildProcessError if the process died."""
        try:
            return receive(self.connection)
        except (EOFError, ConnectionError):
            self._process.join()
            reason = f"worker process exited with {self._process.exitcode}; rows are missing"
            raise ChildProcessError(ECHILD, reason, "--jobs") from None

    def close(self) -> None:
        """Kill the process, whatever it is doing."""
        self._process.kill()
        self._process.join()
        self.connection.close()
        self.tasks.close()


def _serve(
    serve: Callable[[Connection, SharedMemory], None],
    connection: Connection,
    parent: Connection,
    tasks: SharedMemory,
    blocked: set[signal.Signals],
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent, interrupted too, kills the worker
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    parent.close()  # otherwise the worker would not notice that its parent has exited
    with suppress(EOFError):  # the parent no longer waits
        serve(connection, tasks)
    os._exit(0)

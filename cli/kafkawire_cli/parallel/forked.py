"""A forked process, and how it and its parent exchange messages and objects.

Objects are passed in shared memory: a pipe would fill up before the other process reads it. A
process that dies is reported by whoever waits for it; it never outlives its parent.
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
from typing import Any, Final, NamedTuple

from kafkawire_codegen.whole_files import signals_blocked

from .shared_memory import Joined, Pickled, SharedMemory, Span, unpickled

RECEIVED_BYTES: Final = 1 << 25
"""Bytes of memory for what a process sends to its parent."""


def can_fork() -> bool:
    """Return whether processes can fork and share standard output."""
    try:
        sys.stdout.fileno()
    except OSError:  # a replacement without a file descriptor
        return False
    return "fork" in get_all_start_methods()


class Sent(NamedTuple):
    """An object in shared memory, and a number that its sender gives it.

    One that is larger than the memory follows instead, in messages of its own.
    """

    number: int
    span: Span
    follows: bool


class Taken(NamedTuple):
    """The other process has copied the oldest object out of the memory."""


def send(connection: Connection, message: object) -> None:
    """Send a message: `Connection.send` would make a pickler of its own for each."""
    connection.send_bytes(pickle.dumps(message, 5))


def receive(connection: Connection) -> Any:
    """Wait for a message. Raises EOFError at the end."""
    return pickle.loads(connection.recv_bytes())


def put(connection: Connection, memory: SharedMemory, value: Pickled, number: int = 0) -> bool:
    """Send an object; False if there is not enough memory until others are freed."""
    span = memory.put(value)
    if span is not None:
        send(connection, Sent(number, span, follows=False))
        return True
    if not memory.is_empty:
        return False
    memory.put_nothing()
    sizes = [len(part) for part in value.parts]
    send(connection, Sent(number, Span(0, 0, sizes, value.pieces is not None), follows=True))
    for part in value.parts:
        connection.send_bytes(part)
    if value.pieces is not None:
        connection.send_bytes(b"".join(value.pieces))
    return True


def take(connection: Connection, memory: SharedMemory, sent: Sent) -> Any:
    """Return an object that the other process has sent; one with pieces is Joined."""
    if not sent.follows:
        return memory.value(sent.span)
    value = unpickled([connection.recv_bytes() for _ in sent.span.sizes])
    return Joined(value, connection.recv_bytes()) if sent.span.has_pieces else value


class Forked:
    """A forked process, seen from its parent.

    serve: what it does, with its end of the connection, the memory for what the parent puts and
    that for what it puts itself, until EOFError. size: of the first; free: frees the oldest object
    there.
    """

    def __init__(
        self, serve: Callable[[Connection, SharedMemory, SharedMemory], None], size: int
    ) -> None:
        self._to, self._back = SharedMemory(size), SharedMemory(RECEIVED_BYTES)
        self.free = self._to.free
        self._connection, remote = Pipe()
        sys.stdout.flush()  # otherwise the fork would write the buffered output a second time
        # Python ignores what a signal handler raises in a function that is called at a fork
        with signals_blocked() as before:
            self._process = get_context("fork").Process(
                target=_serve,
                args=(serve, (remote, self._to, self._back), self._connection, before),
                daemon=True,
            )
            self._process.start()
        remote.close()
        self._poll = select.poll()
        self._poll.register(self._connection.fileno(), select.POLLIN)

    def put(self, value: Pickled, number: int) -> bool:
        """Send an object; False if there is not enough memory until others are freed."""
        with suppress(ConnectionError):  # the process has died: `receive` raises the error
            return put(self._connection, self._to, value, number)
        return True

    def send(self, message: object) -> None:
        """Send a message. If the process has died, `receive` raises the error."""
        with suppress(ConnectionError):
            send(self._connection, message)

    def poll(self) -> bool:
        """Return whether `receive` would return at once."""
        return bool(self._poll.poll(0))

    def receive(self) -> Any:
        """Wait for a message or an object. Raises ChildProcessError if the process died."""
        try:
            message = receive(self._connection)
            if isinstance(message, Sent):
                message = take(self._connection, self._back, message)
                self.send(Taken())
        except (EOFError, ConnectionError):
            self._process.join()
            reason = f"worker process exited with {self._process.exitcode}; rows are missing"
            raise ChildProcessError(ECHILD, reason, "--jobs") from None
        return message

    def close(self) -> None:
        """Kill the process, whatever it is doing."""
        self._process.kill()
        self._process.join()
        self._connection.close()
        self._to.close()
        self._back.close()


def _serve(
    serve: Callable[[Connection, SharedMemory, SharedMemory], None],
    arguments: tuple[Connection, SharedMemory, SharedMemory],
    parent: Connection,
    blocked: set[signal.Signals],
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent, interrupted too, kills the worker
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    parent.close()  # otherwise the worker would not notice that its parent has exited
    with suppress(EOFError):  # the parent no longer waits
        serve(*arguments)
    os._exit(0)

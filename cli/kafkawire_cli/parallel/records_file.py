"""Writes the table `records` in a process of its own: its rows and its file take longest.

The file is that of one process, byte for byte; memory is bounded, since this process waits
while the shared memory is full of what the other one has not taken.

    this process    reads, pairs, makes the other tables --records fields--.
    the other one                decompresses, makes columns, writes <-----'
    this process, while the other is behind: decompresses, makes columns --record batches-->
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkawire.capture.tables.arrow.record_columns import record_batches
from kafkawire.capture.tables.arrow.record_fields import Fields
from kafkawire.errors import KafkaWireError

from .forked import Forked, SubmittedTask, receive, send
from .shared_memory import SharedMemory, pickled, unpickled

if TYPE_CHECKING:
    import pyarrow as pa

    from ..render.table_formats import Write

SHARED_BYTES: Final = 1 << 24
"""Bytes of memory shared with the process, for what it has not taken."""

FIELDS_AHEAD: Final = 4
"""Fields and batches that may wait for the process before this one decodes fields, too."""


class Content(NamedTuple):
    """What is written of the fields. size: rows of a batch at most. secrets: whether shown."""

    size: int
    secrets: bool


class _Parts(NamedTuple):
    """What is larger than the shared memory follows in so many messages."""

    number: int


class _Taken(NamedTuple):
    """The oldest value has been copied out of the shared memory."""


class _Finished(NamedTuple):
    """The file is complete, or why it is not."""

    error: KafkaWireError | OSError | None


@contextmanager
def records_file(
    opened: Callable[[], AbstractContextManager[Write]], content: Content
) -> Iterator[Callable[[Fields], None]]:
    """Start a process that opens a file and writes records into it; return what passes fields on.

    Raises what the process raised: OSError, KafkaWireError.
    """
    process = _RecordsProcess(opened, content)
    try:
        try:
            yield process.write
        except Exception:
            with suppress(KafkaWireError, OSError):  # the first error counts
                process.finish()
            raise
        process.finish()
    finally:
        process.close()


class _RecordsProcess(Forked):
    """The process, seen from this one."""

    def __init__(
        self, opened: Callable[[], AbstractContextManager[Write]], content: Content
    ) -> None:
        self._untaken = 0
        self._content = content
        super().__init__(partial(_serve, opened, content), SHARED_BYTES)

    def write(self, fields: Fields) -> None:
        """Pass fields on, or the batches of their records."""
        while self.poll() and self._receive():
            pass
        if self._untaken < FIELDS_AHEAD:
            self._pass(fields)
        else:
            for batch in record_batches(fields, self._content.secrets):
                self._pass(batch)

    def _pass(self, value: Fields | pa.RecordBatch) -> None:
        """Pass a value on; wait while the memory is full."""
        task = pickled(value)
        while not self.submit(0, task):
            if not self._untaken:
                self._send_parts(task.parts)
                return
            self._receive()
        self._untaken += 1

    def finish(self) -> None:
        """Wait until the file is complete."""
        self.send(None)
        while self._receive():
            pass

    def _send_parts(self, parts: list[memoryview]) -> None:
        self.send(_Parts(len(parts)))
        with suppress(ConnectionError):  # it has failed: `finish` raises why
            for part in parts:
                self.connection.send_bytes(part)

    def _receive(self) -> bool:
        """Wait for a message; return whether there will be more."""
        message: _Taken | _Finished = self.receive()
        if isinstance(message, _Finished):
            if message.error is not None:
                raise message.error
            return False
        self.tasks.free()
        self._untaken -= 1
        return True


# -- in the other process


def _serve(
    opened: Callable[[], AbstractContextManager[Write]],
    content: Content,
    connection: Connection,
    memory: SharedMemory,
) -> None:
    error: KafkaWireError | OSError | None = None
    try:
        with opened() as write:
            for batch in _received(connection, memory, content.secrets):
                for start in range(0, len(batch), content.size):
                    write(batch.slice(start, content.size))
    except (KafkaWireError, OSError) as failure:
        error = failure
    send(connection, _Finished(error))


def _received(
    connection: Connection, memory: SharedMemory, secrets: bool
) -> Iterator[pa.RecordBatch]:
    while (message := receive(connection)) is not None:
        if isinstance(message, SubmittedTask):
            taken: Fields | pa.RecordBatch = unpickled(memory.get(message.span))
            send(connection, _Taken())
        else:
            taken = unpickled([connection.recv_bytes() for _ in range(message.number)])
        if isinstance(taken, Fields):
            yield from record_batches(taken, secrets)
        else:
            yield taken

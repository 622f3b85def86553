"""Writes the table `records` in a process of its own: its rows and its file take longest.

The file is that of one process, byte for byte; memory is bounded, since this process waits
while the queue of the other one is full.

    this process    reads, pairs, makes the other tables --records fields--.
    the other one                decompresses, makes columns, writes <-----'
    this process, while the other is behind: decompresses, makes columns --record batches-->
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from kafkawire.capture.tables.arrow.record_columns import record_batches
from kafkawire.capture.tables.arrow.record_fields import Fields
from kafkawire.errors import KafkaWireError

from .pool import Pool

if TYPE_CHECKING:
    from ..render.table_formats import Write

TASKS_AHEAD: Final = 5
"""Fields and batches queued for the process before this one decodes fields, too."""

SHARED_BYTES: Final = 1 << 24
"""Bytes of memory shared with the process, for these."""


class Content(NamedTuple):
    """What is written of the fields. size: rows of a batch at most. secrets: whether shown."""

    size: int
    secrets: bool


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


class _RecordsProcess:
    """The process, seen from this one."""

    def __init__(
        self, opened: Callable[[], AbstractContextManager[Write]], content: Content
    ) -> None:
        writer = _Writer(opened, content)
        self._pool = Pool[Fields | pa.RecordBatch | None, object](
            1, writer.run, TASKS_AHEAD, SHARED_BYTES
        )
        self._secrets = content.secrets
        self.close = self._pool.close

    def write(self, fields: Fields) -> None:
        """Pass fields on, or the batches of their records."""
        deque(self._pool.ready(), 0)
        if self._pool.submit(lambda _: fields) is None:
            for batch in record_batches(fields, self._secrets):
                self._pass(batch)

    def finish(self) -> None:
        """Wait until the file is complete."""
        self._pass(None)
        deque(self._pool.drain(), 0)

    def _pass(self, value: pa.RecordBatch | None) -> None:
        while self._pool.submit(lambda _: value) is None:
            deque(self._pool.wait(), 0)


class _Writer:
    """The other process, which writes a file from the first task on, until the end of all."""

    def __init__(
        self, opened: Callable[[], AbstractContextManager[Write]], content: Content
    ) -> None:
        self._write = _writing(opened, content)
        self._is_open = False

    def run(self, value: Fields | pa.RecordBatch | None) -> tuple[()]:
        """Write records; None completes the file. Without effect after an error."""
        with suppress(StopIteration):
            if not self._is_open:
                self._is_open = True
                next(self._write)
            self._write.send(value)
        return ()


def _writing(
    opened: Callable[[], AbstractContextManager[Write]], content: Content
) -> Generator[None, Fields | pa.RecordBatch | None, None]:
    """Open a file, and write what is sent until None."""
    with opened() as write:
        while (value := (yield)) is not None:
            for batch in _batches(value, content.secrets):
                for start in range(0, len(batch), content.size):
                    write(batch.slice(start, content.size))


def _batches(value: Fields | pa.RecordBatch, secrets: bool) -> Iterable[pa.RecordBatch]:
    return record_batches(value, secrets) if isinstance(value, Fields) else [value]

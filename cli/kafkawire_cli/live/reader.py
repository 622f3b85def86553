"""Polls records and writes them out: the work of `kafkawire consume`.

In a group, only offsets of records that have been written out are committed. A failed connection is
retried, and reported. Where partitions have an end, a time without progress is an error.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sized
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Self, TypeVar

from ..notes import print_note
from .outputs import Output, in_thread

if TYPE_CHECKING:
    from kafkawire.client.consumer import TopicPartition
    from kafkawire.net.consumer import Consumer

T = TypeVar("T", bound=Sized)

IDLE_SECONDS: Final = 0.5
"""Seconds without a record after which `--exit-at-end` checks the end offsets."""
CONNECTIONS: Final = "kafkawire.client"
ERRORS: Final = ("kafkawire.consumer", "kafkawire.share_consumer")
"""Loggers of failed connections, and of errors in the background."""
NAMED_PARTITIONS: Final = 3


class Until(NamedTuple):
    """When to stop.

    most: after so many records; None for no limit. at_end: at the end of the partitions. offsets:
    before which each partition ends. timeout_s: fail if there is an end and no position changes for
    so long before it.
    """

    most: int | None = None
    at_end: bool = False
    offsets: Mapping[TopicPartition, int] | None = None
    timeout_s: float = 60.0

    @property
    def ends(self) -> bool:
        """Whether the partitions have an end."""
        return self.at_end or self.offsets is not None


class ConnectionLog(logging.Handler):
    """Prints what fails and is retried, each reason once until records arrive again."""

    def __init__(self) -> None:
        super().__init__()
        self.last = ""
        self._printed: set[str] = set()
        self._loggers = [logging.getLogger(name) for name in (CONNECTIONS, *ERRORS)]

    def __enter__(self) -> Self:
        for logger in self._loggers:
            logger.setLevel(logging.INFO)
            logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        for logger in self._loggers:
            logger.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage()
        if self.last not in self._printed:
            self._printed.add(self.last)
            what = "reconnecting" if record.name == CONNECTIONS else "retrying"
            print_note(f"{self.last}; {what}")

    def reset(self) -> None:
        """Records have arrived."""
        self.last = ""
        self._printed.clear()


class Reader(Generic[T]):
    """Polls records and writes them out before the next poll.

    A thread formats and writes, so that heartbeats continue while the output pipe is full, or while
    a schema is fetched from a registry.
    """

    def __init__(self, consumer: Consumer, output: Output[T], until: Until) -> None:
        self._consumer = consumer
        self._output = output
        self._left = until.most
        self._until = until

    async def run(self) -> None:
        """Read until the requested end."""
        from kafkawire.client.failures import RequestFailed
        from kafkawire.client.requests import Reason

        until = self._until
        clock = asyncio.get_running_loop().time
        last_progress = clock()
        positions = self._positions()
        with ConnectionLog() as log:
            while self._left != 0:
                if until.offsets is not None and await self._at_end():
                    return
                wait = IDLE_SECONDS if until.ends else None
                records = await self._output.poll(self._consumer, wait, self._left)
                if records:
                    log.reset()
                    await self._write_out(self._before_the_end(records))
                elif not until.ends or await self._at_end():
                    return
                before, positions = positions, self._positions()
                if records or positions != before:
                    last_progress = clock()
                elif clock() > last_progress + until.timeout_s:
                    reason = log.last or _without_progress(positions)
                    raise RequestFailed(Reason.TIMED_OUT, f"the end was not reached: {reason}")

    def _positions(self) -> dict[TopicPartition, int | None]:
        """Return the next offset of each assigned partition; None if it is not known yet."""
        return {each: self._consumer.known_position(each) for each in self._consumer.assignment()}

    def _before_the_end(self, records: T) -> T:
        ends = self._until.offsets
        return records if ends is None else self._output.before(records, ends)

    async def _write_out(self, records: T) -> None:
        if self._left is not None:
            self._left -= len(records)
        try:
            await in_thread(self._output.write, records)
        except OSError:
            self._seek_back(records)
            raise

    def _seek_back(self, records: T) -> None:
        """Seek back to records that could not be written, so that they are not committed."""
        for partition, offset in self._output.first_offsets(records).items():
            if partition in self._consumer.assignment():
                self._consumer.seek(partition, offset)

    async def _at_end(self) -> bool:
        assigned = self._consumer.assignment()
        if not assigned:
            return False
        ends = self._until.offsets
        if ends is None:
            ends = await self._consumer.end_offsets(*assigned)
        return all([await self._consumer.position(each) >= ends[each] for each in assigned])


def _without_progress(positions: Mapping[TopicPartition, int | None]) -> str:
    """Say where it did not go on."""
    where = ", ".join(
        f"{each} at offset {'unknown' if offset is None else offset}"
        for each, offset in sorted(positions.items())[:NAMED_PARTITIONS]
    )
    return f"no progress: {where}" if where else "no partition was assigned"

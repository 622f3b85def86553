"""How much of a producer's memory is used: whether its user should wait, or send on."""

from __future__ import annotations

from typing import Final

from .configuration import ProducerSettings
from .partition_queue import MOST_IN_FLIGHT
from .record_accumulator import RecordAccumulator

LONG_BACKLOG_BYTES: Final = 1 << 20
"""More than brokers take while the sender is busy, for each batch of a partition in flight. Records
that wait for longer leave the caches of the processor, and the cyclic GC visits their futures.
"""


class Backlog:
    """The accumulated records of a producer."""

    def __init__(self, settings: ProducerSettings, accumulator: RecordAccumulator) -> None:
        self._settings = settings
        self._accumulator = accumulator

    @property
    def has_backlog(self) -> bool:
        """Whether full batches wait for responses, on average of the partitions that have any."""
        return self._accumulator.used > self._backlog_bytes()

    @property
    def has_long_backlog(self) -> bool:
        """Whether so much waits for responses that further records only take memory."""
        most = max(LONG_BACKLOG_BYTES * self._most_in_flight, 2 * self._backlog_bytes())
        return self._accumulator.used > most

    @property
    def available_bytes(self) -> int:
        """How many bytes of buffer.memory are free."""
        return self._settings.buffer_memory - self._accumulator.used

    def _backlog_bytes(self) -> int:
        """Return how many bytes may be in flight or in open batches."""
        batches = (self._most_in_flight + 1) * len(self._accumulator.busy)
        return batches * self._settings.batch_size

    @property
    def _most_in_flight(self) -> int:
        """How many batches of a partition may be in flight."""
        return MOST_IN_FLIGHT if self._settings.idempotent else 1

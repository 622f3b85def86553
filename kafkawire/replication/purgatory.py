"""Delayed operations as data, as Kafka's DelayedOperationPurgatory.

Law: an operation completes once: when the last thing that it waits for happened, when its time is
over, or when the leader of its partition changed.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from .metadata import TopicPartition
from .thresholds import Thresholds

O = TypeVar("O", bound=Hashable)
TIME: Final = "time"


@dataclass(slots=True)
class _Waiting:
    """What is remembered of an operation: numbers of its entries."""

    entries: list[int] = field(default_factory=list)
    deadline: int = 0


class Purgatory(Generic[O]):
    """Operations of one kind. Each waits for values of partitions, in a given measure."""

    def __init__(self) -> None:
        self._watched: Thresholds[tuple[TopicPartition, str], O] = Thresholds()
        self._times: Thresholds[str, O] = Thresholds()
        self._waiting: dict[O, _Waiting] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, operation: O) -> bool:
        return operation in self._waiting

    @property
    def work(self) -> int:
        """How many entries were looked at."""
        return self._watched.work + self._times.work

    def add(self, operation: O, deadline: float) -> None:
        """Add an operation; `watch` says what it waits for."""
        self._waiting[operation] = _Waiting([], self._times.add(TIME, deadline, operation))

    def watch(self, operation: O, key: TopicPartition, measure: str, value: float) -> None:
        """Return the operation from `reached` when the measure of a partition is `value`."""
        number = self._watched.add((key, measure), value, operation)
        self._waiting[operation].entries.append(number)

    def unwatch(self, operation: O) -> None:
        """Forget what an operation waits for, except the time."""
        waiting = self._waiting[operation]
        for number in waiting.entries:
            self._watched.discard(number)
        waiting.entries.clear()

    def reached(self, key: TopicPartition, measure: str, value: float) -> list[O]:
        """Return operations of which a threshold was reached; they stay, without it."""
        return self._watched.take_reached((key, measure), value)

    def all_of(self, key: TopicPartition, measure: str) -> list[O]:
        """Return the operations that wait for a partition; they stay, without it."""
        return self._watched.take_all((key, measure))

    def remove(self, operation: O) -> bool:
        """Remove an operation; return whether it was there."""
        if operation not in self._waiting:
            return False
        self.unwatch(operation)
        self._times.discard(self._waiting.pop(operation).deadline)
        return True

    def take_expired(self, now: float) -> list[O]:
        """Remove and return the operations whose time is over."""
        expired = self._times.take_reached(TIME, now)
        for operation in expired:
            self.unwatch(operation)
            del self._waiting[operation]
        return expired

    def next_deadline(self) -> float | None:
        """Return the earliest deadline."""
        return self._times.lowest(TIME)

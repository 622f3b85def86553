"""The tasks of a Kafka Streams application: active, standby and warm-up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Protocol

Task = tuple[str, int]
"""(subtopology id, partition)."""
TaskSet = frozenset[Task]
NO_TASKS: Final[TaskSet] = frozenset()


class Tasks(NamedTuple):
    """The tasks of a member by their type.

    active: those that process records. standby: copies of the state of active tasks. warmup: whose
    state is restored before they become active.
    """

    active: TaskSet = NO_TASKS
    standby: TaskSet = NO_TASKS
    warmup: TaskSet = NO_TASKS

    def union(self, other: Tasks) -> Tasks:
        """Return the tasks of both, type by type."""
        return Tasks(*(mine | theirs for mine, theirs in zip(self, other, strict=True)))

    def meets(self, other: Tasks) -> bool:
        """Whether a task is in both, with the same type."""
        return any(not mine.isdisjoint(theirs) for mine, theirs in zip(self, other, strict=True))

    def is_within(self, other: Tasks) -> bool:
        """Whether all tasks are in another, with the same type."""
        return all(mine <= theirs for mine, theirs in zip(self, other, strict=True))


NOTHING: Final = Tasks()


class OfSubtopology(Protocol):
    """Tasks of a subtopology, in a record or a message."""

    subtopology_id: str
    partitions: list[int]


def by_subtopology(tasks: Iterable[Task]) -> dict[str, list[int]]:
    """Return the partitions of each subtopology, both in order."""
    partitions: dict[str, list[int]] = {}
    for subtopology, partition in sorted(tasks):
        partitions.setdefault(subtopology, []).append(partition)
    return partitions


def tasks_of(items: Iterable[OfSubtopology]) -> TaskSet:
    """Return the tasks in a record or a message."""
    return frozenset((each.subtopology_id, index) for each in items for index in each.partitions)


class TaskOffset(Protocol):
    """An offset of a task, in a message."""

    subtopology_id: str
    partition: int
    offset: int


def offsets_of(items: Iterable[TaskOffset]) -> Mapping[Task, int]:
    """Return the offsets of tasks. ValueError for two of the same task."""
    offsets: dict[Task, int] = {}
    for each in items:
        task = each.subtopology_id, each.partition
        if task in offsets:
            raise ValueError(
                f"Task offsets contain a duplicate entry for subtopology {each.subtopology_id} and "
                f"partition {each.partition}."
            )
        offsets[task] = each.offset
    return offsets

"""Topologies and tasks in messages and records, whose structures have the same fields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar

from .tasks import TaskSet, by_subtopology
from .topology import CopartitionGroup, InternalTopic, Pairs, Subtopology, Topology


class _Copartition(Protocol):
    source_topics: list[int]
    repartition_source_topics: list[int]


class _Pair(Protocol):
    key: str
    value: str


class _Topic(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def partitions(self) -> int: ...
    @property
    def replication_factor(self) -> int: ...
    @property
    def topic_configs(self) -> Sequence[_Pair]: ...


class _Subtopology(Protocol):
    @property
    def subtopology_id(self) -> str: ...
    @property
    def source_topics(self) -> list[str]: ...
    @property
    def repartition_sink_topics(self) -> list[str]: ...
    @property
    def repartition_source_topics(self) -> Sequence[_Topic]: ...
    @property
    def state_changelog_topics(self) -> Sequence[_Topic]: ...
    @property
    def copartition_groups(self) -> Sequence[_Copartition]: ...


def topology_of(epoch: int, subtopologies: Iterable[_Subtopology]) -> Topology:
    """Return the topology in a heartbeat or a record."""
    return Topology(
        epoch,
        tuple(
            Subtopology(
                each.subtopology_id,
                tuple(each.source_topics),
                tuple(each.repartition_sink_topics),
                tuple(map(_topic_of, each.repartition_source_topics)),
                tuple(map(_topic_of, each.state_changelog_topics)),
                tuple(
                    CopartitionGroup(
                        tuple(group.source_topics), tuple(group.repartition_source_topics)
                    )
                    for group in each.copartition_groups
                ),
            )
            for each in subtopologies
        ),
    )


def _topic_of(topic: _Topic) -> InternalTopic:
    return InternalTopic(
        topic.name, topic.partitions, topic.replication_factor, pairs_of(topic.topic_configs)
    )


def pairs_of(items: Iterable[_Pair]) -> Pairs:
    """Return keys with their values."""
    return tuple((each.key, each.value) for each in items)


T = TypeVar("T")


def topic_infos(topics: Iterable[InternalTopic], info: type[T], pair: type[Any]) -> list[T]:
    """Return internal topics as structures. info, pair: their classes in the message."""
    make: Any = info
    return [
        make(
            name=each.name,
            partitions=each.partitions,
            replication_factor=each.replication_factor,
            topic_configs=[pair(key=key, value=value) for key, value in each.configs],
        )
        for each in topics
    ]


def task_ids(tasks: TaskSet, ids: type[T]) -> list[T]:
    """Return tasks as structures. ids: their class in the message."""
    make: Any = ids
    return [
        make(subtopology_id=each, partitions=partitions)
        for each, partitions in by_subtopology(tasks).items()
    ]

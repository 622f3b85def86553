"""Decides the partitions of internal topics, and which topics are missing or do not fit.

As Kafka's InternalTopicManager: repartition topics have as many partitions as the sources of the
subtopologies that write them, sources that are joined have the same number, and changelog topics
one for each task. Time is linear in the size of the topology.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

from ..topics import Topics
from .topology import InternalTopic, Subtopology, Topology

SHOWN: Final = 3
"""How many topics a message names."""


class StatusCode(IntEnum):
    """A condition of a group in the response to a heartbeat."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


class Status(NamedTuple):
    """A condition of a group; the detail is Kafka's."""

    code: StatusCode
    detail: str


class InvalidTopology(Exception):
    """A topology for which no number of partitions can be decided."""


class _Unfit(Exception):
    """Topics that are missing, or have the wrong number of partitions."""

    def __init__(self, code: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.status = Status(code, detail)


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    """A topology with the partitions of its topics.

    tasks: subtopology id -> number of tasks, in the order of the ids; None if topics do not fit.
    partitions: internal topic -> number of partitions. missing: internal topics to create. problem:
    why no tasks can be assigned.
    """

    epoch: int
    tasks: Mapping[str, int] | None = None
    partitions: Mapping[str, int] | None = None
    missing: tuple[InternalTopic, ...] = ()
    problem: Status | None = None

    @property
    def is_ready(self) -> bool:
        """Whether tasks can be assigned."""
        return self.problem is None


def configured(topology: Topology, topics: Topics) -> ConfiguredTopology:
    """Decide the partitions of all topics. InvalidTopology if that is impossible."""
    try:
        _require_sources(topology, topics)
        return _decided(topology, topics)
    except _Unfit as unfit:
        return ConfiguredTopology(topology.epoch, problem=unfit.status)


def _require_sources(topology: Topology, topics: Topics) -> None:
    missing = {
        name
        for each in topology.subtopologies
        for name in each.source_topics
        if topics.find(name) is None
    }
    if missing:
        raise _Unfit(
            StatusCode.MISSING_SOURCE_TOPICS,
            f"Source topics {_summary(sorted(missing))} are missing.",
        )


def _summary(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    text = ", ".join(names[:SHOWN])
    return f"{text} and {more} additional topics" if more > 0 else text


def _decided(topology: Topology, topics: Topics) -> ConfiguredTopology:
    counts = _repartition_counts(topology, topics)

    def count(name: str) -> int:
        """Return the partitions of a source: those that it has, else those decided."""
        topic = topics.find(name)
        partitions = counts.get(name) if topic is None else topic.partitions
        if partitions is None:
            raise InvalidTopology(f"Number of partitions is not set for topic: {name}")
        return partitions

    _enforce_copartitioning(topology, counts, count)
    tasks: dict[str, int] = {}
    internal: dict[str, InternalTopic] = {}
    for each in sorted(topology.subtopologies):
        number = max(map(count, each.sources), default=0)
        if not number:
            raise InvalidTopology(f"No source topics found for subtopology {each.subtopology_id}")
        tasks[each.subtopology_id] = number
        for topic in each.state_changelog_topics:
            counts[topic.name] = number
        for topic in (*each.repartition_source_topics, *each.state_changelog_topics):
            partitions = topic.partitions or counts[topic.name]
            internal[topic.name] = topic._replace(partitions=partitions)
    missing = _missing(internal, topics)
    problem = None
    if missing:
        names = _summary([each.name for each in missing])
        problem = Status(
            StatusCode.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {names}"
        )
    partitions_of = {each.name: each.partitions for each in internal.values()}
    return ConfiguredTopology(topology.epoch, tasks, partitions_of, missing, problem)


def _missing(internal: Mapping[str, InternalTopic], topics: Topics) -> tuple[InternalTopic, ...]:
    missing = []
    for name in sorted(internal):
        topic, expected = topics.find(name), internal[name].partitions
        if topic is None:
            missing.append(internal[name])
        elif topic.partitions != expected:
            raise _Unfit(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {name} has different number of partitions: expected {expected}, "
                f"found {topic.partitions}",
            )
    return tuple(missing)


# -- repartition topics


def _repartition_counts(topology: Topology, topics: Topics) -> dict[str, int]:
    """Return the partitions of repartition topics: set by a member, else those of the sources."""
    counts = {
        topic.name: topic.partitions
        for each in topology.subtopologies
        for topic in each.repartition_source_topics
        if topic.partitions
    }
    readers: dict[str, list[Subtopology]] = {}
    for each in topology.subtopologies:
        for topic in each.repartition_source_topics:
            readers.setdefault(topic.name, []).append(each)
    waiting = deque(topology.subtopologies)
    unresolved = {each.subtopology_id for each in topology.subtopologies}
    while waiting:
        subtopology = waiting.popleft()
        number = _source_partitions(subtopology, counts, topics)
        if number is None or subtopology.subtopology_id not in unresolved:
            continue
        unresolved.discard(subtopology.subtopology_id)
        for sink in subtopology.repartition_sink_topics:
            if sink not in counts:
                counts[sink] = number
                waiting.extend(readers.get(sink, ()))
    if any(
        sink not in counts
        for each in topology.subtopologies
        for sink in each.repartition_sink_topics
    ):
        raise InvalidTopology(
            "Failed to compute number of partitions for all repartition topics. There may be loops "
            "in the topology that cannot be resolved."
        )
    if any(name not in counts for name in readers):
        raise InvalidTopology(
            "Failed to compute number of partitions for all repartition topics, because a "
            "repartition source topic is never used as a sink topic."
        )
    return counts


def _source_partitions(each: Subtopology, counts: Mapping[str, int], topics: Topics) -> int | None:
    """Return the largest number of partitions of the sources that are decided; None for none."""
    numbers = [
        counts[topic.name] for topic in each.repartition_source_topics if topic.name in counts
    ]
    sources = map(topics.find, each.source_topics)
    numbers += [topic.partitions for topic in sources if topic is not None]
    return max(numbers, default=None)


# -- co-partitioning


def _enforce_copartitioning(
    topology: Topology, counts: dict[str, int], count: Callable[[str], int]
) -> None:
    """Let the sources of each co-partition group have the same number of partitions."""
    repartition = {
        topic.name: topic.partitions
        for each in topology.subtopologies
        for topic in each.repartition_source_topics
    }
    fixed = [name for name, partitions in repartition.items() if partitions]
    fixed_counts = {count(name) for name in fixed}
    for each in topology.subtopologies:
        for names in _copartition_groups(each):
            if not names:
                continue
            flexible = {name: count(name) for name in names if name in repartition}
            sources = {name: count(name) for name in names if name not in repartition}
            if sources:
                number = _same(sources, set(sources.values()))
            elif fixed:
                number = _same(flexible, fixed_counts)
            else:
                number = max(flexible.values())
            for name, partitions in flexible.items():
                if repartition[name] and partitions != number:
                    raise _Unfit(
                        StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                        f"Number of partitions [{partitions}] of repartition topic [{name}] "
                        f"doesn't match number of partitions [{number}] of the source topic.",
                    )
                counts[name] = number


def _copartition_groups(each: Subtopology) -> Iterable[set[str]]:
    for group in each.copartition_groups:
        try:
            yield {
                *(each.source_topics[_index(at)] for at in group.source_topics),
                *(
                    each.repartition_source_topics[_index(at)].name
                    for at in group.repartition_source_topics
                ),
            }
        except IndexError:
            raise InvalidTopology(
                f"A copartition group of subtopology {each.subtopology_id} has a topic that the "
                "subtopology does not have."
            ) from None


def _index(at: int) -> int:
    if at < 0:
        raise IndexError
    return at


def _same(partitions: Mapping[str, int], numbers: set[int]) -> int:
    """Return the only one of some numbers of partitions. partitions: what a message shows."""
    if len(numbers) != 1:
        listed = ", ".join(f"{name}={partitions[name]}" for name in sorted(partitions))
        raise _Unfit(
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            f"Following topics do not have the same number of partitions: [{{{listed}}}]",
        )
    return next(iter(numbers))

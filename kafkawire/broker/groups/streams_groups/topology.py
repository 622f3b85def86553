"""The topology of a Streams group: its subtopologies with their topics, as a member sent it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

Pairs = tuple[tuple[str, str], ...]
"""Keys with their values, sorted."""


class InternalTopic(NamedTuple):
    """A topic that the broker creates. partitions, replication_factor: 0 for what it decides."""

    name: str
    partitions: int = 0
    replication_factor: int = 0
    configs: Pairs = ()


class CopartitionGroup(NamedTuple):
    """Sources with the same number of partitions, as indexes into those of the subtopology."""

    source_topics: tuple[int, ...]
    repartition_source_topics: tuple[int, ...]


class Subtopology(NamedTuple):
    """A part of a topology whose tasks share topics.

    repartition_sink_topics: internal topics that it writes, which another one reads.
    """

    subtopology_id: str
    source_topics: tuple[str, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    repartition_source_topics: tuple[InternalTopic, ...] = ()
    state_changelog_topics: tuple[InternalTopic, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()

    @property
    def sources(self) -> Iterator[str]:
        """The names of the topics that its tasks read."""
        yield from self.source_topics
        yield from (each.name for each in self.repartition_source_topics)

    @property
    def is_stateful(self) -> bool:
        """Whether its tasks have state, of which there can be copies."""
        return bool(self.state_changelog_topics)

    @property
    def topics(self) -> Iterator[str]:
        """The names of all its topics."""
        yield from self.sources
        yield from self.repartition_sink_topics
        yield from (each.name for each in self.state_changelog_topics)


@dataclass(frozen=True)
class Topology:
    """A topology and its epoch, which the application raises when it changes it."""

    epoch: int
    subtopologies: tuple[Subtopology, ...]

    @cached_property
    def required_topics(self) -> frozenset[str]:
        """The names of the topics that must exist before tasks are assigned."""
        return frozenset(
            name
            for each in self.subtopologies
            for name in (*each.sources, *(topic.name for topic in each.state_changelog_topics))
        )

    @cached_property
    def by_source(self) -> dict[str, str]:
        """Topic -> the id of the subtopology that reads it."""
        return {name: each.subtopology_id for each in self.subtopologies for name in each.sources}

    def is_same_as(self, other: Topology) -> bool:
        """Whether epoch and subtopologies are the same, in any order."""
        return self.epoch == other.epoch and set(self.subtopologies) == set(other.subtopologies)

    @cached_property
    def size(self) -> int:
        """Characters of its names and configs."""
        return sum(
            len(each.subtopology_id)
            + sum(map(len, each.topics))
            + sum(
                len(key) + len(value)
                for topic in (*each.repartition_source_topics, *each.state_changelog_topics)
                for key, value in topic.configs
            )
            for each in self.subtopologies
        )

"""The subscription: topics by name, by pattern, or manually assigned partitions.

One mode at a time. The same mode replaces the subscription; another mode is an error until the
consumer has unsubscribed; subscribing to nothing is unsubscribing.

                      subscribe(names)   subscribe(pattern)   assign(partitions)
    NONE              NAMES              PATTERN              ASSIGNED
    NAMES             NAMES              error                error
    PATTERN           error              PATTERN              error
    ASSIGNED          error              error                ASSIGNED

A pattern is matched here (PATTERN), or by the brokers (BROKER_PATTERN), which is a mode of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from ...errors import LocalProtocolError
from ..cluster import ClusterView
from .partitions import SubscriptionPattern, TopicPartition


class Mode(Enum):
    """How topics or partitions are chosen."""

    NONE = "nothing"
    NAMES = "topics by name"
    PATTERN = "topics by pattern"
    BROKER_PATTERN = "topics by a pattern of the brokers"
    ASSIGNED = "assigned partitions"


# fmt: off
LEGAL: Final[Mapping[Mode, frozenset[Mode]]] = {
    Mode.NONE:           frozenset(Mode),
    Mode.NAMES:          frozenset({Mode.NAMES, Mode.NONE}),
    Mode.PATTERN:        frozenset({Mode.PATTERN, Mode.NONE}),
    Mode.BROKER_PATTERN: frozenset({Mode.BROKER_PATTERN, Mode.NONE}),
    Mode.ASSIGNED:       frozenset({Mode.ASSIGNED, Mode.NONE}),
}
"""Mode -> the modes that may follow it."""
# fmt: on


class Subscription:
    """The current subscription.

    topics: the subscribed topics; for a pattern, the matching topics of the cluster; none for a
    pattern of the brokers (`broker_pattern`, "" if there is none), which alone know them.
    """

    def __init__(self) -> None:
        self.mode = Mode.NONE
        self.topics: frozenset[str] = frozenset()
        self.pattern: re.Pattern[str] | None = None
        self.broker_pattern = ""
        self.assigned: frozenset[TopicPartition] = frozenset()

    @property
    def in_group(self) -> bool:
        """Whether partitions come from a group's assignment."""
        return self.mode in (Mode.NAMES, Mode.PATTERN, Mode.BROKER_PATTERN)

    @property
    def tracked(self) -> frozenset[str] | None:
        """The topics whose metadata is needed; None for all topics of the cluster."""
        if self.mode in (Mode.PATTERN, Mode.BROKER_PATTERN):
            return None
        return self.topics

    def subscribe(self, topics: Iterable[str] | re.Pattern[str] | SubscriptionPattern) -> None:
        """Subscribe to topics by name, or by a pattern that matches whole names."""
        if isinstance(topics, SubscriptionPattern):
            self._set_mode(Mode.BROKER_PATTERN)
            self.broker_pattern = topics.pattern
            return
        if isinstance(topics, re.Pattern):
            self._set_mode(Mode.PATTERN)
            self.pattern, self.topics = topics, frozenset()
            return
        if isinstance(topics, str):
            raise LocalProtocolError(f"invalid topics {topics!r}: expected a list of names")
        names = frozenset(topics)
        self._set_mode(Mode.NAMES if names else Mode.NONE)
        self.topics = names

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign partitions manually."""
        assigned = frozenset(partitions)
        self._set_mode(Mode.ASSIGNED if assigned else Mode.NONE)
        self.assigned = assigned
        self.topics = frozenset(each.topic for each in assigned)

    def unsubscribe(self) -> None:
        """Unsubscribe from everything."""
        self._set_mode(Mode.NONE)

    def match(self, view: ClusterView) -> bool:
        """Update the topics that match the pattern; returns whether they have changed.

        Internal topics never match. Without a pattern nothing changes.
        """
        if self.pattern is None:
            return False
        matching = frozenset(
            topic.name
            for topic in view.topics.values()
            if not topic.is_internal and not topic.error and self.pattern.fullmatch(topic.name)
        )
        changed = matching != self.topics
        self.topics = matching
        return changed

    def _set_mode(self, mode: Mode) -> None:
        if mode not in LEGAL[self.mode]:
            raise LocalProtocolError(
                f"subscribed to {self.mode.value}; unsubscribe before using {mode.value}"
            )
        self.mode = mode
        self.topics, self.pattern, self.assigned = frozenset(), None, frozenset()
        self.broker_pattern = ""

"""What the user wants to read: topics by name, by pattern, or partitions of their own choice.

Law: one way at a time. The same way again replaces what was wanted; another way is refused until
the consumer has unsubscribed; nothing at all is unsubscribing.

                      subscribe(names)   subscribe(pattern)   assign(partitions)
    NONE              NAMES              PATTERN              ASSIGNED
    NAMES             NAMES              refused              refused
    PATTERN           refused            PATTERN              refused
    ASSIGNED          refused            refused              ASSIGNED
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from ...errors import LocalProtocolError
from ..network.cluster import ClusterView
from .partitions import TopicPartition


class Mode(Enum):
    """How partitions are chosen."""

    NONE = "nothing"
    NAMES = "topics by name"
    PATTERN = "topics by pattern"
    ASSIGNED = "assigned partitions"


# fmt: off
LEGAL: Final[Mapping[Mode, frozenset[Mode]]] = {
    Mode.NONE:     frozenset(Mode),
    Mode.NAMES:    frozenset({Mode.NAMES, Mode.NONE}),
    Mode.PATTERN:  frozenset({Mode.PATTERN, Mode.NONE}),
    Mode.ASSIGNED: frozenset({Mode.ASSIGNED, Mode.NONE}),
}
"""Mode -> the modes that may follow it."""
# fmt: on


class Subscription:
    """What is wanted, and by which way.

    topics: those subscribed to; for a pattern, those of the cluster that match it.
    """

    def __init__(self) -> None:
        self.mode = Mode.NONE
        self.topics: frozenset[str] = frozenset()
        self.pattern: re.Pattern[str] | None = None
        self.assigned: frozenset[TopicPartition] = frozenset()

    @property
    def in_group(self) -> bool:
        """Whether partitions come from a group's assignment."""
        return self.mode in (Mode.NAMES, Mode.PATTERN)

    @property
    def tracked(self) -> frozenset[str] | None:
        """The topics whose metadata is needed; None is all of the cluster."""
        if self.mode is Mode.PATTERN:
            return None
        return self.topics

    def subscribe(self, wanted: Iterable[str] | re.Pattern[str]) -> None:
        """Subscribe to topics by name or by a pattern that matches the whole name."""
        if isinstance(wanted, re.Pattern):
            self._become(Mode.PATTERN)
            self.pattern, self.topics = wanted, frozenset()
            return
        if isinstance(wanted, str):
            raise LocalProtocolError(f"topics are a list of names, not the text {wanted!r}")
        topics = frozenset(wanted)
        self._become(Mode.NAMES if topics else Mode.NONE)
        self.topics = topics

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions, outside of any group's assignment."""
        assigned = frozenset(partitions)
        self._become(Mode.ASSIGNED if assigned else Mode.NONE)
        self.assigned = assigned
        self.topics = frozenset(each.topic for each in assigned)

    def unsubscribe(self) -> None:
        """Want nothing."""
        self._become(Mode.NONE)

    def match(self, view: ClusterView) -> bool:
        """Look for topics that match the pattern; say whether they are others than before.

        Kafka's own topics never match. Without a pattern nothing changes.
        """
        if self.pattern is None:
            return False
        found = frozenset(
            topic.name
            for topic in view.topics.values()
            if not topic.is_internal and not topic.error and self.pattern.fullmatch(topic.name)
        )
        changed = found != self.topics
        self.topics = found
        return changed

    def _become(self, mode: Mode) -> None:
        if mode not in LEGAL[self.mode]:
            raise LocalProtocolError(
                f"subscribed to {self.mode.value}; unsubscribe before choosing {mode.value}"
            )
        self.mode = mode
        self.topics, self.pattern, self.assigned = frozenset(), None, frozenset()

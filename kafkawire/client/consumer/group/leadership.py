"""What the leader of a group does for all: it divides the topics among the members.

Law: a division is made only of topics that are known, and made anew when they are no longer what
they were when it was made. What is no division reaches nobody but our own user.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from ....messages.api_key import ApiKey
from ..assignors.soundness import unsound
from ..components import Components
from ..failures import GroupFailed
from . import member_states
from .recovery import Recovery

Effects: TypeAlias = list[object]


class Leadership:
    """The work of a leader, in the generations in which we lead."""

    def __init__(self, parts: Components) -> None:
        self._parts = parts
        self._computing: member_states.ComputeAssignments | None = None
        self._counts: dict[str, int] | None = None

    @property
    def topics(self) -> frozenset[str]:
        """The topics whose metadata the leader needs."""
        members = () if self._computing is None else self._computing.members
        asked = {topic for member in members for topic in member.topics}
        return frozenset(asked | (self._counts or {}).keys())

    @property
    def outdated(self) -> bool:
        """Whether topics have other partitions than when we divided them."""
        return self._counts is not None and self._count(self._counts) != self._counts

    def end(self) -> None:
        """Lead no longer."""
        self._computing = self._counts = None

    def begin(self, event: member_states.ComputeAssignments) -> None:
        """Take on the division of a generation."""
        self._computing = event

    def go_on(self, now: float) -> Effects:
        """Divide the topics, once all that anybody subscribes to are known."""
        event = self._computing
        if event is None:
            return []
        topics = {topic for member in event.members for topic in member.topics}
        if not topics <= self._parts.view.topics.keys():
            return []
        self._computing = None
        self._counts = self._count(topics)
        existing = {topic: count for topic, count in self._counts.items() if count}
        try:
            made = event.assignor.assign(existing, event.members)
            divided = {member: list(partitions) for member, partitions in made.items()}
            wrong = unsound(divided, existing, event.members)
        except Exception as error:  # noqa: BLE001 - the user's own code: their poll raises it
            return self._failed(event, f"failed: {error!r}", error, now)
        if wrong is not None:
            return self._failed(event, f"made no division of the group: {wrong}", None, now)
        computed = member_states.AssignmentsComputed(event.generation_id, divided)
        return self._parts.membership.handle(computed, now)

    def _failed(
        self,
        event: member_states.ComputeAssignments,
        why: str,
        cause: Exception | None,
        now: float,
    ) -> Effects:
        """Tell the user that an assignor is at fault; the next poll tries again."""
        self._counts = None
        error = GroupFailed(f"the assignor {event.assignor.name!r} {why}")
        error.__cause__ = cause
        refused = member_states.Refused(ApiKey.SYNC_GROUP, Recovery.FATAL, error)
        return self._parts.membership.handle(refused, now)

    def _count(self, topics: Iterable[str]) -> dict[str, int]:
        known = {each: self._parts.view.topics.get(each) for each in topics}
        return {each: len(topic.partitions) if topic else 0 for each, topic in known.items()}

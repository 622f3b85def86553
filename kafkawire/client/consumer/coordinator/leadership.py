"""Computes the assignments of a group, as its leader.

Assignments are computed once the metadata of all topics is known, and again when partition
counts change. An invalid assignment is an error for the leader's own user only.
"""

from __future__ import annotations

from collections.abc import Iterable

from ....messages.api_key import ApiKey
from ..assignors.soundness import invalid_assignment
from ..components import Components, Effects
from ..failures import GroupFailed
from ..group import member_states
from ..group.recovery import Recovery


class Leadership:
    """The leader's work, in generations in which this member is the leader."""

    def __init__(self, components: Components) -> None:
        self._components = components
        self._computing: member_states.ComputeAssignments | None = None
        self._counts: dict[str, int] | None = None

    @property
    def topics(self) -> frozenset[str]:
        """The topics whose metadata the leader needs."""
        members = () if self._computing is None else self._computing.members
        subscribed = {topic for member in members for topic in member.topics}
        return frozenset(subscribed | (self._counts or {}).keys())

    @property
    def metadata_changed(self) -> bool:
        """Whether partition counts have changed since the assignment was computed."""
        return self._counts is not None and self._count(self._counts) != self._counts

    def end(self) -> None:
        """Stop being the leader."""
        self._computing = self._counts = None

    def begin(self, event: member_states.ComputeAssignments) -> None:
        """Start to compute the assignments of a generation."""
        self._computing = event

    def run(self, now: float) -> Effects:
        """Compute the assignments, once all subscribed topics are known."""
        event = self._computing
        if event is None:
            return []
        topics = {topic for member in event.members for topic in member.topics}
        if not topics <= self._components.view.topics.keys():
            return []
        self._computing = None
        self._counts = self._count(topics)
        existing = {topic: count for topic, count in self._counts.items() if count}
        try:
            assigned = event.assignor.assign(existing, event.members)
            assignments = {member: list(partitions) for member, partitions in assigned.items()}
            problem = invalid_assignment(assignments, existing, event.members)
        except Exception as error:  # noqa: BLE001 - a user's assignor: poll() raises it
            return self._failed(event, f"failed: {error!r}", error, now)
        if problem is not None:
            return self._failed(event, f"returned an invalid assignment: {problem}", None, now)
        computed = member_states.AssignmentsComputed(event.generation_id, assignments)
        return self._components.membership.handle(computed, now)

    def _failed(
        self,
        event: member_states.ComputeAssignments,
        reason: str,
        cause: Exception | None,
        now: float,
    ) -> Effects:
        """Report an assignor's failure to the user; the next poll tries again."""
        self._counts = None
        error = GroupFailed(f"the assignor {event.assignor.name!r} {reason}")
        error.__cause__ = cause
        refused = member_states.Refused(ApiKey.SYNC_GROUP, Recovery.FATAL, error)
        return self._components.membership.handle(refused, now)

    def _count(self, topics: Iterable[str]) -> dict[str, int]:
        topics_of_view = {each: self._components.view.topics.get(each) for each in topics}
        return {
            each: len(topic.partitions) if topic else 0 for each, topic in topics_of_view.items()
        }

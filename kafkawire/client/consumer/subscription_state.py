"""What the user wants to read, and what follows from that for the other parts.

Law: what cannot be is refused, and changes nothing; what is wanted now replaces what was.

    subscribe ─▶ membership           assign ─▶ positions
    unsubscribe ─▶ leave              seek, pause ─▶ positions
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from ...errors import LocalProtocolError
from ...protocol.error_code import ErrorCode
from ..requests import TrackTopics
from . import events
from .components import Components
from .failures import ConsumerError
from .group import member_states, rebalancing
from .group.assignment import Assignment
from .group.leadership import Leadership
from .offsets.commits import Commits
from .offsets.partition_state import Position
from .partitions import TopicPartition
from .subscription import Mode

Effects: TypeAlias = list[object]

UNSUBSCRIBED: Final = "the consumer unsubscribed from all topics"
CLOSING: Final = "the consumer is being closed"
SAID_ONCE: Final = frozenset(
    {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION}
)
"""Errors of a subscribed topic that the user must know."""


class SubscriptionState:
    """The wishes of one consumer's user."""

    def __init__(
        self,
        parts: Components,
        assignment: Assignment,
        commits: Commits,
        leadership: Leadership,
        owner: str,
    ) -> None:
        self._components = parts
        self._subscription = parts.subscription
        self._positions = parts.positions
        self._assignment = assignment
        self._commits = commits
        self._leadership = leadership
        self._owner = owner
        self._told: set[str] = set()
        self._tracked: frozenset[str] | None = frozenset()

    def subscribe(self, event: events.Subscribe, now: float) -> Effects:
        """Read topics, as a member of the group."""
        if self._components.config.group_id is None:
            raise LocalProtocolError("subscribing needs a group.id; without one, assign partitions")
        self._subscription.subscribe(event.wanted)
        self._told.clear()
        if self._subscription.mode is Mode.NONE:
            self._assignment.leave(UNSUBSCRIBED)
            return []
        self._assignment.has_listener = event.has_listener
        effects = self.track()
        if self._subscription.pattern is not None and not self._subscription.match(
            self._components.view
        ):
            return effects  # joins when topics are known
        reason = "the subscription is new or has changed"
        return effects + self._components.membership.handle(member_states.JoinWanted(reason), now)

    def assign(self, event: events.Assign, now: float) -> Effects:
        """Read partitions of the user's own choice."""
        self._subscription.assign(event.partitions)
        effects = self._commits.auto_commit_async(now)
        gone = [each for each in self._positions if each not in self._subscription.assigned]
        self._assignment.drop_partitions(gone)
        self._positions.add(sorted(self._subscription.assigned))
        return effects + self.track()

    def unsubscribe(self, event: events.Unsubscribe, now: float) -> Effects:
        """Read nothing."""
        self._subscription.unsubscribe()
        effects = self._commits.auto_commit_async(now) + self.track()
        self._assignment.leave(UNSUBSCRIBED)
        self._assignment.steps.add(rebalancing.CompleteCall(event.key))
        return effects

    def seek(self, event: events.Seek, _now: float) -> Effects:
        """Read a partition from an offset on."""
        self.must_have([event.partition])
        if event.offset < 0:
            raise LocalProtocolError(f"{event.partition}: offset {event.offset} is negative")
        self._positions.seek(event.partition, Position(event.offset, event.leader_epoch))
        return []

    def seek_to(self, event: events.SeekTo, _now: float) -> Effects:
        """Read partitions from where a policy says."""
        self.must_have(event.partitions)
        self._positions.reset(event.partitions, event.policy)
        return []

    def pause(self, event: events.Pause | events.Resume, _now: float) -> Effects:
        """Return nothing of partitions, or return it again."""
        self.must_have(event.partitions)
        for each in event.partitions:
            self._positions[each].paused = isinstance(event, events.Pause)
        return []

    def must_have(self, partitions: Iterable[TopicPartition]) -> None:
        """Refuse what is asked of partitions that are not assignment."""
        missing = [each for each in partitions if each not in self._positions]
        if missing:
            raise LocalProtocolError(f"not assigned: {', '.join(map(str, missing))}")

    def track(self) -> Effects:
        """Keep metadata of what is wanted; a leader needs that of all the group's topics."""
        topics = self._subscription.tracked
        if topics is not None and self._subscription.in_group:
            topics |= self._leadership.topics
        if topics == self._tracked:
            return []
        self._tracked = topics
        return [TrackTopics(self._owner, topics)]

    def refused(self) -> list[ConsumerError]:
        """Say which topics the user may not read, once for each subscription."""
        errors: list[ConsumerError] = []
        for name in self._subscription.topics - self._told:
            topic = self._components.view.topics.get(name)
            if topic is not None and topic.error in SAID_ONCE:
                self._told.add(name)
                errors.append(ConsumerError(f"topic {name!r} cannot be read", topic.error))
        return errors


W = SubscriptionState

SUBSCRIPTION_HANDLERS: Final[Mapping[type, Callable[..., Effects]]] = {
    events.Subscribe: W.subscribe,
    events.Assign: W.assign,
    events.Unsubscribe: W.unsubscribe,
    events.Seek: W.seek,
    events.SeekTo: W.seek_to,
    events.Pause: W.pause,
    events.Resume: W.pause,
}
"""What the user says -> what to do."""

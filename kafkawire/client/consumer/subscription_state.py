"""Applies the user's subscriptions, assignments, seeks and pauses to the other components.

An invalid call raises and changes nothing; a new subscription replaces the old one.

    subscribe ─▶ membership           assign ─▶ positions
    unsubscribe ─▶ leave              seek, pause ─▶ positions
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from ...errors import LocalProtocolError
from ...protocol.error_code import ErrorCode
from ..requests import TrackTopics
from . import events
from .components import Components, Effects
from .configuration import GroupProtocol
from .coordinator import rebalancing
from .coordinator.assignment import Assignment
from .coordinator.commits import Commits
from .coordinator.leadership import Leadership
from .failures import ConsumerError
from .group import member_states
from .offsets.partition_state import Position
from .partitions import SubscriptionPattern, TopicPartition
from .subscription import Mode

UNSUBSCRIBED: Final = "the consumer unsubscribed from all topics"
CLOSING: Final = "the consumer is being closed"
TOPIC_ERRORS: Final = frozenset(
    {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION}
)
"""Errors of subscribed topics that are reported to the user."""


class SubscriptionState:
    """What one consumer is subscribed to."""

    def __init__(
        self,
        components: Components,
        assignment: Assignment,
        commits: Commits,
        leadership: Leadership,
        owner: str,
    ) -> None:
        self._components = components
        self._subscription = components.subscription
        self._positions = components.positions
        self._assignment = assignment
        self._commits = commits
        self._leadership = leadership
        self._owner = owner
        self._reported: set[str] = set()
        self._tracked: frozenset[str] | None = frozenset()

    def subscribe(self, event: events.Subscribe, now: float) -> Effects:
        """Subscribe to topics, as a member of the group."""
        if self._components.config.group_id is None:
            raise LocalProtocolError(
                "subscribe() requires group.id; without one, assign partitions"
            )
        by_brokers = isinstance(event.topics, SubscriptionPattern)
        if by_brokers and self._components.config.group_protocol is not GroupProtocol.CONSUMER:
            raise LocalProtocolError("a SubscriptionPattern requires group.protocol=consumer")
        self._subscription.subscribe(event.topics)
        self._reported.clear()
        if self._subscription.mode is Mode.NONE:
            self._assignment.leave(UNSUBSCRIBED)
            return []
        self._assignment.has_listener = event.has_listener
        effects = self.track()
        if self._subscription.pattern is not None and not self._subscription.match(
            self._components.view
        ):
            return effects  # join when topics are known
        reason = "the subscription is new or has changed"
        wanted = member_states.JoinWanted(reason)
        return [*effects, *self._components.membership.handle(wanted, now)]

    def assign(self, event: events.Assign, now: float) -> Effects:
        """Assign partitions manually."""
        self._subscription.assign(event.partitions)
        effects = self._commits.auto_commit_async(now)
        removed = [each for each in self._positions if each not in self._subscription.assigned]
        self._assignment.drop_partitions(removed)
        self._positions.add(sorted(self._subscription.assigned))
        return [*effects, *self.track()]

    def unsubscribe(self, event: events.Unsubscribe, now: float) -> Effects:
        """Unsubscribe, and leave the group."""
        self._subscription.unsubscribe()
        effects = [*self._commits.auto_commit_async(now), *self.track()]
        self._assignment.leave(UNSUBSCRIBED)
        self._assignment.steps.add(rebalancing.CompleteCall(event.key))
        return effects

    def seek(self, event: events.Seek, _now: float) -> Effects:
        """Set the position of a partition."""
        self.check_assigned([event.partition])
        if event.offset < 0:
            raise LocalProtocolError(
                f"invalid offset {event.offset} of {event.partition}: must not be negative"
            )
        self._positions.seek(event.partition, Position(event.offset, event.leader_epoch))
        return []

    def seek_to(self, event: events.SeekTo, _now: float) -> Effects:
        """Reset the positions of partitions by a policy."""
        self.check_assigned(event.partitions)
        self._positions.reset(event.partitions, event.policy)
        return []

    def pause(self, event: events.Pause | events.Resume, _now: float) -> Effects:
        """Pause or resume partitions."""
        self.check_assigned(event.partitions)
        for each in event.partitions:
            self._positions[each].paused = isinstance(event, events.Pause)
        return []

    def check_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        """Raise LocalProtocolError for partitions that are not assigned."""
        missing = [each for each in partitions if each not in self._positions]
        if missing:
            raise LocalProtocolError(f"not assigned: {', '.join(map(str, missing))}")

    def track(self) -> Effects:
        """Track metadata of the subscribed topics; as a leader, of all the group's topics."""
        topics = self._subscription.tracked
        if topics is not None and self._subscription.in_group:
            topics |= self._leadership.topics
        if topics == self._tracked:
            return []
        self._tracked = topics
        return [TrackTopics(self._owner, topics)]

    def topic_errors(self) -> list[ConsumerError]:
        """Return the errors of subscribed topics, once per subscription."""
        errors: list[ConsumerError] = []
        for name in self._subscription.topics - self._reported:
            topic = self._components.view.topics.get(name)
            if topic is not None and topic.error in TOPIC_ERRORS:
                self._reported.add(name)
                errors.append(ConsumerError(f"cannot read topic {name!r}", topic.error))
        return errors


S = SubscriptionState

Handler: TypeAlias = Callable[[SubscriptionState, Any, float], Effects]

SUBSCRIPTION_HANDLERS: Final[Mapping[type[events.ConsumerEvent], Handler]] = {
    events.Subscribe: S.subscribe,
    events.Assign: S.assign,
    events.Unsubscribe: S.unsubscribe,
    events.Seek: S.seek,
    events.SeekTo: S.seek_to,
    events.Pause: S.pause,
    events.Resume: S.pause,
}
"""Event -> handler."""

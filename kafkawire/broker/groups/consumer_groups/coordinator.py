"""Coordinates the consumer groups of one partition of `__consumer_offsets`.

Invariant: the changes of a group are in the log before any response that rests on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ....primitives import Structure
from ....protocol import ErrorCode
from ...context import Context
from ...metadata_cache import MetadataCache
from ..modern_groups import ModernGroups
from ..offsets import LogRecord
from ..requests import GroupRequest, Heartbeat, Join, Joined, Leave, Response, Sync
from ..usage import Usage
from . import classic_protocol
from .assignors import ASSIGNORS
from .changes import Change
from .checks import Refusal
from .group import NO_SUBSCRIPTION, ConsumerGroup, HeartbeatResult
from .members import JOIN, ConsumerGroupState, HeartbeatRequest
from .metadata import GroupConfig, Migration
from .records import decode, encode

E = ErrorCode
MIGRATION: Final = "group.consumer.migration.policy"


class ConsumerGroups(ModernGroups[ConsumerGroup]):
    """The consumer groups by id.

    downgrade: puts a classic group in the place of a group; whether its members have to rejoin.
    """

    of_broker = "group.consumer."

    def __init__(
        self,
        context: Context,
        metadata: MetadataCache,
        usage: Usage,
        index: int,
        write: Callable[[Iterable[LogRecord], float], None],
        downgrade: Callable[[ConsumerGroup, bool, float], None],
    ) -> None:
        super().__init__(context, metadata, usage, index, write)
        self._downgrade = downgrade

    def new(self, group_id: str) -> ConsumerGroup:
        """Return a group without members, which is not among the groups yet."""
        return ConsumerGroup(group_id)

    def config(self, group_id: str) -> GroupConfig:
        """Return the settings of a group: its own, else those of the broker."""
        settings = self._context.settings
        configured = settings.items("group.consumer.assignors")
        own = self._metadata.group_configs(group_id)
        return GroupConfig(
            self.seconds(own, "session.timeout.ms"),
            self.seconds(own, "heartbeat.interval.ms"),
            self.assignment_interval(own),
            settings.number("group.consumer.max.size"),
            tuple(name for name in configured if name in ASSIGNORS) or tuple(ASSIGNORS),
            self._migration(),
            settings.number("group.max.size"),
        )

    def _migration(self) -> Migration:
        settings = self._context.settings
        if MIGRATION not in settings.keys:
            return Migration.DISABLED  # a release without it
        return Migration(settings.text(MIGRATION).lower())

    def heartbeat(
        self, request: HeartbeatRequest, now: float, upgraded: ConsumerGroup | None = None
    ) -> HeartbeatResult | Refusal:
        """Handle a heartbeat whose fields are valid; a member that joins may create its group.

        upgraded: the group that a classic group becomes if the request is not refused.
        """
        group = self._groups.get(request.group_id, upgraded)
        if group is None:
            if request.member_epoch != JOIN:
                message = f"Consumer group {request.group_id} not found."
                return Refusal(E.GROUP_ID_NOT_FOUND, message)
            if not self._usage.admits_group():
                return Refusal(E.POLICY_VIOLATION, "Too many groups.")
            group = ConsumerGroup(request.group_id)
        group.config = self.config(group.group_id)
        if not self._admits(group, request):
            return Refusal(E.GROUP_MAX_SIZE_REACHED, "Too many members, or too large ones.")
        result = group.handle(request, self.topics, now, self._context.wall_ms(now))
        if not isinstance(result, Refusal):
            self._groups[request.group_id] = group
            self._settle(group, now)
        return result

    def handle_classic(self, group: ConsumerGroup, request: GroupRequest, now: float) -> Response:
        """Handle a request of a member that uses the classic protocol."""
        group.config = self.config(group.group_id)
        response = self._response(group, request, now)
        # it may have taken the place of the last member of the consumer protocol
        rejoins = not isinstance(request, Join) or group.state is not ConsumerGroupState.STABLE
        self._settle(group, now, rejoins)
        return response

    def _response(self, group: ConsumerGroup, request: GroupRequest, now: float) -> Response:
        match request:
            case Join() if not self._admits_join(group, request):
                return Joined(request.reply_to, E.GROUP_MAX_SIZE_REACHED)
            case Join():
                wall_ms = self._context.wall_ms(now)
                return classic_protocol.join(
                    group, request, self.topics, self._new_member_id, now, wall_ms
                )
            case Sync():
                return classic_protocol.sync(group, request, self.topics, now)
            case Heartbeat():
                return classic_protocol.heartbeat(group, request, now)
            case Leave():
                return classic_protocol.leave(group, request, self.topics)

    def _new_member_id(self) -> str:
        return self._context.new_uuid().hex()

    def _admits(self, group: ConsumerGroup, request: HeartbeatRequest) -> bool:
        subscription = group.subscriptions.get(request.member_id)
        before = subscription or NO_SUBSCRIPTION
        size = before.updated(request).size - (0 if subscription is None else before.size)
        return self._usage.admits_members(subscription is None, size)

    def _admits_join(self, group: ConsumerGroup, request: Join) -> bool:
        subscription = group.subscriptions.get(request.member_id)
        size = sum(len(name) + len(metadata) for name, metadata in request.protocols)
        return self._usage.admits_members(
            subscription is None, size - (0 if subscription is None else subscription.size)
        )

    def due(self, group_id: str, now: float) -> None:
        """Handle the expired deadlines of a group, if it is one of these."""
        group = self._groups.get(group_id)
        if group is not None:
            group.advance(self.topics, now)
            self._settle(group, now)

    def _settle(self, group: ConsumerGroup, now: float, rejoins: bool = True) -> None:
        """Log the changes of a group, and change its type if no member needs this one.

        rejoins: whether the members have to rejoin then.
        """
        if not group.downgrades:
            self.log(group, now)
            return
        self.remove(group)
        self._downgrade(group, rejoins, now)

    def records(self, group: ConsumerGroup) -> list[LogRecord]:
        """Return the changes of a group that are not yet logged, as records."""
        changes, group.changes = group.changes, []
        return [record for each in changes for record in encode(group.group_id, each)]

    def decode(self, key: Structure, value: Structure | None) -> tuple[str, Change] | None:
        """Decode a record: the id of the group and the change; None for one of another type."""
        return decode(key, value)

    def is_deleted(self, group: ConsumerGroup) -> bool:
        """Whether the records of a group end with its deletion."""
        return not group.assignment_epoch and not group.subscriptions

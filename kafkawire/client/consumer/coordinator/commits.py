"""Starts commits: of the user, every auto.commit.interval.ms, and before revocations.

Auto-commit commits only offsets of consumed records, and only if they have changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ....errors import LocalProtocolError
from ....protocol.error_code import ErrorCode
from .. import events
from ..components import Components, Effects
from ..failures import CommitFailed
from ..group.requests import Identity
from ..offsets import committing
from ..partitions import OffsetAndMetadata, TopicPartition

USER: Final = "user"
AUTO: Final = "auto"
STEP: Final = "step"
"""The origin of a commit or lookup, in its key."""


class Commits:
    """The commits of one consumer. due_at: when the next auto-commit is due."""

    def __init__(self, components: Components) -> None:
        self._components = components
        self._last: dict[TopicPartition, OffsetAndMetadata] = {}
        self.due_at = 0.0

    def commit(self, event: events.Commit, now: float) -> Effects:
        """Commit for the user."""
        if self._components.config.group_id is None:
            raise LocalProtocolError("committing needs a group.id")
        offsets = self._components.positions.consumed() if event.offsets is None else event.offsets
        if self._components.subscription.in_group and not self._components.membership.in_group:
            reason = "not a member of the group; the partitions may be assigned to another member"
            code = ErrorCode.UNKNOWN_MEMBER_ID
            return [events.Done(event.key, CommitFailed(reason, code, offsets))]
        key = USER, event.key
        deadline = now + event.timeout_s
        return self._commit(key, offsets, event.kind, deadline, now)

    def _commit(
        self,
        key: tuple[str, object],
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        kind: committing.CommitKind,
        deadline: float,
        now: float,
        *,
        follows_epoch: bool = False,
    ) -> Effects:
        me = (
            self._components.membership.identity
            if self._components.membership.in_group
            else Identity()
        )
        event = committing.CommitOffsets(key, offsets, me, kind, deadline, follows_epoch)
        return self._components.committing.handle(event, now)

    @property
    def auto_commit(self) -> bool:
        """Whether consumed offsets are committed automatically."""
        return (
            self._components.config.enable_auto_commit
            and self._components.config.group_id is not None
        )

    def auto_commit_if_due(self, now: float) -> Effects:
        """Commit consumed offsets if the interval is over and the member is stable."""
        if now < self.due_at:
            return []
        self.due_at = now + self._components.config.auto_commit_interval_s
        joining = (
            self._components.subscription.in_group and not self._components.membership.auto_commits
        )
        return [] if joining else self.auto_commit_async(now)

    def auto_commit_async(self, now: float) -> Effects:
        """Commit consumed offsets that have changed, without waiting for the result."""
        if not self.auto_commit:
            return []
        offsets = self._uncommitted()
        if not offsets:
            return []
        return self._commit((AUTO, None), offsets, committing.CommitKind.AUTO, now, now)

    def _uncommitted(self) -> dict[TopicPartition, OffsetAndMetadata]:
        consumed = self._components.positions.consumed()
        return {each: at for each, at in consumed.items() if self._last.get(each) != at}

    def commit_sync(
        self, serial: int, close_deadline: float | None, now: float
    ) -> tuple[bool, Effects]:
        """Commit consumed offsets before a revocation; returns whether to wait for a result."""
        offsets = self._uncommitted() if self.auto_commit else {}
        in_group = self._components.subscription.in_group
        if not offsets or (in_group and not self._components.membership.in_group):
            return False, []
        deadline = now + self._components.config.default_api_timeout_s
        if close_deadline is not None:
            deadline = min(deadline, close_deadline)
        kind = committing.CommitKind.SYNC
        key = STEP, serial
        return True, self._commit(key, offsets, kind, deadline, now, follows_epoch=True)

    def on_committed(self, event: committing.Committed) -> Effects:
        """Remember the committed offsets, and report them."""
        if event.error is not None:
            return []
        self._last |= event.commit.offsets
        return [events.OffsetsCommitted(event.commit.offsets)]

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget the committed offsets of partitions that are no longer assigned."""
        for each in partitions:
            self._last.pop(each, None)

"""What is committed, and when: for the user, every interval, and before partitions are given up.

Law: nothing is committed by itself but what was read, and that only if it is news.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from ....errors import LocalProtocolError
from ....protocol.error_code import ErrorCode
from .. import events
from ..components import Components
from ..failures import CommitFailed
from ..group.member_states import MemberState
from ..group.requests import Identity
from ..partitions import OffsetAndMetadata, TopicPartition
from . import committing

Effects: TypeAlias = list[object]

USER: Final = "user"
AUTO: Final = "auto"
STEP: Final = "step"
"""Who asked, in the keys of commits and questions."""


class Commits:
    """The commits of one consumer; due_at: when the next one by itself is."""

    def __init__(self, parts: Components) -> None:
        self._parts = parts
        self._last: dict[TopicPartition, OffsetAndMetadata] = {}
        self.due_at = 0.0

    def commit(self, event: events.Commit, now: float) -> Effects:
        """Commit for the user."""
        if self._parts.config.group_id is None:
            raise LocalProtocolError("committing needs a group.id")
        offsets = self._parts.positions.consumed() if event.offsets is None else event.offsets
        if self._parts.subscription.in_group and not self._parts.membership.in_group:
            why = "we are not in the group; our partitions may be somebody else's"
            code = ErrorCode.UNKNOWN_MEMBER_ID
            return [events.Done(event.key, CommitFailed(why, code, offsets))]
        key = USER, event.key
        deadline = now + event.timeout_s
        return self._ask_commit(key, offsets, event.kind, deadline, now)

    def _ask_commit(
        self,
        key: tuple[str, object],
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        kind: committing.CommitKind,
        deadline: float,
        now: float,
    ) -> Effects:
        me = self._parts.membership.identity if self._parts.membership.in_group else Identity()
        event = committing.CommitOffsets(key, offsets, me, kind, deadline)
        return self._parts.committing.handle(event, now)

    @property
    def by_itself(self) -> bool:
        """Whether what is read is committed without being asked."""
        return self._parts.config.enable_auto_commit and self._parts.config.group_id is not None

    def if_due(self, now: float) -> Effects:
        """Commit what was read, every so often, while that can be."""
        if now < self.due_at:
            return []
        self.due_at = now + self._parts.config.auto_commit_interval_s
        joining = (
            self._parts.subscription.in_group
            and self._parts.membership.state is not MemberState.STABLE
        )
        return [] if joining else self.at_once(now)

    def at_once(self, now: float) -> Effects:
        """Commit what was read since the last time, without waiting for it."""
        if not self.by_itself:
            return []
        offsets = self._unsaid()
        if not offsets:
            return []
        return self._ask_commit((AUTO, None), offsets, committing.CommitKind.AUTO, now, now)

    def _unsaid(self) -> dict[TopicPartition, OffsetAndMetadata]:
        read = self._parts.positions.consumed()
        return {each: at for each, at in read.items() if self._last.get(each) != at}

    def for_step(self, serial: int, close_by: float | None, now: float) -> tuple[bool, Effects]:
        """Commit what was read before it is given up; say whether there is a result to wait for."""
        offsets = self._unsaid() if self.by_itself else {}
        in_group = self._parts.subscription.in_group
        if not offsets or (in_group and not self._parts.membership.in_group):
            return False, []
        deadline = now + self._parts.config.default_api_timeout_s
        if close_by is not None:
            deadline = min(deadline, close_by)
        kind = committing.CommitKind.SYNC
        return True, self._ask_commit((STEP, serial), offsets, kind, deadline, now)

    def told(self, event: committing.Committed) -> None:
        """Remember what is committed."""
        if event.error is None:
            self._last |= event.commit.offsets

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget what was committed of partitions that are no longer ours."""
        for each in partitions:
            self._last.pop(each, None)

"""What the user asks about offsets, and the answers: those of others never leave the machine.

Law: each question has one answer, under the key it was asked with.
"""

from __future__ import annotations

from typing import TypeAlias

from ....errors import LocalProtocolError
from .. import events
from ..components import Components
from ..partitions import OffsetAndTimestamp
from . import committed
from . import leader_requests as leaders
from .commits import USER

Effects: TypeAlias = list[object]


class OffsetQueries:
    """The open questions of one consumer's user."""

    def __init__(self, parts: Components) -> None:
        self._parts = parts
        self._positions: dict[object, events.GetPosition] = {}

    def ask_committed(self, event: events.GetCommitted, now: float) -> Effects:
        """Ask what the group has committed."""
        if self._parts.config.group_id is None:
            raise LocalProtocolError("committed offsets need a group.id")
        key, deadline = (USER, event.key), now + event.timeout_s
        return [committed.FetchCommitted(key, event.partitions, deadline)]

    def ask_offsets(self, event: events.GetOffsets, now: float) -> Effects:
        """Ask for offsets by time."""
        key, deadline = (USER, event.key), now + event.timeout_s
        return [leaders.RequestFromLeaders(key, self._parts.offsets, event.times, deadline)]

    def ask_position(self, event: events.GetPosition) -> None:
        """Ask where a partition is read next."""
        self._positions[event.key] = event

    def withdraw(self, event: events.Withdraw) -> None:
        """Forget a question."""
        self._positions.pop(event.key, None)

    def answered(self) -> Effects:
        """Answer those who asked for positions that are known now, or never will be."""
        effects: Effects = []
        for key, asked in list(self._positions.items()):
            at = self._parts.positions.position(asked.partition)
            if at is not None or asked.partition not in self._parts.positions:
                del self._positions[key]
                effects.append(events.PositionFound(key, None if at is None else at.offset))
        return effects

    def committed_fetched(self, event: committed.CommittedFetched) -> Effects:
        """Take what the group has committed to who asked."""
        assert isinstance(event.key, tuple)
        if event.key[0] == USER:
            return [events.CommittedFound(event.key[1], event.found, event.error)]
        return self._parts.positions.handle(event)

    def leaders_answered(self, event: leaders.LeadersResponded) -> Effects:
        """Take what leaders said to who asked."""
        assert isinstance(event.key, tuple)
        if event.key[0] == USER:
            found = {each: _offset(answer) for each, answer in event.found.items()}
            return [events.OffsetsFound(event.key[1], found, event.failed)]
        return self._parts.positions.handle(event)


def _offset(answer: leaders.Answer) -> OffsetAndTimestamp | None:
    assert answer is None or isinstance(answer, OffsetAndTimestamp)
    return answer

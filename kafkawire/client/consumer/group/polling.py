"""Watches the polls of a member's user, and the other deadlines of a member.

Max.poll.interval.ms runs while the user is not in a poll; a deadline that is due is an event.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

from ..configuration import ConsumerConfig
from .member_states import Busy, Polled, PollExpired

Effects: TypeAlias = list[Any]
"""The effects of the member, whatever its protocol."""


class PolledMember(ABC):
    """What the members of both protocols have. polling: whether the user is in a poll."""

    def __init__(self, config: ConsumerConfig) -> None:
        self.config = config
        self.polling = False
        self._deadlines: dict[type[Any], float] = {}

    @abstractmethod
    def handle(self, event: Any, now: float) -> Effects:
        """Handle an event of the member."""

    def next_deadline(self) -> float | None:
        return min(self._deadlines.values(), default=None)

    def advance(self, now: float) -> Effects:
        effects: Effects = []
        for due, at in sorted(self._deadlines.items(), key=lambda item: item[1]):
            if at <= now and self._deadlines.get(due) == at:
                del self._deadlines[due]
                effects += self.handle(due(), now)
        return effects

    def _clear_deadlines(self, *deadlines: type[Any]) -> None:
        for each in deadlines:
            self._deadlines.pop(each, None)

    def _poll_started(self, _event: Polled, _now: float) -> Effects:
        self.polling = True
        self._clear_deadlines(PollExpired)
        return []

    def _poll_ended(self, _event: Busy, _now: float) -> Effects:
        self.polling = False
        return []

    def _start_poll_timer(self, _event: Busy, now: float) -> Effects:
        if self.polling:
            self._deadlines[PollExpired] = now + self.config.max_poll_interval_s
        self.polling = False
        return []

"""Watches the polls of a member's user, and the other deadlines of a member.

Max.poll.interval.ms runs while the user is not in a poll; a deadline that is due is an event.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from .member_states import Busy, Polled, PollExpired

Effects: TypeAlias = list[Any]
"""The effects of the member, whatever its protocol."""

StateT = TypeVar("StateT", bound=Enum)
HandlerT = TypeVar("HandlerT")


class PolledConfig(Protocol):
    """The configuration of a client that is polled."""

    @property
    def max_poll_interval_s(self) -> float:
        """The time between two polls at most."""
        ...


ConfigT = TypeVar("ConfigT", bound=PolledConfig)


class PolledMember(ABC, Generic[ConfigT]):
    """What the members of all protocols have. polling: whether the user is in a poll."""

    def __init__(self, config: ConfigT) -> None:
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

    def _ignore(self, _event: Any, _now: float) -> Effects:
        return []


class Rows(Generic[StateT, HandlerT]):
    """Makes rows of a table of handlers, by event and state. ignore: that of all other states."""

    def __init__(self, states: type[StateT], ignore: HandlerT) -> None:
        self._states = states
        self._ignore = ignore

    def __call__(self, *handlers: tuple[HandlerT, tuple[StateT, ...]]) -> Mapping[StateT, HandlerT]:
        """Return a row: each of these handlers in its states."""
        handler_of = {state: handler for handler, states in handlers for state in states}
        return {state: handler_of.get(state, self._ignore) for state in self._states}

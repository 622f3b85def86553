"""The state of each subject of a rule, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Final, Generic, TypeVar

from .finding import OTHERS, Subject

MAX_SUBJECTS: Final = 10_000
"""Subjects of a rule that are counted apart."""

T = TypeVar("T")


class Subjects(Generic[T]):
    """The state of each subject; that of subjects beyond `MAX_SUBJECTS` is the one of OTHERS."""

    def __init__(self, create: Callable[[], T]) -> None:
        self._create = create
        self._states: dict[Subject, T] = {}
        self._by_key: dict[Hashable, T] = {}

    def of(self, subject: Subject) -> T:
        """Return the state of a subject."""
        state = self._states.get(subject)
        if state is None:
            if len(self._states) >= MAX_SUBJECTS and subject != OTHERS:
                return self.of(OTHERS)
            state = self._states[subject] = self._create()
        return state

    def of_key(self, key: Hashable, subject: Callable[[], Subject]) -> T:
        """Return the state of a subject by a key, which is looked up faster."""
        state = self._by_key.get(key)
        if state is None:
            state = self.of(subject())
            if len(self._by_key) < MAX_SUBJECTS:
                self._by_key[key] = state
        return state

    def __iter__(self) -> Iterator[tuple[Subject, T]]:
        return iter(self._states.items())

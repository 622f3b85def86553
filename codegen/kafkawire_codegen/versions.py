"""Version ranges of the schema dialect, and their algebra.

A `Versions` is one contiguous run of API versions or empty; an operation whose result would
have a gap raises ValueError.

    "none"  ""      no version
    "3"             3 alone
    "0-2"           0, 1 and 2
    "5+"            5 and every later one
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_TEXT: Final = re.compile(r"(?P<low>[0-9]{1,5})(?:-(?P<high>[0-9]{1,5})|(?P<plus>\+))?\Z")

NEWEST: Final = 32767
"""The value of an open end: API versions are int16."""


@dataclass(frozen=True, slots=True)
class Versions:
    """A run of versions, both ends included; empty when `low > high`."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Read `none`, `N`, `N-M` or `N+`; ValueError for anything else."""
        if text in ("none", ""):
            return NONE
        match = _TEXT.match(text.strip())
        if match is None:
            raise ValueError(f"{text!r} is not a version range: none, N, N-M or N+")
        low = int(match["low"])
        high = NEWEST if match["plus"] else int(match["high"] or low)
        if low > high:
            raise ValueError(f"{text!r} is not a version range: {low} is higher than {high}")
        if high > NEWEST:
            raise ValueError(f"{text!r} is out of range: the highest version is {NEWEST}")
        return cls(low, high)

    def __str__(self) -> str:
        if not self:
            return "none"
        if self.high == NEWEST:
            return f"{self.low}+"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"

    def __bool__(self) -> bool:
        return self.low <= self.high

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.low <= version <= self.high

    def __len__(self) -> int:
        return max(0, self.high - self.low + 1)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.low, self.high + 1))

    @property
    def open_ended(self) -> bool:
        """Whether every later version is in it too."""
        return bool(self) and self.high == NEWEST

    @property
    def edges(self) -> tuple[int, ...]:
        """The first version, and the first one after; none where it is empty."""
        return (self.low, self.high + 1) if self else ()

    def open_from(self, newest: int) -> Versions:
        """The same run; an end at the newest version of a message is an open one."""
        is_open = self.high >= newest and self.low < newest
        return Versions(self.low, NEWEST) if is_open else self

    def covers(self, other: Versions) -> bool:
        """Whether every version of `other` is in this one."""
        return not other or (self.low <= other.low and other.high <= self.high)

    def __and__(self, other: Versions) -> Versions:
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Versions(low, high) if low <= high else NONE

    def intersection(self, other: Versions) -> Versions:
        """The versions of both, for templates, which have no operator `&`."""
        return self & other

    def __or__(self, other: Versions) -> Versions:
        """The run of both; ValueError if there is a gap between them."""
        if not self or not other:
            return self or other
        if max(self.low, other.low) > min(self.high, other.high) + 1:
            raise ValueError(f"{self} and {other} have a gap between them")
        return Versions(min(self.low, other.low), max(self.high, other.high))

    def hull(self, other: Versions) -> Versions:
        """The smallest run that covers both."""
        if not self or not other:
            return self or other
        return Versions(min(self.low, other.low), max(self.high, other.high))

    def __sub__(self, other: Versions) -> Versions:
        """The difference; ValueError if `other` would split it."""
        runs = self.without(other)
        if len(runs) > 1:
            raise ValueError(f"{other} splits {self}")
        return runs[0] if runs else NONE

    def without(self, other: Versions) -> tuple[Versions, ...]:
        """The remaining runs: none, one, or the two around `other`."""
        common = self & other
        if not common:
            return (self,) if self else ()
        around = Versions(self.low, common.low - 1), Versions(common.high + 1, self.high)
        return tuple(run for run in around if run)


NONE: Final = Versions(0, -1)
ALL: Final = Versions(0, NEWEST)


@dataclass(frozen=True, slots=True)
class VersionCondition:
    """Whether a version is among those wanted, where only some are possible.

    Rendered, it is the shortest Python test of a variable `version`; "True" or "False" if none is
    needed.
    """

    wanted: Versions
    possible: Versions

    @property
    def always(self) -> bool:
        """Whether every possible version is wanted."""
        return self.possible == self.wanted & self.possible

    @property
    def depends(self) -> bool:
        """Whether some possible versions are wanted and others are not."""
        return bool(self.wanted & self.possible) and not self.always

    @property
    def at_least(self) -> int | None:
        """The lowest wanted version, if lower ones are possible; else None."""
        wanted = self.wanted & self.possible
        return wanted.low if wanted and wanted.low > self.possible.low else None

    @property
    def at_most(self) -> int | None:
        """The highest wanted version, if higher ones are possible; else None."""
        wanted = self.wanted & self.possible
        return wanted.high if wanted and wanted.high < self.possible.high else None

    def __str__(self) -> str:
        if not self.depends:
            return str(self.always)
        wanted, possible = self.wanted & self.possible, self.possible
        if wanted.high == possible.high:
            return f"version >= {wanted.low}"
        if wanted.low == possible.low:
            return f"version <= {wanted.high}"
        if wanted.low == wanted.high:
            return f"version == {wanted.low}"
        return f"{wanted.low} <= version <= {wanted.high}"

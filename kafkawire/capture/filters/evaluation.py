"""Applies a filter to anything whose fields can be looked up.

A comparison holds if it does for one of the field's values; without values it does not hold,
and its negation does. While values may still be missing (the response has not been captured yet),
the result is None, unless the values that are known decide it; so the order of parts does not
matter, and cheap ones are tested first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from ...protocol.packages import OURS
from .fields import Field
from .parser import parse_tree
from .tree import Comparison, Expression, Not, Or


class Values(NamedTuple):
    """The values of a field. complete: whether no more can become known."""

    found: Iterable[Any]
    complete: bool = True


Lookup: TypeAlias = Callable[[str], Values]
"""Returns the values of a field, by its name."""

Predicate: TypeAlias = Callable[[Lookup], bool | None]


class Filter:
    """A parsed filter.

    text: as given. package: the import name of the messages' package. fields: the fields that it
    compares. is_relative: whether it has times relative to the first packet.
    """

    def __init__(self, text: str, tree: Expression, package: str = OURS) -> None:
        self.text = text
        self.package = package
        self.tree = tree
        self.comparisons: Final = list(_comparisons(tree))
        self.fields: Final = frozenset(one.field for one in self.comparisons)
        self.is_relative: Final = any(one.test.is_relative for one in self.comparisons)
        self._first_ns: int | None = None
        self._predicate = _compiled(tree, None)

    def __reduce__(self) -> tuple[Any, ...]:
        return parse, (self.text, self.package)

    def matches(self, lookup: Lookup, first_ns: int | None = None) -> bool | None:
        """Return whether the fields match; None if values that decide it are not known yet.

        first_ns: time of the first packet, for relative times.
        """
        if self.is_relative and first_ns != self._first_ns:
            self._first_ns = first_ns
            self._predicate = _compiled(self.tree, first_ns)
        return self._predicate(lookup)

    def __str__(self) -> str:
        return self.text


@lru_cache(maxsize=64)
def parse(text: str, package: str = OURS) -> Filter:
    """Parse a filter. Raises FilterError, which has the place and the reason."""
    return Filter(text, parse_tree(text, package), package)


def _comparisons(tree: Expression) -> Iterator[Comparison]:
    if isinstance(tree, Comparison):
        yield tree
    elif isinstance(tree, Not):
        yield from _comparisons(tree.inner)
    else:
        for part in tree.parts:
            yield from _comparisons(part)


def _cost(tree: Expression) -> int:
    return max(2 * one.field.of_body + one.field.of_exchange for one in _comparisons(tree))


def _compiled(tree: Expression, first_ns: int | None) -> Predicate:
    if isinstance(tree, Comparison):
        return _comparison(tree.field, tree.test.compiled(first_ns))
    if isinstance(tree, Not):
        return _negation(_compiled(tree.inner, first_ns))
    parts = [_compiled(part, first_ns) for part in sorted(tree.parts, key=_cost)]
    return _decided_by(parts, isinstance(tree, Or))


def _comparison(field: Field, test: Callable[[Any], bool]) -> Predicate:
    name = field.name

    def holds(lookup: Lookup) -> bool | None:
        values, complete = lookup(name)
        for value in values:
            if test(value):
                return True
        return False if complete else None

    return holds


def _negation(inner: Predicate) -> Predicate:
    def holds(lookup: Lookup) -> bool | None:
        result = inner(lookup)
        return None if result is None else not result

    return holds


def _decided_by(parts: list[Predicate], value: bool) -> Predicate:
    """Return `value` if one part has it; its opposite if all parts have that."""

    def holds(lookup: Lookup) -> bool | None:
        result: bool | None = not value
        for part in parts:
            outcome = part(lookup)
            if outcome is value:
                return value
            if outcome is None:
                result = None
        return result

    return holds

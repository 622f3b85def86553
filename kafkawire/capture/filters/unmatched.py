"""Says what may be meant by a filter that nothing matches: names that there are, the nearest one.

Values are kept as the filter looks them up, and only until something matches, so that they cost
nothing then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, TypeAlias

from .evaluation import Filter, Values
from .fields import Type
from .tree import Comparison, Expression, Not
from .values import EQUAL, GLOB, WHAT, suggestion

SUGGESTED: Final = frozenset({"api", "client", "error", "group", "topic"})
"""Fields whose values are names that a user may misspell."""
MOST_VALUES: Final = 1000
"""Values of a field that are kept."""
MOST_SHOWN: Final = 5
Compared: TypeAlias = dict[str, dict[str, None]]
"""Field -> its values, in the order in which they were compared."""
_TOPIC_ID: Final = re.compile(r"[A-Za-z0-9_-]{22}")


class Unmatched:
    """The values of fields that a filter has looked up, until it matches one of the messages.

    matched: whether it has. compared: the values; a process that reads a capture for another
    returns its own.
    """

    def __init__(self, where: Filter) -> None:
        self._comparisons = [one for one in _positive(where.tree) if one.field.name in SUGGESTED]
        self.compared: Compared = {one.field.name: {} for one in self._comparisons}
        self.matched = False

    def add(self, field: str, values: Values) -> Values:
        """Keep the values of a field, and return them."""
        kept = self.compared.get(field)
        if kept is not None and len(kept) < MOST_VALUES:
            kept.update(dict.fromkeys(values.found))
        return values

    def merge(self, compared: Compared) -> None:
        """Add the values of another process."""
        for field, values in compared.items():
            self.compared[field].update(values)

    def hint(self) -> str:
        """Return `: no topic 'clikcs' among clicks, orders; did you mean clicks?`, or ""."""
        for comparison in self._comparisons:
            names = self._names(comparison)
            test = comparison.test.compiled(None)
            if names and not any(map(test, names)):
                return _hint(comparison, names)
        return ""

    def _names(self, comparison: Comparison) -> dict[str, str]:
        """Return the values of a field, as they are compared -> as they are shown."""
        field, values = comparison.field, self.compared[comparison.field.name]
        if field.type is Type.NAME:
            shown = {name.lower(): name for name in field.names()}
            return {value: shown[value] for value in values if value in shown}
        named = [value for value in values if field.name != "topic" or not _is_topic_id(value)]
        return {value: value for value in named or values}


def _is_topic_id(text: str) -> bool:
    return _TOPIC_ID.fullmatch(text) is not None


def _positive(tree: Expression) -> Iterator[Comparison]:
    """Yield the comparisons of names that are not negated."""
    if isinstance(tree, Comparison):
        if tree.test.operator in (EQUAL, GLOB):
            yield tree
    elif not isinstance(tree, Not):
        for part in tree.parts:
            yield from _positive(part)


def _hint(comparison: Comparison, names: dict[str, str]) -> str:
    field, test = comparison.field, comparison.test
    usual = {name.lower(): name for name in field.names()}
    wanted = [usual.get(str(value), str(value)) for value in test.values]
    what = WHAT.get(field.name, field.name)
    shown = list(names.values())
    more = f", +{len(shown) - MOST_SHOWN:,}" if len(shown) > MOST_SHOWN else ""
    by_lower_case = {name.lower(): name for name in shown}
    near = next(filter(None, (suggestion(text, by_lower_case) for text in wanted)), "")
    verb = "matches " if test.operator == GLOB else ""
    which = " or ".join(map(repr, wanted))
    return f": no {what} {verb}{which} among {', '.join(shown[:MOST_SHOWN])}{more}{near}"

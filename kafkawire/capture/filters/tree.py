"""The tree of a filter expression.

`!=`, `!~` and `not in` are Not of `==`, `~` and `in`, so a negation has one meaning.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from .fields import Field
from .values import Test


class Comparison(NamedTuple):
    """A field is compared: it holds if the test does for one of the field's values.

    at: where it is in the expression.
    """

    field: Field
    test: Test
    at: int


class Not(NamedTuple):
    """The negation of an expression."""

    inner: Expression


class And(NamedTuple):
    """Every part holds."""

    parts: tuple[Expression, ...]


class Or(NamedTuple):
    """One of the parts holds."""

    parts: tuple[Expression, ...]


Expression: TypeAlias = Comparison | Not | And | Or

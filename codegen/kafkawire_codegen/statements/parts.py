"""The parts of generated Python: conditions, expressions and statements that render themselves.

The output is formatted; no formatter runs over it. What is too long for a line breaks between
its parts.

    If(AnyOf(("a is None", "a != 0")), [Line("pass")])     if (a is None or a != 0):
                                                               pass
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from ..versions import VersionCondition

INDENT: Final = "    "
LINE: Final = 100
QUOTES: Final = '"' * 3


class Statement(Protocol):
    """One statement, with those inside it."""

    def lines(self, indent: str) -> list[str]:
        """Render the statement at an indentation."""
        ...


def rendered(statements: Iterable[Statement], indent: str) -> list[str]:
    """Render statements one after the other."""
    return [line for statement in statements for line in statement.lines(indent)]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A condition that holds if one of its operands does."""

    operands: tuple[str, ...]

    def __str__(self) -> str:
        return f"({' or '.join(self.operands)})"


@dataclass(frozen=True, slots=True)
class Choice:
    """An expression with two values: `yes if test else no`."""

    yes: str
    test: str
    no: str

    def __str__(self) -> str:
        return f"{self.yes} if {self.test} else {self.no}"


@dataclass(frozen=True, slots=True)
class Items:
    """A list that is made item by item: `[item for _ in slots]`."""

    item: str
    slots: str

    def __str__(self) -> str:
        return f"[{self.item} for _ in {self.slots}]"


Condition = AnyOf | VersionCondition | str
Expression = Choice | Items | str


@dataclass(frozen=True, slots=True)
class Line:
    """A statement on one line, however long."""

    text: str

    def lines(self, indent: str) -> list[str]:
        return [indent + self.text]


@dataclass(frozen=True, slots=True)
class Call:
    """`function(arguments)`, or `raise` with one."""

    function: str
    arguments: str

    def lines(self, indent: str) -> list[str]:
        whole = f"{indent}{self.function}({self.arguments})"
        if len(whole) <= LINE:
            return [whole]
        return [f"{indent}{self.function}(", f"{indent}{INDENT}{self.arguments}", f"{indent})"]


@dataclass(frozen=True, slots=True)
class Assign:
    """`target = value`, where the target may have an annotation."""

    target: str
    value: Expression
    comment: str = ""

    def lines(self, indent: str) -> list[str]:
        whole = f"{indent}{self.target} = {self.value}{self.comment}"
        if len(whole) <= LINE:
            return [whole]
        opening, closing = "[]" if isinstance(self.value, Items) else "()"
        inner = self.broken(f"{indent}{INDENT}")
        return [f"{indent}{self.target} = {opening}", *inner, f"{indent}{closing}{self.comment}"]

    def broken(self, indent: str) -> list[str]:
        """Put the value on a line of its own, or on one for each part."""
        match self.value:
            case Choice(yes, test, no):
                parts = [yes, f"if {test}", f"else {no}"]
            case Items(item, slots):
                parts = [item, f"for _ in {slots}"]
            case text:
                parts = [text]
        whole = indent + " ".join(parts)
        return [whole] if len(whole) <= LINE else [indent + part for part in parts]


@dataclass(frozen=True, slots=True)
class Block:
    """A line that ends with a colon, and the statements below it."""

    head: str
    body: Sequence[Statement]

    def lines(self, indent: str) -> list[str]:
        return [f"{indent}{self.head}:", *rendered(self.body, indent + INDENT)]


@dataclass(frozen=True, slots=True)
class If:
    """`if test:`, or `elif`, and the statements below it."""

    test: Condition
    body: Sequence[Statement]
    comment: str = ""
    word: str = "if"

    def lines(self, indent: str) -> list[str]:
        return [*self.head(indent), *rendered(self.body, indent + INDENT)]

    def head(self, indent: str) -> list[str]:
        whole = f"{indent}{self.word} {self.test}:{self.comment}"
        if len(whole) <= LINE:
            return [whole]
        operands = self.test.operands if isinstance(self.test, AnyOf) else (str(self.test),)
        parts = [operands[0], *(f"or {operand}" for operand in operands[1:])]
        inner = [f"{indent}{INDENT}{part}" for part in parts]
        return [f"{indent}{self.word} (", *inner, f"{indent}):{self.comment}"]


def otherwise(body: Sequence[Statement]) -> Block:
    """Make the `else:` of the `if` before it."""
    return Block("else", body)

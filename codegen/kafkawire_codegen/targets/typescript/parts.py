"""The parts of generated TypeScript: blocks and choices as lines, indented where they stand.

A test of a choice is an expression; `true` and `false` choose here, and no choice is generated.

    block("if (n < 0)", ["x = null;"])     "if (n < 0) {", "  x = null;", "}"
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .text import INDENT, WIDTH

Lines = list[str]
ROOM: Final = WIDTH - 4 * len(INDENT)
"""Characters of a line at its usual depth."""


def indented(lines: Sequence[str]) -> Lines:
    """Indent lines that are not empty."""
    return [line and INDENT + line for line in lines]


def block(head: str, body: Sequence[str]) -> Lines:
    """Write statements in braces, after their head."""
    return [f"{head} {{", *indented(body), "}"]


def if_else(test: str, yes: Sequence[str], no: Sequence[str] = ()) -> Lines:
    """Write a choice of statements; its test is `true` or `false` where there is none."""
    if test == "true":
        return list(yes)
    if test == "false":
        return list(no)
    if not no:
        return block(f"if ({test})", yes)
    first = f"if ({test}) {{"
    if _is_one_choice(no):
        return [first, *indented(yes), f"}} else {no[0]}", *no[1:]]
    return [first, *indented(yes), "} else {", *indented(no), "}"]


def _is_one_choice(lines: Sequence[str]) -> bool:
    """Whether statements are a single `if`."""
    inner = all(line.startswith((INDENT, "} else")) for line in lines[1:-1])
    return lines[0].startswith("if (") and inner and lines[-1] == "}"


def choice(test: str, yes: str, no: str) -> str:
    """Write a choice of expressions, with the test of `if_else`."""
    if test == "true":
        return yes
    if test == "false":
        return no
    return f"({test} ? {yes} : {no})"


def assign(target: str, value: str) -> Lines:
    """Write an assignment, the value on a line of its own if it is long."""
    bare = value[1:-1] if _is_choice(value) else value
    if len(target) + len(bare) + len(" = ;") <= ROOM:
        return [f"{target} = {bare};"]
    return [f"{target} =", f"{INDENT}{bare};"]


def _is_choice(value: str) -> bool:
    """Whether a value is one choice in parentheses, which it does not need on its own."""
    depth = 0
    for k, c in enumerate(value):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return k == len(value) - 1 and " ? " in value
    return False

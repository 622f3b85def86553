"""Lines of generated Python: indented, and broken where they would not fit.

Law: what comes out is formatted as rendered; nobody runs a formatter over it.
"""

from __future__ import annotations

from typing import Final

INDENT: Final = "    "
LINE: Final = 100
QUOTES: Final = '"' * 3


def indented(lines: list[str]) -> list[str]:
    return [INDENT + line for line in lines]


def fitted(lines: list[str], depth: int) -> list[str]:
    """Indent lines by `depth` levels and break those that do not fit, as a formatter would."""
    made: list[str] = []
    for line in indented(lines) if depth == 1 else indented(indented(lines)):
        made += [line] if len(line) <= LINE else _broken(line)
    return made


def _broken(line: str) -> list[str]:
    """Break one long line inside its outermost brackets, or put a long right-hand side into
    parentheses.
    """
    code, mark, comment = line.partition("  # ")
    indent = code[: len(code) - len(code.lstrip())]
    target, equals, value = code.partition(" = ")
    if not equals and code.endswith(")"):  # a call
        head, _, arguments = code.partition("(")
        return [f"{head}(", f"{indent}{INDENT}{arguments[:-1]}", f"{indent}){mark}{comment}"]
    if not equals:  # a test: if (a or b):
        left, _, right = code.removesuffix("):").partition(" or ")
        first = left.replace("(", "", 1).lstrip().removeprefix("if ")
        return [f"{indent}if (", f"{indent}    {first}", f"{indent}    or {right}", f"{indent}):"]
    if value.startswith("[_decode"):
        parts, around = _split(value[1:-1], indent, (" for _ in ",)), "[]"
    else:
        parts, around = _split(value, indent, (" if ", " else ")), "()"
    return [f"{target} = {around[0]}", *parts, f"{indent}{around[1]}{mark}{comment}"]


def _split(inner: str, indent: str, words: tuple[str, ...]) -> list[str]:
    """Put what stands inside brackets on one line, or on one line for each of the words."""
    whole = f"{indent}{INDENT}{inner}"
    if len(whole) <= LINE:
        return [whole]
    parts = [inner]
    for word in words:
        before, _, after = parts.pop().partition(word)
        parts += [before, word.lstrip() + after]
    return [f"{indent}{INDENT}{part}" for part in parts]

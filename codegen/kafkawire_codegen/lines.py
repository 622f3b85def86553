"""Formats lines of generated Python: indents them, and breaks long ones.

Law: the output is formatted; no formatter runs over it.
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
    """Break one long line inside its outermost brackets, or put a long expression into parentheses;
    a line with neither stays long.
    """
    code, mark, comment = line.partition("  # ")
    indent = code[: len(code) - len(code.lstrip())]
    target, equals, value = code.partition(" = ")
    word, _, test = code.strip().partition(" ")
    if word in ("if", "elif"):
        return _broken_test(indent, word, test.removesuffix(":"), mark + comment)
    if not equals and code.endswith(")"):  # a call
        head, _, arguments = code.partition("(")
        return [f"{head}(", f"{indent}{INDENT}{arguments[:-1]}", f"{indent}){mark}{comment}"]
    if not equals:
        return [line]
    if value.startswith("[_decode"):
        parts, around = _split(value[1:-1], indent, (" for _ in ",)), "[]"
    else:
        parts, around = _split(value, indent, (" if ", " else ")), "()"
    return [f"{target} = {around[0]}", *parts, f"{indent}{around[1]}{mark}{comment}"]


def _broken_test(indent: str, word: str, test: str, comment: str) -> list[str]:
    """Break `if test:` before its `or` or `and`."""
    if test.startswith("(") and test.endswith(")"):
        test = test[1:-1]
    parts = test.replace(" or ", "\nor ").replace(" and ", "\nand ").split("\n")
    lines = [f"{indent}{INDENT}{part}" for part in parts]
    return [f"{indent}{word} (", *lines, f"{indent}):{comment}"]


def _split(inner: str, indent: str, words: tuple[str, ...]) -> list[str]:
    """Put the content of brackets on one line, or each word on a line."""
    whole = f"{indent}{INDENT}{inner}"
    if len(whole) <= LINE:
        return [whole]
    parts = [inner]
    for word in words:
        before, found, after = parts.pop().partition(word)
        parts += [before, word.lstrip() + after] if found else [before]
    return [f"{indent}{INDENT}{part}" for part in parts]

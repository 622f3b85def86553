"""Columns whose names are reserved words of SQL: quotes them, or says how to.

A statement that DuckDB parses is never changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(
    r"""
    '(?:[^']|'')*' | "(?:[^"]|"")*" | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$   # strings, quoted names
    | --[^\n]* | /\*.*?\*/ | \s+                                        # comments, white space
    | (?P<word>[^\W\d]\w*) | (?P<number>\d[\w.]*) | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)

ARGUMENT: Final = ("(", "?", "$")
"""What an OFFSET clause may have besides a number."""

BEFORE_NAMES: Final = frozenset({"select", "as", "by", "on", "where", "and", "or", "not", ",", "("})
"""Words and signs before the name of a column."""

CLAUSES: Final = frozenset({"from", "where", "select", "limit", "union"})
"""Reserved words that begin a clause: a misplaced one is not taken for a name."""


class Token(NamedTuple):
    """A word, number or sign, with its place in the text."""

    text: str
    start: int
    kind: str


def _tokens(text: str) -> Iterator[Token]:
    for match in _TOKEN.finditer(text):
        if match.lastgroup in ("word", "number", "sign"):
            yield Token(match[0], match.start(), match.lastgroup)


def quoted(text: str, names: Iterable[str]) -> str:
    """Quote the words that are names of columns, but not those that begin an OFFSET clause."""
    wanted = frozenset(names)
    tokens = list(_tokens(text))
    parts: list[str] = []
    done = 0
    for at, token in enumerate(tokens):
        after = tokens[at + 1] if at + 1 < len(tokens) else None
        is_clause = after is not None and (after.kind == "number" or after.text in ARGUMENT)
        if token.kind == "word" and token.text.lower() in wanted and not is_clause:
            parts += [text[done : token.start], f'"{token.text}"']
            done = token.start + len(token.text)
    return "".join(parts) + text[done:]


def hint(text: str, reserved: Iterable[str], place: int) -> str:
    """Say how to quote a reserved word that is used as a name.

    place: where the parser stopped, which is at the word or behind it. Returns "" if there is none.
    """
    words = frozenset(reserved)
    tokens = [token for token in _tokens(text) if token.start <= place]
    for at in range(len(tokens) - 1, max(len(tokens) - 3, 0), -1):
        name, before = tokens[at].text, tokens[at - 1].text.lower()
        if name.lower() in words - CLAUSES and before in BEFORE_NAMES:
            return f'; {name} is a reserved word: as a name, write "{name}" with the quotes'
    return ""

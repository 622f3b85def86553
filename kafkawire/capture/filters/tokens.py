"""Splits a filter expression into tokens.

Each character is read once; every token knows where it begins.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NamedTuple

from ...errors import FilterError

MAX_CHARACTERS: Final = 1 << 16
"""Length of an expression at most."""


class Kind(StrEnum):
    """Kinds of tokens."""

    WORD = "word"
    QUOTED = "quoted"
    OPERATOR = "operator"
    OPEN = "("
    CLOSE = ")"
    COMMA = ","
    END = "end"


class Token(NamedTuple):
    """A token. text: without quotes. at, length: where it is in the expression."""

    kind: Kind
    text: str
    at: int
    length: int

    def is_keyword(self, word: str) -> bool:
        """Whether the token is a keyword: an unquoted word, in any case."""
        return self.kind is Kind.WORD and self.text.lower() == word


_TOKEN: Final = re.compile(
    r"""(?P<blank>\s+)
    | (?P<operator>[=!<>~]+)
    | (?P<open>\() | (?P<close>\)) | (?P<comma>,)
    | (?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<word>[^\s'"(),=!<>~]+)""",
    re.VERBOSE | re.DOTALL,
)

_KINDS: Final = {
    "operator": Kind.OPERATOR,
    "open": Kind.OPEN,
    "close": Kind.CLOSE,
    "comma": Kind.COMMA,
    "quoted": Kind.QUOTED,
    "word": Kind.WORD,
}

_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


def tokens(text: str) -> list[Token]:
    """Split an expression; the last token is END. Raises FilterError."""
    if len(text) > MAX_CHARACTERS:
        raise FilterError(f"longer than {MAX_CHARACTERS} characters", text, MAX_CHARACTERS)
    listed: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise FilterError("missing closing quote", text, position)
        position = match.end()
        kind = _KINDS.get(match.lastgroup or "")
        if kind is not None:
            listed.append(_token(kind, match))
    listed.append(Token(Kind.END, "", len(text), 1))
    return listed


def _token(kind: Kind, match: re.Match[str]) -> Token:
    text = match[0]
    if kind is Kind.QUOTED:
        text = _ESCAPE.sub(r"\1", text[1:-1])
    return Token(kind, text, match.start(), len(match[0]))

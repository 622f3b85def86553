"""Splits text into SQL statements, as it is typed.

A `;` ends a statement only outside of strings, quoted names and comments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from .failures import BEGIN, Place

_TOKEN: Final = re.compile(r"""['";]|\$\w*\$|--|/\*""")
_COMMENTS: Final[Mapping[str, str]] = {"--": "\n", "/*": "*/"}
"""Begin -> end; strings, quoted and dollar-quoted ones, end as they begin ('' begins another)."""


class Statement(NamedTuple):
    """A statement without its `;` and without white space before it, and where it begins."""

    text: str
    start: Place


class Statements:
    """Takes text line by line, and returns the statements that are complete; in linear time.

    A line ends with its newline, unless it is the last one. rest: the text of the incomplete
    statement; size: its characters; is_blank: whether it is white space and comments.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._open = ""
        """The end of the string or comment in which the text ends."""
        self._has_text = False
        self._begin = BEGIN
        """Where the incomplete statement begins, or the white space before it."""
        self.size = 0

    @property
    def last(self) -> Statement:
        """The incomplete statement, at the end of the text."""
        return _statement(self.rest, self._begin)

    @property
    def rest(self) -> str:
        return "".join(self._lines)

    @property
    def is_blank(self) -> bool:
        return not self._has_text and self._open != "*/"

    def add(self, line: str) -> list[Statement]:
        """Return the statements that a line completes; blank ones are left out."""
        complete: list[Statement] = []
        start = position = 0
        while True:
            if self._open:
                position = line.find(self._open, position)
                if position < 0:
                    break
                position += len(self._open)
                self._open = ""
            token = _TOKEN.search(line, position)
            between = line[position:] if token is None else line[position : token.start()]
            self._has_text = self._has_text or not (not between or between.isspace())
            if token is None:
                break
            position = token.end()
            if token[0] != ";":
                self._open = _COMMENTS.get(token[0], token[0])
                self._has_text = self._has_text or token[0] not in _COMMENTS
                continue
            text = self.rest + line[start : token.start()]
            if self._has_text:
                complete.append(_statement(text, self._begin))
            self._begin = self._begin.after(f"{text};")
            self._lines, self._has_text, self.size, start = [], False, 0, position
        self._lines.append(line[start:])
        self.size += len(line) - start
        return complete


def _statement(text: str, begin: Place) -> Statement:
    """Return the statement of a text that begins there."""
    statement = text.lstrip()
    return Statement(statement, begin.after(text[: len(text) - len(statement)]))

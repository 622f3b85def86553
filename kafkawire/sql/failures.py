"""Errors of DuckDB in one line: the reason, the line and column of the place, the suggestion."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_PLACE: Final = re.compile(r"\n\s*LINE (?P<line>\d+): (?P<shown>[^\n]*)\n(?P<before> *)\^+\s*$")
_CLASS: Final = re.compile(r"^[A-Z][A-Za-z ]*? Error: ")
"""DuckDB's class of errors: `Catalog Error: `, `Parser Error: `."""
_SUGGESTION: Final = re.compile(r"\n\s*Did you mean:? (?P<names>[^\n]*?)\??(?=\n|$)")
_FIELD: Final = re.compile(
    r"Cannot extract field '(?P<field>\w+)' from expression \"(?P<column>key|value)\""
)
"""A field of keys or values that are not decoded."""
CUT: Final = "..."
"""How DuckDB begins a line whose beginning it leaves out."""


class Place(NamedTuple):
    """A place in a statement: its line, counted from 1, and column, from 0; -1 if unknown."""

    line: int
    column: int

    def offset(self, text: str) -> int:
        """Return the offset in the text; -1 if unknown."""
        if self.column < 0:
            return -1
        lines = text.splitlines(keepends=True)
        return sum(map(len, lines[: self.line - 1])) + self.column

    def after(self, text: str) -> Place:
        """Return the place that follows a text which begins here."""
        lines = text.count("\n")
        column = len(text) - text.rfind("\n") - 1 if lines else self.column + len(text)
        return Place(self.line + lines, column)

    def of(self, inner: Place) -> Place:
        """Return the place in the input of a place in a statement that begins here."""
        on_first_line = inner.line == 1 and inner.column >= 0
        column = inner.column + (self.column if on_first_line else 0)
        return Place(self.line + inner.line - 1, column)


BEGIN: Final = Place(1, 0)


def place_of(message: str) -> Place | None:
    """Find the place in a message; None if it has none."""
    match = _PLACE.search(message)
    if match is None:
        return None
    column = len(match["before"]) - len(f"LINE {match['line']}: ")
    return Place(int(match["line"]), -1 if match["shown"].startswith(CUT) else column)


def one_line(message: str, hint: str = "", start: Place = BEGIN) -> str:
    """Join the lines of a message without its class; the place is named instead of shown.

    What DuckDB suggests is the end of the line, as in the errors of other commands. start: where
    the statement begins in the input.
    """
    place, suggestion = place_of(message), _SUGGESTION.search(message)
    hint += _of_values(message)
    if suggestion is not None:
        hint += f"; did you mean {suggestion['names']}?"
    text = _PLACE.sub("", _SUGGESTION.sub("", message))
    reason = _CLASS.sub("", " ".join(text.split())).rstrip("!")
    if place is None:
        return f"{reason}{hint}"
    place = start.of(place)
    column = f", column {place.column + 1}" if place.column >= 0 else ""
    return f"{reason} (line {place.line}{column}){hint}"


def _of_values(message: str) -> str:
    """Say how to get at a field of keys or values that are not decoded; "" if it is not one."""
    match = _FIELD.search(message)
    if match is None:
        return ""
    return (
        f"; of JSON: {match['column']}->>'{match['field']}'; of any format: the table of a topic, "
        "whose values are decoded (--topic NAME --values auto)"
    )

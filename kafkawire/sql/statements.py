"""Splits text into SQL statements, as it is typed.

A `;` ends a statement only outside of strings, quoted names and comments.
"""

from __future__ import annotations

import re
from typing import Final

_PART: Final = re.compile(
    r"""
    '(?:[^']|'')*' | "(?:[^"]|"")*"            # strings and quoted names
    | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$           # dollar-quoted strings
    | --[^\n]* | /\*.*?\*/                     # comments
    | (?P<end>;)
    | (?P<open>['"]|/\*|\$\w*\$)               # without an end
    """,
    re.VERBOSE | re.DOTALL,
)


def split_statements(text: str) -> tuple[list[str], str]:
    """Return the complete statements of a text, without `;`, and the incomplete rest."""
    complete: list[str] = []
    start = 0
    for part in _PART.finditer(text):
        if part["open"] is not None:
            break
        if part["end"] is not None:
            complete.append(text[start : part.start()])
            start = part.end()
    return [statement for statement in complete if not is_blank(statement)], text[start:]


def is_blank(text: str) -> bool:
    """Whether a text consists of white space and comments."""
    return not re.sub(r"--[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL).strip()

"""Escapes text that comes from outside, before it is shown to a person.

Law: what is escaped holds no character that a terminal obeys, that is invisible, or that ends or
turns a line: C0 and C1 controls, DEL, lone surrogates, bidirectional overrides, zero-width
characters, separators of lines and paragraphs. Text without them is kept as it is. Markup is not
interpreted by those who print, so it needs no escape.
"""

from __future__ import annotations

import re
from typing import Final

_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Default_Ignorable_Code_Point (Unicode) that `str.isprintable` lets pass."""

_FORMULA: Final = re.compile(r"[=+\-@\t\r]")
"""What spreadsheets take for the beginning of a formula (OWASP, "CSV Injection")."""


def printable(text: str) -> str:
    r"""Escape text for one line, as Python writes strings: `\x1b`, `\n`, `\u202e`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c if c.isprintable() and not _INVISIBLE.match(c) else c.encode("unicode_escape").decode()
        for c in text
    )


def printable_lines(text: str) -> str:
    """Escape text of several lines; the ends of lines (LF) are kept."""
    return "\n".join(map(printable, text.split("\n")))


def csv_text(text: str) -> str:
    """Escape text for a cell of CSV: as for a line, and with `'` before what spreadsheets take for
    a formula.
    """
    return f"'{printable(text)}" if _FORMULA.match(text) else printable(text)

"""Text for display: untrusted text escaped, cut to a width, counts with their nouns, times.

Escaped text contains no control characters (C0, C1, DEL), lone surrogates, bidirectional
overrides, zero-width characters, or line and paragraph separators. Other text is unchanged. Markup
needs no escaping, because no caller interprets it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Final
from unicodedata import category, east_asian_width

_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Default_Ignorable_Code_Point (Unicode) that `str.isprintable` accepts."""

_FORMULA: Final = re.compile(r"[=+\-@\t\r]")
"""First characters of a formula in spreadsheets (OWASP, "CSV Injection")."""

MISSPELT: Final = 0.85
"""The similarity of a word and one with a letter wrong (`difflib`: 2 x common letters / all)."""
LEAST_BEGINNING: Final = 4
"""Characters of the shortest beginning of a name that suggests it."""


def host_and_port(host: str, port: int) -> str:
    """Join a host and a port; an IPv6 address is in brackets (RFC 3986)."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def printable(text: str) -> str:
    r"""Escape text for one line, as in Python strings: `\x1b`, `\n`, `\u202e`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c if c.isprintable() and not _INVISIBLE.match(c) else c.encode("unicode_escape").decode()
        for c in text
    )


def printable_lines(text: str) -> str:
    """Escape text of several lines; line feeds are kept."""
    return "\n".join(map(printable, text.split("\n")))


def did_you_mean(text: str, names: Iterable[str]) -> str:
    """Return `; did you mean X?` with the name most similar to `text`; "" if none is similar."""
    close = most_similar(text, names)
    return "" if close is None else f"; did you mean {close!r}?"


def most_similar(text: str, names: Iterable[str]) -> str | None:
    """Return the name most similar to `text`, in any case; None if none is similar.

    A misspelt beginning of a name is that name, unless a whole name is as similar.
    """
    plain = text.lower()
    by_lower = {name.lower(): name for name in names}
    beginnings = {name[: len(plain)]: name for name in sorted(by_lower, key=len, reverse=True)}
    close = get_close_matches(plain, by_lower, 1, MISSPELT)
    if not close and len(plain) >= LEAST_BEGINNING:
        close = [beginnings[each] for each in get_close_matches(plain, beginnings, 1, MISSPELT)]
    close = close or get_close_matches(plain, by_lower, 1)
    return by_lower[close[0]] if close else None


def csv_text(text: str) -> str:
    """Escape text for a CSV cell: as for a line, with `'` in front of formulas."""
    return f"'{printable(text)}" if _FORMULA.match(text) else printable(text)


def text_width(text: str) -> int:
    """Return the width of escaped text in terminal columns (UAX #11)."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def _width(character: str) -> int:
    if category(character) in ("Mn", "Me"):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


ELISION: Final = "..."


def clipped(text: str, width: int) -> str:
    """Return the beginning of a text that fits a width."""
    if text.isascii():
        return text[: max(0, width)]
    for at, character in enumerate(text):
        width -= _width(character)
        if width < 0:
            return text[:at]
    return text


def cut(text: str, width: int) -> str:
    """Cut a text that is wider than `width`; it then ends in `...`."""
    if text_width(text) <= width:
        return text
    return clipped(text, width - len(ELISION)) + ELISION[: max(0, width)]


def cut_left(text: str, width: int) -> str:
    """Cut the beginning of a text that is wider than `width`; it then begins with `...`."""
    if text_width(text) <= width:
        return text
    return ELISION + clipped(text[::-1], width - len(ELISION))[::-1]


def padded(text: str, width: int, right: bool = False) -> str:
    """Pad a text to a width; right: aligned to the right."""
    space = " " * (width - text_width(text))
    return space + text if right else text + space


def plural(count: int, noun: str) -> str:
    """Format a count with its noun: `1 record`, `2 records`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def bytes_text(size: int) -> str:
    """Format a number of bytes."""
    amount = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if abs(amount) < 1000:
            return f"{size} B" if unit == "B" else f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:.3g} TB"


def time_text(time_ns: int) -> str | None:
    """Format a capture time as ISO 8601 in UTC with nanoseconds; None if unknown."""
    if time_ns <= 0:  # frames without packets, and packets without a time
        return None
    seconds, rest = divmod(time_ns, 1_000_000_000)
    whole = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{rest:09d}Z"

"""Writes Lua literals that mean the same in Lua 5.2 and 5.4.

Any text becomes one line of printable ASCII; nothing in it can end the literal.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_PLAIN: Final = frozenset(range(0x20, 0x7F)) - {0x22, 0x5C}


def string(text: str) -> str:
    """Write a string; bytes other than printable ASCII become three-digit decimal escapes."""
    data = text.encode("utf-8", "replace")  # a lone surrogate is not text
    return '"' + "".join(chr(b) if b in _PLAIN else f"\\{b:03d}" for b in data) + '"'


def one_line(text: str, longest: int) -> str:
    """Replace control characters by blanks, for a literal that a C program shows; cut it."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return plain if len(plain) <= longest else f"{plain[: longest - 3]}..."


def table(values: Iterable[str]) -> str:
    """Write a table of literals and `key=value` pairs."""
    return "{" + ",".join(values) + "}"

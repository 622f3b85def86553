"""Escapes in string literals, as C, Python, Rust and the shell's $'...' have them."""

from __future__ import annotations

import re
from typing import Final

ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
OCTAL: Final = frozenset("01234567")
ESCAPES: Final = {"n": 10, "t": 9, "r": 13, "a": 7, "b": 8, "f": 12, "v": 11, "e": 27}


def unescaped(text: str) -> str:
    """Replace escapes by their characters."""
    return ESCAPE.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] in OCTAL:
        return chr(int(code, 8) & 0xFF)
    return chr(ESCAPES[code]) if code in ESCAPES else code

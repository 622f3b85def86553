"""Reads whole numbers in texts, such as arguments, settings and names."""

from __future__ import annotations

from typing import Final

MAX_INT32: Final = 0x7FFF_FFFF
"""The largest id of a node, and number of a partition."""


def whole_number(text: str, most: int) -> int | None:
    """Read decimal digits; None for another text, and for more than `most`.

    Unlike `int`, it takes no digits of other scripts, and refuses long texts without an error.
    """
    if not (text.isascii() and text.isdecimal()):
        return None
    digits = text.lstrip("0") or "0"
    if len(digits) > len(str(most)):
        return None
    number = int(digits)
    return number if number <= most else None

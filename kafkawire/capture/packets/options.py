"""Reads the options of TCP headers."""

from __future__ import annotations

from typing import Final

END: Final = 0
NOP: Final = 1
MSS: Final = 2
MSS_BYTES: Final = 4
"""Kinds of options, and the bytes of the maximum segment size with its kind and length."""


def mss_of(options: bytes) -> int:
    """Return the maximum segment size among the options of a SYN; 0 if it has none (RFC 9293)."""
    position, size = 0, len(options)
    while position < size and options[position] != END:
        if options[position] == NOP:
            position += 1
            continue
        if position + 1 >= size or options[position + 1] < 2:
            return 0
        if options[position] == MSS:
            valid = options[position + 1] == MSS_BYTES and position + MSS_BYTES <= size
            return options[position + 2] << 8 | options[position + 3] if valid else 0
        position += options[position + 1]
    return 0

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
    at, size = 0, len(options)
    while at < size and options[at] != END:
        if options[at] == NOP:
            at += 1
            continue
        if at + 1 >= size or options[at + 1] < 2:
            return 0
        if options[at] == MSS:
            valid = options[at + 1] == MSS_BYTES and at + MSS_BYTES <= size
            return options[at + 2] << 8 | options[at + 3] if valid else 0
        at += options[at + 1]
    return 0

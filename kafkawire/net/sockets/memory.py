"""Has the C library keep freed memory for the next response.

No memory is used that was not used before; it stays with the process for longer.

glibc returns free memory at the end of the heap to the kernel once it is twice as much as the
largest block freed so far: between two responses of a megabyte just that much is free, and for each
response the kernel would clear 500 new pages, which takes as long as decoding it.
"""

from __future__ import annotations

from typing import Final

MOST_KEPT: Final = 1 << 24


def keep_freed(size: int) -> None:
    """Keep up to twice `size` bytes that are free, at most twice MOST_KEPT."""
    bytes(min(size, MOST_KEPT))  # freed at once, and its pages are never touched

"""The latest offset of each key, for compaction.

Memory is bounded: keys are kept as 16 bytes of their hash, up to a number of them.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

DIGEST_BYTES: Final = 16
DEFAULT_CAPACITY: Final = 5_000_000
"""About that of Kafka's log.cleaner.dedupe.buffer.size of 128 MiB."""
NO_OFFSET: Final = -1


class OffsetMap:
    """Key -> latest offset. latest_offset: up to which offset the log was read."""

    def __init__(self, capacity: int = DEFAULT_CAPACITY) -> None:
        self._offsets: dict[bytes, int] = {}
        self._capacity = capacity
        self.latest_offset = NO_OFFSET

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes, offset: int) -> bool:
        """Set the offset of a key; False if there is no room for it."""
        if len(self._offsets) >= self._capacity:
            return False
        self._offsets[_digest(key)] = offset
        return True

    def get(self, key: bytes) -> int:
        """Return the latest offset of a key; -1 for none."""
        return self._offsets.get(_digest(key), NO_OFFSET)


def _digest(key: bytes) -> bytes:
    return blake2b(key, digest_size=DIGEST_BYTES).digest()

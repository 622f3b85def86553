"""MurmurHash2, as Java's client hashes keys: 32 bits, seed 0x9747b28c.

Equal to `org.apache.kafka.common.utils.Utils.murmur2`, so that both clients map a key to the
same partition.
"""

from __future__ import annotations

from functools import lru_cache
from struct import unpack_from
from typing import Final

SEED: Final = 0x9747B28C
M: Final = 0x5BD1E995
R: Final = 24
MASK: Final = 0xFFFFFFFF
POSITIVE: Final = 0x7FFFFFFF
CACHED_HASHES: Final = 4096
"""Size of the hash cache: keys repeat, and a lookup costs a tenth of hashing."""


@lru_cache(CACHED_HASHES)
def murmur2(data: bytes) -> int:
    """Hash bytes to an unsigned 32-bit number (Java shows the same bits signed)."""
    length = len(data)
    h = SEED ^ length
    words = length >> 2
    for k in unpack_from(f"<{words}I", data):
        k = (k * M) & MASK
        h = ((h * M) & MASK) ^ (((k ^ (k >> R)) * M) & MASK)
    tail = data[words << 2 :]
    if tail:
        h = ((h ^ int.from_bytes(tail, "little")) * M) & MASK
    h = ((h ^ (h >> 13)) * M) & MASK
    return h ^ (h >> 15)


def partition_of_key(key: bytes, partitions: int) -> int:
    """Choose the partition of a key as Java's default partitioner does."""
    return (murmur2(key) & POSITIVE) % partitions

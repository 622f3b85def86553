"""The order of Java's hash tables and heaps, which decides between equals in Kafka.

Invariant: what `hash_order` and `PriorityQueue` return first, java.util.HashMap and
java.util.PriorityQueue return first, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import mul
from struct import unpack
from typing import Final, Generic, TypeVar

T = TypeVar("T")
POWERS: Final = tuple(pow(31, power, 1 << 32) for power in range(63, -1, -1))
"""Powers of 31 down to 1: hashes 64 code units at a time, as group ids may be 32 KB long."""
LOAD_FACTOR: Final = 0.75
"""A table doubles when it has more keys than this share of its size."""
SIZE: Final = 16
"""Of a new table."""


def java_hash(text: str) -> int:
    """Return Java's String.hashCode: a signed int32 over UTF-16 code units."""
    data = text.encode("utf-16-be", "surrogatepass")
    units = unpack(f">{len(data) // 2}H", data)
    total = 0
    for start in range(0, len(units), len(POWERS)):
        part = units[start : start + len(POWERS)]
        factors = POWERS[-len(part) :]
        total = (31 * total * factors[0] + sum(map(mul, part, factors))) & 0xFFFFFFFF
    return total - 0x100000000 if total & 0x80000000 else total


def hash_order(keys: Iterable[str], capacity: int = SIZE, *, computed: bool = False) -> list[str]:
    """Return keys in the order of a HashMap to which they were added, the same perhaps again.

    capacity: with which it was made. computed: added with computeIfAbsent, which makes room before
    it adds a key, not after, and adds it before others with nearly the same hash, not behind them.
    (In Java, 8 such keys in a large table may have another order.)
    """
    size = 1
    while size < capacity:
        size *= 2
    added: dict[str, None] = {}
    for key in keys:
        if computed and len(added) > size * LOAD_FACTOR:
            size *= 2
        added[key] = None
        if not computed and len(added) > size * LOAD_FACTOR:
            size *= 2

    def bucket(key: str) -> int:
        number = java_hash(key) & 0xFFFFFFFF
        return (number ^ number >> 16) & (size - 1)

    return sorted(reversed(added) if computed else added, key=bucket)


class PriorityQueue(Generic[T]):
    """Items by a number, the least first."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, T]] = []

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, number: float, item: T) -> None:
        """Add an item."""
        heap = self._heap
        index = len(heap)
        heap.append((number, item))
        while index and number < heap[(index - 1) // 2][0]:
            heap[index] = heap[(index - 1) // 2]
            index = (index - 1) // 2
        heap[index] = number, item

    def poll(self) -> T:
        """Remove the first item and return it."""
        heap = self._heap
        last = heap.pop()
        if not heap:
            return last[1]
        first, index, child = heap[0][1], 0, 1
        while child < len(heap):
            if child + 1 < len(heap) and heap[child + 1][0] < heap[child][0]:
                child += 1
            if last[0] <= heap[child][0]:
                break
            heap[index] = heap[child]
            index, child = child, 2 * child + 1
        heap[index] = last
        return first

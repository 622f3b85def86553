"""Reassembles IP fragments.

Of fragments, the first with a byte wins. Incomplete datagrams are bounded in bytes and number, and
those that are given up are passed to `give_up`. Sources: RFC 791, RFC 8200 section 4.5.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final, NamedTuple

MAX_WAITING: Final = 1024
MAX_BYTES: Final = 1 << 23
MAX_DATAGRAM: Final = 1 << 16

OVERHEAD: Final = 64
"""Bytes that a fragment takes besides its payload."""

FragmentKey = tuple[int, ...]


class Fragment(NamedTuple):
    """A fragment of the datagram `key`; offset: in bytes; last: whether it is the last one."""

    key: FragmentKey
    offset: int
    last: bool
    payload: bytes


class Datagram:
    """What has come of a datagram: its first bytes, and fragments behind missing bytes.

    count, bytes: of its fragments. held: bytes of memory.
    """

    def __init__(self) -> None:
        self.start = bytearray()
        self.count = self.bytes = self.held = 0
        self._behind: list[tuple[int, int, bytes]] = []
        self._size = -1

    def add(self, fragment: Fragment) -> None:
        """Add a fragment."""
        self.count += 1
        self.bytes += len(fragment.payload)
        self.held += len(fragment.payload) + OVERHEAD
        if fragment.last and self._size < 0:
            self._size = fragment.offset + len(fragment.payload)
        heappush(self._behind, (fragment.offset, self.count, fragment.payload))
        start, behind = self.start, self._behind
        while behind and behind[0][0] <= len(start):
            offset, _, payload = heappop(behind)
            start += payload[len(start) - offset :]

    @property
    def payload(self) -> bytes | None:
        """The payload, if it is complete."""
        size = self._size
        return bytes(self.start[:size]) if 0 <= size <= len(self.start) else None


GiveUp = Callable[[FragmentKey, Datagram], None]


class Defragmenter:
    """Reassembles datagrams. dropped: fragments dropped because of the limits."""

    def __init__(
        self,
        max_waiting: int = MAX_WAITING,
        max_bytes: int = MAX_BYTES,
        give_up: GiveUp | None = None,
    ) -> None:
        self.dropped = 0
        self._max_waiting = max_waiting
        self._max_bytes = max_bytes
        self._bytes = 0
        self._waiting: dict[FragmentKey, Datagram] = {}
        self._give_up = give_up

    def add(self, fragment: Fragment) -> bytes | None:
        """Add a fragment; return the datagram's payload when it is complete."""
        if fragment.offset + len(fragment.payload) > MAX_DATAGRAM:
            self._drop(fragment.key, _alone(fragment))
            return None
        datagram = self._waiting.setdefault(fragment.key, Datagram())
        datagram.add(fragment)
        self._bytes += len(fragment.payload) + OVERHEAD
        payload = datagram.payload
        if payload is not None:
            self._remove(fragment.key)
        while len(self._waiting) > self._max_waiting or self._bytes > self._max_bytes:
            self._drop_oldest()
        return payload

    def finish(self) -> None:
        """Give up all incomplete datagrams."""
        while self._waiting:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        key = next(iter(self._waiting))
        self._drop(key, self._remove(key))

    def _drop(self, key: FragmentKey, datagram: Datagram) -> None:
        self.dropped += datagram.count
        if self._give_up is not None:
            self._give_up(key, datagram)

    def _remove(self, key: FragmentKey) -> Datagram:
        datagram = self._waiting.pop(key)
        self._bytes -= datagram.held
        return datagram


def _alone(fragment: Fragment) -> Datagram:
    datagram = Datagram()
    datagram.add(fragment)
    return datagram

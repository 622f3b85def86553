"""IP datagrams put together from their fragments.

Law: the first fragment that brings a byte wins; what waits is bounded in bytes and in number, and
what is given up is counted.

Source: RFC 791, RFC 8200 section 4.5.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

MAX_WAITING: Final = 1024
MAX_BYTES: Final = 1 << 23
MAX_DATAGRAM: Final = 1 << 16


class Fragment(NamedTuple):
    """A piece of a datagram. key: whatever tells datagrams apart; offset: in bytes; last: nothing
    follows it.
    """

    key: tuple[int, ...]
    offset: int
    last: bool
    payload: bytes


@dataclass(slots=True)
class _Datagram:
    pieces: dict[int, bytes] = field(default_factory=dict)
    size: int = -1

    def whole(self) -> bytes | None:
        if self.size < 0:
            return None
        out = bytearray()
        for offset in sorted(self.pieces):
            if offset > len(out):
                return None
            out += self.pieces[offset][len(out) - offset :]
        return bytes(out[: self.size]) if len(out) >= self.size else None


class Defragmenter:
    """Datagrams of which not all fragments have come. given_up: fragments forgotten for want of
    room.
    """

    def __init__(self, max_waiting: int = MAX_WAITING, max_bytes: int = MAX_BYTES) -> None:
        self.given_up = 0
        self._max_waiting = max_waiting
        self._max_bytes = max_bytes
        self._bytes = 0
        self._waiting: dict[tuple[int, ...], _Datagram] = {}

    def add(self, fragment: Fragment) -> bytes | None:
        """Take a fragment; returns the datagram's payload when it is whole."""
        if fragment.offset + len(fragment.payload) > MAX_DATAGRAM:
            self.given_up += 1
            return None
        datagram = self._waiting.setdefault(fragment.key, _Datagram())
        if len(datagram.pieces.get(fragment.offset, b"")) < len(fragment.payload):
            self._bytes += len(fragment.payload) - len(datagram.pieces.get(fragment.offset, b""))
            datagram.pieces[fragment.offset] = fragment.payload
        if fragment.last:
            datagram.size = fragment.offset + len(fragment.payload)
        whole = datagram.whole()
        if whole is not None:
            self._forget(fragment.key)
        while len(self._waiting) > self._max_waiting or self._bytes > self._max_bytes:
            oldest = next(iter(self._waiting))
            self.given_up += len(self._waiting[oldest].pieces)
            self._forget(oldest)
        return whole

    def _forget(self, key: tuple[int, ...]) -> None:
        datagram = self._waiting.pop(key)
        self._bytes -= sum(map(len, datagram.pieces.values()))

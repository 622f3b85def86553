"""Reassembles IP datagrams from their fragments.

Law: the first fragment with a byte wins; incomplete datagrams are bounded in bytes and number, and
dropped fragments are counted.

Source: RFC 791, RFC 8200 section 4.5.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

MAX_WAITING: Final = 1024
MAX_BYTES: Final = 1 << 23
MAX_DATAGRAM: Final = 1 << 16


class Fragment(NamedTuple):
    """A fragment of a datagram.

    key: identifies the datagram; offset: in bytes; last: whether it is the last fragment.
    """

    key: tuple[int, ...]
    offset: int
    last: bool
    payload: bytes


@dataclass(slots=True)
class _Datagram:
    fragments: dict[int, bytes] = field(default_factory=dict)
    size: int = -1

    def payload(self) -> bytes | None:
        if self.size < 0:
            return None
        out = bytearray()
        for offset in sorted(self.fragments):
            if offset > len(out):
                return None
            out += self.fragments[offset][len(out) - offset :]
        return bytes(out[: self.size]) if len(out) >= self.size else None


class Defragmenter:
    """Reassembles datagrams. dropped: fragments dropped because of the limits."""

    def __init__(self, max_waiting: int = MAX_WAITING, max_bytes: int = MAX_BYTES) -> None:
        self.dropped = 0
        self._max_waiting = max_waiting
        self._max_bytes = max_bytes
        self._bytes = 0
        self._waiting: dict[tuple[int, ...], _Datagram] = {}

    def add(self, fragment: Fragment) -> bytes | None:
        """Add a fragment; return the datagram's payload when it is complete."""
        if fragment.offset + len(fragment.payload) > MAX_DATAGRAM:
            self.dropped += 1
            return None
        datagram = self._waiting.setdefault(fragment.key, _Datagram())
        if len(datagram.fragments.get(fragment.offset, b"")) < len(fragment.payload):
            self._bytes += len(fragment.payload) - len(datagram.fragments.get(fragment.offset, b""))
            datagram.fragments[fragment.offset] = fragment.payload
        if fragment.last:
            datagram.size = fragment.offset + len(fragment.payload)
        payload = datagram.payload()
        if payload is not None:
            self._remove(fragment.key)
        while len(self._waiting) > self._max_waiting or self._bytes > self._max_bytes:
            oldest = next(iter(self._waiting))
            self.dropped += len(self._waiting[oldest].fragments)
            self._remove(oldest)
        return payload

    def _remove(self, key: tuple[int, ...]) -> None:
        datagram = self._waiting.pop(key)
        self._bytes -= sum(map(len, datagram.fragments.values()))

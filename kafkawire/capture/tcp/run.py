"""The event of contiguous bytes; most packets cause one, so it is cheap to create."""

from __future__ import annotations

from typing import final

from mypy_extensions import i64, mypyc_attr

from .connection import Connection


@final
@mypyc_attr(acyclic=True)
class Run:
    """Contiguous bytes of a side, starting at `position`.

    packet, time_ns: the packet that made the bytes contiguous, and its time. known: the packet
    after which the run was reported; later than `packet` if a gap before the run timed out first.
    """

    __slots__ = ("connection", "data", "known", "packet", "position", "side", "time_ns")

    def __init__(
        self,
        connection: Connection,
        side: i64,
        position: i64,
        data: bytes,
        packet: i64,
        time_ns: i64,
        known: i64,
    ) -> None:
        self.connection: Connection = connection
        self.side: i64 = side
        self.position: i64 = position
        self.data: bytes = data
        self.packet: i64 = packet
        self.time_ns: i64 = time_ns
        self.known: i64 = known

    @property
    def end(self) -> int:
        return self.position + len(self.data)

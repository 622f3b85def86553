"""A run: what most packets lead to, so it is made quickly; the other events are in `events`."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from mypy_extensions import i64, mypyc_attr

if TYPE_CHECKING:
    from .connection import Connection


@final
@mypyc_attr(acyclic=True)
class Run:
    """Contiguous bytes of a side, from `position` on.

    packet, time_ns: the packet that made them contiguous, and when. known: the packet after which
    that was known, which is a later one where a gap before them had to be waited out.
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

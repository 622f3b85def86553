"""Collects closed connections and frame counts, for captures that are read in several parts.

A connection is identified by its first packet here, which does not depend on how a capture is
split; its number in order of appearance is known only when all parts are read.

    Engine(by_packet=True) --on_end--> Endings --drained--> Ended
                          `--[LocatedItem]--> count_frames --> frames, and their bytes
"""

from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i64

from ..files.blocks import NO_TIME
from ..frames.decoding import LocatedItem, RawFrame
from ..tcp.connection import Connection
from .exchanges import Ended, TcpSide

_make: Final[Any] = tuple.__new__


@final
class Endings:
    """Collects closed connections.

    firsts: their first packets. repeated_bytes: their sum, as in `Ended`.
    """

    def __init__(self) -> None:
        self.firsts: list[int] = []
        self.repeated_bytes: i64 = 0
        self._new: list[Ended] = []

    def end(self, connection: Connection, client: int) -> None:
        """Handle the end of a connection; client: the side that was the client."""
        first = connection.first_packet
        self.firsts.append(first)
        self.repeated_bytes += connection.repeated_bytes
        self._new.append(as_ended(connection, client, first))

    def drained(self) -> list[Ended]:
        """Return the closed connections since the last call."""
        new = self._new
        self._new = []
        return new


def as_ended(connection: Connection, client: int, number: int) -> Ended:
    """Make the event of a closed connection.

    client: the side that was the client. number: the id of the connection.
    """
    ended: Ended = _make(
        Ended,
        (
            number,
            connection.name(client),
            connection.name(1 - client),
            connection.first_packet,
            connection.last_packet,
            connection.first_ns,
            connection.last_ns,
            connection.reset,
            connection.captured_bytes,
            connection.repeated_bytes,
            _tcp_side(connection, client),
            _tcp_side(connection, 1 - client),
        ),
    )
    return ended


def _tcp_side(connection: Connection, side: int) -> TcpSide:
    """Return what was measured of a side."""
    receiver, rtt_ns = connection.receivers[side], connection.rtt_ns(side)
    finished_ns = receiver.finished_ns
    measured: TcpSide = _make(
        TcpSide,
        (
            connection.syn_seen[side],
            receiver.finished,
            None if rtt_ns == NO_TIME else rtt_ns,
            receiver.mss or None,
            receiver.zero_windows,
            receiver.closed_ns,
            None if finished_ns == NO_TIME else finished_ns,
        ),
    )
    return measured


def count_frames(items: list[LocatedItem]) -> tuple[int, int]:
    """Count the raw frames, and their bytes without the size prefixes."""
    count: i64 = 0
    size: i64 = 0
    for each in items:
        item = each.item
        if isinstance(item, RawFrame):
            count += 1
            size += len(item.frame)
    return count, size

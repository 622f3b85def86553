"""Connections that ended, and the bytes of what was told, for whoever adds up many parts of a
capture.

Law: a connection goes by its first packet here, which is the same however a capture is cut; its
number in order of appearance is known only when all parts are.

    Engine(by_packet=True) --on_end--> Endings --drained--> Ended
                          `--[Told]--> weigh --> frames, and their bytes
"""

from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i64

from ..frames.decoding import RawFrame
from ..frames.serialised import LocatedItem
from ..tcp.connection import Connection
from .exchanges import Ended

_make: Final[Any] = tuple.__new__


@final
class Endings:
    """See the module.

    firsts: of each connection that ended its first packet. repeated_bytes: of all of them, as in
    `Ended`.
    """

    def __init__(self) -> None:
        self.firsts: list[int] = []
        self.repeated_bytes: i64 = 0
        self._new: list[Ended] = []

    def end(self, connection: Connection, client: int) -> None:
        """Take that nothing more comes of a connection; client: the side that was the client."""
        first = connection.first_packet
        self.firsts.append(first)
        self.repeated_bytes += connection.repeated_bytes
        self._new.append(as_ended(connection, client, first))

    def drained(self) -> list[Ended]:
        """Give those that were not given yet."""
        new = self._new
        self._new = []
        return new


def as_ended(connection: Connection, client: int, number: int) -> Ended:
    """Say that nothing more comes of a connection; client: the side that was the client; number:
    what the connection goes by.
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
        ),
    )
    return ended


def weigh(told: list[LocatedItem]) -> tuple[int, int]:
    """Count the frames that are sealed still, and their bytes, without those of their lengths."""
    count: i64 = 0
    size: i64 = 0
    for one in told:
        item = one.item
        if isinstance(item, RawFrame):
            count += 1
            size += len(item.frame)
    return count, size

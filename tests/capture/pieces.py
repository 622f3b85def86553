"""Events as the engine takes them: in turn, and runs cut into what each packet brought."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafkawire.capture.connections import Connection
from kafkawire.capture.engine import in_turn
from kafkawire.capture.events import Closed, Conflict, Discarded, Event, Gap, Run


class Piece(NamedTuple):
    """Bytes of a side that one packet made contiguous."""

    connection: Connection
    side: int
    data: bytes
    packet: int
    time_ns: int


def in_order(events: list[Event]) -> Iterator[Piece | Gap | Conflict | Discarded | Closed]:
    """Give events in the order in which they became known."""
    for event, at, _ in in_turn(events):
        if isinstance(event, Run):
            start = event.ends[at - 1] - event.position if at else 0
            data = event.data[start : event.ends[at] - event.position]
            yield Piece(event.connection, event.side, data, event.packets[at], event.times[at])
        else:
            yield event

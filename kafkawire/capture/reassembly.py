"""All connections of a capture: blocks of segments in, events out.

Law: the fast way and the slow way say the same. Where both sides of a connection simply continue,
segments are taken in spans; around that, one by one.

    Segments --sorted by connection--> spans --> one Run for each side
                                   `-> SYN, FIN, RST, holes, repeats, port reuse: one at a time
"""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from .bounds import DEFAULT_REASSEMBLY, ReassemblyLimits
from .bulk import SortedBlock, Unit
from .events import Arrival, CloseReason, DiscardReason, Event
from .flows import MASK, UNKNOWN, Flow, Segment
from .packets import ACK, FIN, RST, SYN, Segments
from .table import ConnectionTable


@mypyc_attr(allow_interpreted_subclasses=True)
class Reassembler:
    """Puts the connections of a capture together; `connections` counts them."""

    def __init__(self, limits: ReassemblyLimits = DEFAULT_REASSEMBLY) -> None:
        self._table = ConnectionTable(limits)

    @property
    def connections(self) -> int:
        return self._table.opened

    def feed(self, segments: Segments) -> list[Event]:
        """Take the segments of a block, of at most 65536; returns what they tell."""
        out: list[Event] = []
        if not len(segments):
            return out
        self._table.part()
        block = SortedBlock(segments)
        for unit in block.take_whole(self._table.flows, out):
            self._take_unit(block, unit, out)
        self._table.number()
        self._table.tidy(Arrival(int(segments.packet[-1]), int(segments.ts[-1])), out)
        return out

    def finish(self) -> list[Event]:
        """Take note that the capture ends here."""
        out: list[Event] = []
        self._table.finish(out)
        return out

    def _take_unit(self, block: SortedBlock, unit: Unit, out: list[Event]) -> None:
        """Take a connection's segments in packet order: spans where that works, else one by one."""
        at = 0
        for first, end in [*unit.spans(), (len(unit.order), len(unit.order))]:
            while at < end:
                if at >= first and self._take_span(block, unit, at, end, out):
                    at = end
                else:
                    self._take_one(block, unit, unit.order[at], out)
                    at += 1

    def _take_span(
        self, block: SortedBlock, unit: Unit, first: int, end: int, out: list[Event]
    ) -> bool:
        flows = self._table.flows
        ranges = unit.ranges(first, end)
        return block.take_span(flows.get(unit.keys[0]), flows.get(unit.keys[1]), *ranges, out)

    def _take_one(self, block: SortedBlock, unit: Unit, place: int, out: list[Event]) -> None:
        segment = block.segment(place)
        mine, theirs = unit.keys
        if place >= unit.first[1]:
            mine, theirs = theirs, mine
        flow = self._table.flow(mine, theirs, segment, out)
        connection, flags, when = flow.connection, segment.flags, segment.when
        connection.seen(*when)
        if flags & SYN:
            self._open(flow, segment)
        elif flow.origin == UNKNOWN and not flags & RST:
            flow.join(segment.seq)
        if flags & ACK:
            flow.peer.acknowledge(segment.ack, when, out)
        if segment.size:
            self._take_payload(flow, segment, out)
        if flags & FIN:
            flow.end_at((segment.seq + segment.size) & MASK)
        if flow.waiting:
            flow.check(when, out)
        if flags & RST:
            self._table.reset(connection, when)
        if flow.fin_at != UNKNOWN and connection.over:
            self._table.close(connection, CloseReason.FINISHED, when, out)

    def _open(self, flow: Flow, segment: Segment) -> None:
        flow.open(segment.seq)
        connection = flow.connection
        if connection.client is None:
            connection.client = 1 - flow.side if segment.flags & ACK else flow.side

    def _take_payload(self, flow: Flow, segment: Segment, out: list[Event]) -> None:
        connection = flow.connection
        if segment.flags & SYN:
            segment = segment._replace(seq=(segment.seq + 1) & MASK)
        if connection.closed or segment.flags & RST:
            flow.refuse(segment, DiscardReason.AFTER, out)
        elif flow.take(segment, out):
            connection.outside = 0
            self._table.make_room(segment.when, out)
        else:
            connection.outside += 1
            flow.refuse(segment, DiscardReason.OUTSIDE, out)

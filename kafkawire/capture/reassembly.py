"""All connections of a capture: blocks of segments in, events out.

Law: what is said of a connection is said of its segments one by one, in the order of the capture.
Most of them continue their side and say nothing else: those go the short way, which says what the
long one would.

    Segments --> rows --continues--> the bytes are delivered
                   `--> SYN, FIN, RST, holes, repeats, port reuse: the long way
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i64_le
from mypy_extensions import i64

from .bounds import DEFAULT_REASSEMBLY, ReassemblyLimits
from .events import CloseReason, DiscardReason, Event
from .flows import MASK, UNKNOWN, Flow, Segment
from .grouping import KEY, NUMBERS, ROW, rows_of
from .packets import ACK, FIN, RST, SYN, Segments
from .table import ConnectionTable

KEY_BYTES: Final = 36
ROW_BYTES: Final = 100
PACKET: Final = 36
TS: Final = 44
SEQ: Final = 52
ACKED: Final = 60
AT: Final = 68
CAPTURED: Final = 76
ORIGINAL: Final = 84
FLAGS: Final = 92
"""Where the numbers of a row stand."""

assert (KEY.itemsize, ROW.itemsize, len(NUMBERS)) == (KEY_BYTES, ROW_BYTES, 8)


@final
class Reassembler:
    """Puts the connections of a capture together; `connections` counts them."""

    def __init__(self, limits: ReassemblyLimits = DEFAULT_REASSEMBLY) -> None:
        self._table: ConnectionTable = ConnectionTable(limits)

    @property
    def connections(self) -> int:
        return self._table.opened

    def feed(self, segments: Segments) -> list[Event]:
        """Take the segments of a block; returns what they tell, in order."""
        out: list[Event] = []
        table = self._table
        table.part()
        rows, data = rows_of(segments), segments.data
        flows = table.flows
        at: i64 = 0
        end: i64 = len(rows)
        while at < end:
            key = rows[at : at + KEY_BYTES]
            flow = flows.get(key)
            if flow is None or not self._continue(flow, rows, at, data, out):
                self._take(key, rows, at, data, out)
            at += ROW_BYTES
        if end:
            at = end - ROW_BYTES
            table.tidy(read_i64_le(rows, at + PACKET), read_i64_le(rows, at + TS), out)
        return out

    def finish(self) -> list[Event]:
        """Take note that the capture ends here."""
        out: list[Event] = []
        self._table.finish(out)
        return out

    def part(self) -> None:
        """Let go of the connections that are over, of which all events have been read."""
        self._table.part()

    def _continue(self, flow: Flow, rows: bytes, at: i64, data: bytes, out: list[Event]) -> bool:
        """Take a segment that just continues its side; False where it might do anything else."""
        size = read_i64_le(rows, at + ORIGINAL)
        if (
            read_i64_le(rows, at + SEQ) != flow.next_seq
            or read_i64_le(rows, at + FLAGS) & (SYN | FIN | RST | ACK) != ACK
            or read_i64_le(rows, at + CAPTURED) != size
            or flow.waiting
            or flow.origin == UNKNOWN
            or flow.fin_at != UNKNOWN
        ):
            return False
        connection, peer = flow.connection, flow.peer
        if connection.closed or connection.reset or peer is None:
            return False
        packet = read_i64_le(rows, at + PACKET)
        time_ns = read_i64_le(rows, at + TS)
        connection.seen(packet, time_ns)
        peer.acknowledge(read_i64_le(rows, at + ACKED), packet, time_ns, out)
        if size:
            start = read_i64_le(rows, at + AT)
            flow.append(data[start : start + size], packet, time_ns, packet, out)
            connection.outside = 0
            self._table.make_room(packet, time_ns, out)
        return True

    def _take(self, key: bytes, rows: bytes, at: i64, data: bytes, out: list[Event]) -> None:
        start = read_i64_le(rows, at + AT)
        packet = read_i64_le(rows, at + PACKET)
        time_ns = read_i64_le(rows, at + TS)
        segment = Segment(
            read_i64_le(rows, at + SEQ),
            read_i64_le(rows, at + ORIGINAL),
            data[start : start + read_i64_le(rows, at + CAPTURED)],
            read_i64_le(rows, at + FLAGS),
            read_i64_le(rows, at + ACKED),
            packet,
            time_ns,
        )
        flow = self._table.flow(key, segment, out)
        connection, flags = flow.connection, segment.flags
        connection.seen(packet, time_ns)
        if flags & SYN:
            self._open(flow, segment)
        elif flow.origin == UNKNOWN and not flags & RST:
            flow.join(segment.seq)
        if flags & ACK:
            peer = flow.peer
            assert peer is not None
            peer.acknowledge(segment.ack, packet, time_ns, out)
        if segment.size:
            self._take_payload(flow, segment, out)
        if flags & FIN:
            flow.end_at((segment.seq + segment.size) & MASK)
        if flow.waiting:
            flow.check(packet, time_ns, out)
        if flags & RST:
            self._table.reset(connection, time_ns)
        if flow.fin_at != UNKNOWN and connection.over:
            self._table.close(connection, CloseReason.FINISHED, packet, time_ns, out)

    def _open(self, flow: Flow, segment: Segment) -> None:
        flow.open(segment.seq)
        connection = flow.connection
        if connection.client is None:
            connection.client = 1 - flow.side if segment.flags & ACK else flow.side

    def _take_payload(self, flow: Flow, segment: Segment, out: list[Event]) -> None:
        connection = flow.connection
        syn = segment.flags & SYN != 0
        if syn:  # which counts as one byte
            segment.seq = (segment.seq + 1) & MASK
        if connection.closed or segment.flags & RST:
            flow.refuse(segment, DiscardReason.AFTER, out)
        elif flow.take(segment, out):
            connection.outside = 0
            self._table.make_room(segment.packet, segment.time_ns, out)
        else:
            connection.outside += 1
            flow.refuse(segment, DiscardReason.OUTSIDE, out)
        if syn:
            segment.seq = (segment.seq - 1) & MASK

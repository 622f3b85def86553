"""All connections of a capture: blocks of segments in, events out.

Law: what is said of a connection is said of its segments one by one, in the order of the capture.
Most of them continue their side and say nothing else: those go the short way, which says what the
long one would.

    segment --continues--> the bytes are delivered
       `-->  SYN, FIN, RST, holes, repeats, port reuse: the long way
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i64_le
from mypy_extensions import i64, mypyc_attr

from ..packets.parser import ACK, FIN, RST, SYN, Segments
from .connection_table import ConnectionTable
from .events import CloseReason, DiscardReason, Event
from .flow import MASK, UNKNOWN, Flow, Segment
from .limits import DEFAULT_REASSEMBLY, ReassemblyLimits
from .segment_columns import KEY, columns_of

KEY_BYTES: Final = 36
NUMBER: Final = 8
"""Bytes of a key and of a number in the columns."""

assert KEY.itemsize == KEY_BYTES


@final
@mypyc_attr(acyclic=True)
class Rows:
    """Segments by their index; `data` is what `at` points into."""

    def __init__(self, segments: Segments) -> None:
        columns = columns_of(segments)
        self.data: bytes = segments.data
        self.keys: bytes = columns[0]
        self.packets: bytes = columns[1]
        self.times: bytes = columns[2]
        self.seqs: bytes = columns[3]
        self.acks: bytes = columns[4]
        self.starts: bytes = columns[5]
        self.captured: bytes = columns[6]
        self.sizes: bytes = columns[7]
        self.flags: bytes = columns[8]

    def segment(self, index: i64) -> Segment:
        """Give one segment."""
        at = index * NUMBER
        start = read_i64_le(self.starts, at)
        return Segment(
            read_i64_le(self.seqs, at),
            read_i64_le(self.sizes, at),
            self.data[start : start + read_i64_le(self.captured, at)],
            read_i64_le(self.flags, at),
            read_i64_le(self.acks, at),
            read_i64_le(self.packets, at),
            read_i64_le(self.times, at),
        )


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
        flows = table.flows
        rows = Rows(segments)
        keys = rows.keys
        at: i64 = 0
        end: i64 = len(segments)
        while at < end:
            key = keys[at * KEY_BYTES : (at + 1) * KEY_BYTES]
            flow = flows.get(key)
            if flow is None or not self._continue(flow, rows, at, out):
                self._take(key, rows.segment(at), out)
            at += 1
        if end:
            last = (end - 1) * NUMBER
            table.tidy(read_i64_le(rows.packets, last), read_i64_le(rows.times, last), out)
        return out

    def finish(self) -> list[Event]:
        """Take note that the capture ends here."""
        out: list[Event] = []
        self._table.finish(out)
        return out

    def part(self) -> None:
        """Let go of the connections that are over, of which all events have been read."""
        self._table.part()

    def _continue(self, flow: Flow, rows: Rows, index: i64, out: list[Event]) -> bool:
        """Take a segment that just continues its side; False where it might do anything else."""
        at = index * NUMBER
        size = read_i64_le(rows.sizes, at)
        if (
            read_i64_le(rows.seqs, at) != flow.next_seq
            or read_i64_le(rows.flags, at) & (SYN | FIN | RST | ACK) != ACK
            or read_i64_le(rows.captured, at) != size
            or flow.waiting
            or flow.origin == UNKNOWN
            or flow.fin_at != UNKNOWN
        ):
            return False
        connection, peer = flow.connection, flow.peer
        if connection.closed or connection.reset or peer is None:
            return False
        packet = read_i64_le(rows.packets, at)
        time_ns = read_i64_le(rows.times, at)
        connection.seen(packet, time_ns)
        peer.acknowledge(read_i64_le(rows.acks, at), packet, time_ns, out)
        if size:
            start = read_i64_le(rows.starts, at)
            flow.append(rows.data[start : start + size], packet, time_ns, packet, out)
            connection.outside = 0
            self._table.make_room(packet, time_ns, out)
        return True

    def _take(self, key: bytes, segment: Segment, out: list[Event]) -> None:
        packet, time_ns = segment.packet, segment.time_ns
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
        end = (segment.seq + segment.size) & MASK
        if segment.size:
            if flags & SYN:  # which counts as a byte before them
                segment.seq = (segment.seq + 1) & MASK
            self._take_payload(flow, segment, out)
        if flags & FIN:
            flow.end_at(end)
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
        if connection.closed or segment.flags & RST:
            flow.refuse(segment, DiscardReason.AFTER, out)
        elif flow.take(segment, out):
            connection.outside = 0
            self._table.make_room(segment.packet, segment.time_ns, out)
        else:
            connection.outside += 1
            flow.refuse(segment, DiscardReason.OUTSIDE, out)

"""Reassembles all TCP connections of a capture: blocks of segments in, events out.

Segments are handled one by one, in the order of the capture. Most segments just continue their
stream; they take a fast path, whose events are those of the slow path.

    segment --in order--> fast path: deliver the bytes
       `--SYN, FIN, RST, out of order, retransmission, port reuse--> slow path
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import read_i64_le
from mypy_extensions import i64

from ..files.blocks import NO_TIME
from ..packets.segment_rows import (
    ACK,
    ACK_AT,
    CAPTURED_AT,
    FIN,
    FLAGS_AT,
    KEY_BYTES,
    NUMBERS_BYTES,
    PACKET_AT,
    PAYLOAD_AT,
    RST,
    SEQ_AT,
    SIZE_AT,
    SYN,
    TIME_AT,
    WINDOW,
    WINDOW_SHIFT,
    SegmentRows,
)
from .connection import UNKNOWN, Connection
from .connection_table import ConnectionTable
from .events import CloseReason, DiscardReason, Event
from .flow import MASK, Flow, Segment
from .limits import DEFAULT_REASSEMBLY, ReassemblyLimits

if TYPE_CHECKING:
    from ..packets.segments import Segments


ALL: Final = -1
"""Up to the last segment of a block."""


def _segment(rows: SegmentRows, index: i64) -> Segment:
    """Return one segment."""
    numbers, offset = rows.numbers, index * NUMBERS_BYTES
    start = read_i64_le(numbers, offset + PAYLOAD_AT)
    return Segment(
        read_i64_le(numbers, offset + SEQ_AT),
        read_i64_le(numbers, offset + SIZE_AT),
        rows.data[start : start + read_i64_le(numbers, offset + CAPTURED_AT)],
        read_i64_le(numbers, offset + FLAGS_AT),
        read_i64_le(numbers, offset + ACK_AT),
        read_i64_le(numbers, offset + PACKET_AT),
        read_i64_le(numbers, offset + TIME_AT),
    )


@final
class Reassembler:
    """Reassembles the connections of a capture."""

    def __init__(self, limits: ReassemblyLimits = DEFAULT_REASSEMBLY) -> None:
        self._table: ConnectionTable = ConnectionTable(limits)

    @property
    def opened(self) -> int:
        """The number of connections so far."""
        return self._table.opened

    @property
    def connections(self) -> list[Connection]:
        """The connections that are still tracked; closed ones until a new one replaces them."""
        return [flow.connection for flow in self._table.flows.values() if flow.side == 0]

    @property
    def table(self) -> ConnectionTable:
        """The tracked connections."""
        return self._table

    def handle(
        self, segments: Segments | SegmentRows | None, start: i64 = 0, end: i64 = ALL
    ) -> list[Event]:
        """Handle the segments of a block, or with None the end of the capture.

        start, end: the segments of the block that are handled, others are handled elsewhere; from
        the end on, only the limits of all connections are enforced. Returns the events in order; at
        the end of the capture, all connections are closed.
        """
        out: list[Event] = []
        table = self._table
        if segments is None:
            table.finish(out)
            table.release()
            return out
        rows = segments if isinstance(segments, SegmentRows) else segments.rows()
        last: i64 = len(rows)
        self._take(rows, start, last if end == ALL else end, out)
        if end == ALL or start == last:
            if last:
                numbers, offset = rows.numbers, (last - 1) * NUMBERS_BYTES
                packet = read_i64_le(numbers, offset + PACKET_AT)
                time_ns = read_i64_le(numbers, offset + TIME_AT)
                table.enforce_limits(packet, time_ns, out)
            table.release()
        return out

    def _take(self, rows: SegmentRows, index: i64, end: i64, out: list[Event]) -> None:
        flows = self._table.flows
        keys = rows.keys
        while index < end:
            key = keys[index * KEY_BYTES : (index + 1) * KEY_BYTES]
            flow = flows.get(key)
            if flow is None or not self._continue(flow, rows, index, out):
                self._handle(key, _segment(rows, index), out)
            index += 1

    def _continue(self, flow: Flow, rows: SegmentRows, index: i64, out: list[Event]) -> bool:
        """Handle a segment that just continues its stream; False: it needs the slow path."""
        numbers, offset = rows.numbers, index * NUMBERS_BYTES
        size, flags = (
            read_i64_le(numbers, offset + SIZE_AT),
            read_i64_le(numbers, offset + FLAGS_AT),
        )
        if (
            read_i64_le(numbers, offset + SEQ_AT) != flow.next_seq
            or flags & (SYN | FIN | RST | ACK) != ACK
            or not flags & WINDOW
            or flow.is_examined
            or read_i64_le(numbers, offset + CAPTURED_AT) != size
            or flow.waiting
            or flow.origin == UNKNOWN
            or flow.fin_at != UNKNOWN
        ):
            return False
        connection, peer = flow.connection, flow.peer
        if connection.closed or connection.reset or peer is None:
            return False
        packet = read_i64_le(numbers, offset + PACKET_AT)
        time_ns = read_i64_le(numbers, offset + TIME_AT)
        connection.seen(packet, time_ns)
        peer.acknowledge(read_i64_le(numbers, offset + ACK_AT), packet, time_ns, out)
        if size:
            start = read_i64_le(numbers, offset + PAYLOAD_AT)
            flow.append(rows.data[start : start + size], packet, time_ns, packet, out)
            connection.out_of_window = 0
            self._table.enforce_byte_limit(packet, time_ns, out)
        return True

    def _handle(self, key: bytes, segment: Segment, out: list[Event]) -> None:
        packet, time_ns = segment.packet, segment.time_ns
        flow = self._table.flow(key, segment, out)
        connection, flags = flow.connection, segment.flags
        connection.seen(packet, time_ns)
        _note_starts(connection, flow.side, segment)
        _measure(flow, segment)
        if flags & SYN:
            self._open(flow, segment)
        elif flow.origin == UNKNOWN and not flags & RST:
            flow.start_midstream(segment.seq)
        if flags & ACK:
            peer = flow.peer
            assert peer is not None
            peer.acknowledge(segment.ack, packet, time_ns, out)
        end = (segment.seq + segment.size) & MASK
        if segment.size:
            if flags & SYN:  # the SYN occupies one sequence number before the payload
                segment.seq = (segment.seq + 1) & MASK
            self._handle_payload(flow, segment, out)
        if flags & FIN:
            flow.handle_fin(end)
        if flow.waiting:
            flow.check_gaps(packet, time_ns, out)
        if flags & RST:
            self._table.reset(connection, time_ns)
        if flow.fin_at != UNKNOWN and flow.both_closed:
            self._table.close(flow, CloseReason.FINISHED, packet, time_ns, out)

    def _open(self, flow: Flow, segment: Segment) -> None:
        flow.open(segment.seq)
        connection = flow.connection
        if connection.client is None:
            connection.client = 1 - flow.side if segment.flags & ACK else flow.side

    def _handle_payload(self, flow: Flow, segment: Segment, out: list[Event]) -> None:
        connection = flow.connection
        if connection.closed or segment.flags & RST:
            flow.reject(segment, DiscardReason.AFTER, out)
        elif flow.take(segment, out):
            connection.out_of_window = 0
            self._table.enforce_byte_limit(segment.packet, segment.time_ns, out)
        else:
            connection.out_of_window += 1
            flow.reject(segment, DiscardReason.OUTSIDE, out)


def _measure(flow: Flow, segment: Segment) -> None:
    """Note the times of the handshake, the maximum segment size and zero windows of a side."""
    connection, flags, time_ns = flow.connection, segment.flags, segment.time_ns
    if connection.closed or flags & RST:
        return
    receiver = connection.receivers[flow.side]
    if flags & SYN:
        receiver.mss = (flags & WINDOW) >> WINDOW_SHIFT
        connection.note_syn(flags & ACK != 0, time_ns)
        if flags & ACK and flow.peer is not None:
            flow.peer.is_examined = True
        return
    if connection.established_ns == NO_TIME and flow.side == connection.client:
        connection.established_ns = time_ns
    if flags & FIN:
        if not receiver.finished:
            receiver.finished, receiver.finished_ns = True, time_ns
    else:
        receiver.set_window(not flags & WINDOW, time_ns)
    flow.is_examined = receiver.is_closed


def _note_starts(connection: Connection, side: i64, segment: Segment) -> None:
    """Note the first sequence number of each side."""
    starts = connection.starts
    if starts[side] == UNKNOWN:
        starts[side] = (segment.seq + (1 if segment.flags & SYN else 0)) & MASK
    if segment.flags & ACK and starts[1 - side] == UNKNOWN:
        starts[1 - side] = segment.ack

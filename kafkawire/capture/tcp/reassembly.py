"""Reassembles all TCP connections of a capture: blocks of segments in, events out.

Law: segments are handled one by one, in the order of the capture. Most segments just continue their
stream; they take a fast path, whose events are those of the slow path.

    block of segments --columns_of--> bytes, which are read without creating Python integers:
    keys    | source: address, port; destination: address, port | ...     36 bytes each
    others  | packet | packet | ...                                       little-endian int64 each

    segment --in order--> fast path: deliver the bytes
       `--SYN, FIN, RST, out of order, retransmission, port reuse--> slow path
"""

from __future__ import annotations

from typing import Any, Final, final

import numpy as np
from librt.strings import read_i64_le
from mypy_extensions import i64, mypyc_attr

from ..packets.parser import ACK, FIN, RST, SYN, Segments
from .connection import Connection
from .connection_table import ConnectionTable
from .events import CloseReason, DiscardReason, Event
from .flow import MASK, UNKNOWN, Flow, Segment
from .limits import DEFAULT_REASSEMBLY, ReassemblyLimits

KEY: Final = np.dtype(
    [
        ("source_high", "u8"),
        ("source_low", "u8"),
        ("source_port", "u2"),
        ("destination_high", "u8"),
        ("destination_low", "u8"),
        ("destination_port", "u2"),
    ]
)
"""The key of a flow: it identifies one direction of a connection."""

NUMBERS: Final = ("packet", "ts", "seq", "ack", "at", "captured", "original", "flags")

KEY_BYTES: Final = 36
NUMBER: Final = 8
"""Bytes of a key, and of a number, in the columns."""

assert KEY.itemsize == KEY_BYTES


def columns_of(segments: Segments) -> tuple[bytes, ...]:
    """Return the keys of segments, and the columns NUMBERS."""
    keys: np.ndarray[Any, Any] = np.empty(len(segments), KEY)
    keys["source_high"], keys["source_low"] = segments.source_high, segments.source_low
    keys["destination_high"] = segments.destination_high
    keys["destination_low"] = segments.destination_low
    keys["source_port"], keys["destination_port"] = segments.ports >> 16, segments.ports & 0xFFFF
    columns: list[np.ndarray[Any, Any]] = [keys]
    columns += [getattr(segments, name).astype("<i8", copy=False) for name in NUMBERS]
    if (segments.packet[1:] < segments.packet[:-1]).any():
        order = np.argsort(segments.packet, kind="stable")
        columns = [column[order] for column in columns]
    return tuple(column.tobytes() for column in columns)


@final
@mypyc_attr(acyclic=True)
class SegmentRows:
    """Access to segments by index; `data`: the buffer that the column `at` refers to."""

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
        """Return one segment."""
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

    def handle(self, segments: Segments | None) -> list[Event]:
        """Handle the segments of a block, or with None the end of the capture.

        Returns the events in order; at the end of the capture, all connections are closed.
        """
        out: list[Event] = []
        table = self._table
        if segments is None:
            table.finish(out)
        else:
            self._take(segments, out)
        table.release()
        return out

    def _take(self, segments: Segments, out: list[Event]) -> None:
        table = self._table
        flows = table.flows
        rows = SegmentRows(segments)
        keys = rows.keys
        at: i64 = 0
        end: i64 = len(segments)
        while at < end:
            key = keys[at * KEY_BYTES : (at + 1) * KEY_BYTES]
            flow = flows.get(key)
            if flow is None or not self._continue(flow, rows, at, out):
                self._handle(key, rows.segment(at), out)
            at += 1
        if end:
            last = (end - 1) * NUMBER
            table.enforce_limits(
                read_i64_le(rows.packets, last), read_i64_le(rows.times, last), out
            )

    def _continue(self, flow: Flow, rows: SegmentRows, index: i64, out: list[Event]) -> bool:
        """Handle a segment that just continues its stream; False: it needs the slow path."""
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
            connection.out_of_window = 0
            self._table.enforce_byte_limit(packet, time_ns, out)
        return True

    def _handle(self, key: bytes, segment: Segment, out: list[Event]) -> None:
        packet, time_ns = segment.packet, segment.time_ns
        flow = self._table.flow(key, segment, out)
        connection, flags = flow.connection, segment.flags
        connection.seen(packet, time_ns)
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

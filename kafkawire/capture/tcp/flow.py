"""Reassembles one direction of a TCP connection: segments in any order in, runs and gaps out.

Reassembly waits for missing bytes until the gap policy gives them up; every captured payload
byte is delivered, or counted as a duplicate, a keep-alive or a conflict, or reported as discarded.

    delivered or given up | next expected byte --> . . gap . . [out-of-order segments]

No I/O: time and packets are arguments. Source: RFC 9293 (keep-alive probes: section 3.8.4).
"""

# over 300 lines: one state machine, reassembly of a direction, hot

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter, read_i64_le, write_i64_le
from mypy_extensions import i64, mypyc_attr

from .connection import UNKNOWN, Connection, Run, Totals
from .events import Conflict, Discarded, DiscardReason, Event, Gap, GapReason
from .gap_policy import GapPolicy
from .limits import ReassemblyLimits
from .out_of_order import Held, OutOfOrderSegments
from .retransmission import DeliveredBytes, differences

MASK: Final = (1 << 32) - 1
PSH: Final = 0x08


@final
@mypyc_attr(acyclic=True)
class Segment:
    """A TCP segment: `size` payload bytes at sequence number `seq`; `data`: those captured."""

    __slots__ = ("ack", "data", "flags", "packet", "seq", "size", "time_ns")

    def __init__(
        self, seq: i64, size: i64, data: bytes, flags: i64, ack: i64, packet: i64, time_ns: i64
    ) -> None:
        self.seq: i64 = seq
        self.size: i64 = size
        self.data: bytes = data
        self.flags: i64 = flags
        self.ack: i64 = ack
        self.packet: i64 = packet
        self.time_ns: i64 = time_ns


@final
class Budget:
    """Bytes that all flows together buffer, and the flows with out-of-order data."""

    def __init__(self) -> None:
        self.held: i64 = 0
        self.remembered: i64 = 0
        self.holding: dict[Flow, None] = {}


@final
class Flow:
    """One direction of a connection.

    peer: the other direction; None after `release`. position: the stream position of the next
    expected byte; next_seq: its sequence number. initial: the sequence number of the SYN, UNKNOWN
    if it was not captured. origin: the sequence number of position 0, UNKNOWN before the first
    segment. acked: the position up to which the peer acknowledged. fin_at: the position of the FIN;
    fin_acked: whether the peer acknowledged it. is_examined: whether the next segment of this side
    matters for what is measured: it may end the handshake, or open a window again.
    """

    __slots__ = (
        "_budget",
        "_delivered",
        "_gap_policy",
        "_limits",
        "_out_of_order",
        "_peer_ack",
        "acked",
        "connection",
        "fin_acked",
        "fin_at",
        "initial",
        "is_examined",
        "next_seq",
        "origin",
        "peer",
        "position",
        "side",
        "totals",
        "waiting",
    )

    def __init__(
        self, connection: Connection, side: i64, limits: ReassemblyLimits, budget: Budget
    ) -> None:
        self.connection: Connection = connection
        self.peer: Flow | None = None
        self.waiting: bool = False
        self.is_examined: bool = False
        self.fin_acked: bool = False
        self.side: i64 = side
        self.origin: i64 = UNKNOWN
        self.initial: i64 = UNKNOWN
        self.fin_at: i64 = UNKNOWN
        self.next_seq: i64 = 0
        self.position: i64 = 0
        self.acked: i64 = 0
        self.totals: Totals = connection.totals[side]
        self._limits: ReassemblyLimits = limits
        self._budget: Budget = budget
        self._delivered: DeliveredBytes = DeliveredBytes(limits.remembered_bytes)
        # created when first needed, which is rare
        self._out_of_order: OutOfOrderSegments | None = None
        self._gap_policy: GapPolicy | None = None
        self._peer_ack: i64 = UNKNOWN

    # -- state

    @property
    def has_origin(self) -> bool:
        return self.origin != UNKNOWN

    @property
    def held_bytes(self) -> int:
        return 0 if self._out_of_order is None else self._out_of_order.bytes

    @property
    def finished(self) -> bool:
        return self.fin_at != UNKNOWN and self.position >= self.fin_at

    @property
    def both_finished(self) -> bool:
        """Whether all data up to the FINs of both directions was delivered or given up."""
        peer = self.peer
        return peer is not None and self.finished and peer.finished

    @property
    def both_closed(self) -> bool:
        """Whether both directions are finished and both FINs were acknowledged."""
        peer = self.peer
        return peer is not None and self.fin_acked and peer.fin_acked and self.both_finished

    def release(self) -> None:
        """Break the reference cycle of both directions when the connection is no longer needed."""
        self.peer = None

    def position_of(self, seq: i64) -> i64:
        """Convert a sequence number to the stream position nearest to the next expected byte."""
        return self.position + ((seq - self.next_seq + (1 << 31)) & MASK) - (1 << 31)

    # -- segments that are handled elsewhere

    @property
    def is_in_order(self) -> bool:
        """Whether nothing is missing, and the stream goes on."""
        policy = self._gap_policy
        return (
            self.origin != UNKNOWN
            and self.fin_at == UNKNOWN
            and not self.waiting
            and not self.is_examined
            and (policy is None or policy.is_idle)
        )

    def save(self, out: BytesWriter) -> bytes:
        """Write what segments in order change, as int64; return the delivered bytes."""
        write_i64_le(out, self.next_seq)
        write_i64_le(out, self.position)
        write_i64_le(out, self.acked)
        write_i64_le(out, self._peer_ack)
        write_i64_le(out, 0)  # bytes delivered since
        return self._delivered.save()

    def restore(self, state: bytes, offset: i64, delivered: bytes) -> None:
        """Continue behind segments that were handled elsewhere. state: as `save` writes it."""
        self.next_seq = read_i64_le(state, offset)
        self.position = read_i64_le(state, offset + 8)
        self.acked = read_i64_le(state, offset + 16)
        self._peer_ack = read_i64_le(state, offset + 24)
        size = read_i64_le(state, offset + 32)
        if size:
            self.totals.delivered += size
            self.connection.out_of_window = 0
            self._delivered.restore(self.position, delivered)

    # -- segments

    def open(self, initial: i64) -> None:
        """Handle a SYN: position 0 is the byte after it."""
        self.initial = initial
        self.connection.syn_seen[self.side] = True
        if self.origin == UNKNOWN:
            self._set_origin((initial + 1) & MASK)

    def start_midstream(self, seq: i64) -> None:
        """Begin in the middle of a stream: at this segment, or at what the peer acknowledged.

        The peer's acknowledgment number is used if it is known and close before this segment.
        """
        expected = self._peer_ack
        near = expected != UNKNOWN and (seq - expected) & MASK <= self._limits.max_held_bytes
        self._set_origin(expected if near else seq)

    def _set_origin(self, seq: i64) -> None:
        self.origin = self.next_seq = seq

    def take(self, segment: Segment, out: list[Event]) -> bool:
        """Handle a segment of at least one byte.

        Returns False, and does nothing, if the segment is too far out of the window.
        """
        size, data = segment.size, segment.data
        packet, time_ns = segment.packet, segment.time_ns
        start = self.position_of(segment.seq)
        if start == 1 and self.position == 0 and self.initial == UNKNOWN and not self.waiting:
            # The stream began at an empty keep-alive probe, one byte before the next byte.
            self._set_origin(segment.seq)
            start = 0
        if start == self.position and len(data) == size and not self.waiting:
            self.append(data, packet, time_ns, packet, out)
            return True
        ahead, window = start - self.position, i64(self._limits.max_window_bytes)
        if ahead > window or -ahead > window:
            return False
        if size == 1 and self._is_keep_alive(start, data, segment.flags):
            self.totals.keep_alive += len(data)
            return True
        before = min(max(self.position - start, 0), size)
        if before:
            self._retransmitted(start, data[:before], packet, time_ns, out)
        if before < size:
            self._store(start + before, start + size, data[before:], packet, time_ns, out)
        return True

    def append(
        self, data: bytes, packet: i64, time_ns: i64, known_at: i64, out: list[Event]
    ) -> None:
        """Deliver bytes at the next expected position."""
        out.append(Run(self.connection, self.side, self.position, data, packet, time_ns, known_at))
        size: i64 = len(data)
        self.totals.delivered += size
        self.position += size
        self.next_seq = (self.next_seq + size) & MASK
        delivered, budget = self._delivered, self._budget
        budget.remembered -= delivered.stored
        delivered.deliver(data)
        budget.remembered += delivered.stored
        policy = self._gap_policy
        if policy is not None:
            policy.moved(self.position)

    def acknowledge(self, ack: i64, packet: i64, time_ns: i64, out: list[Event]) -> None:
        """Handle an acknowledgment number of the peer."""
        self._peer_ack = ack
        if self.origin == UNKNOWN:
            return
        acked = self.position_of(ack)
        if self.fin_at != UNKNOWN and acked > self.fin_at:
            self.fin_acked = True
            acked = self.fin_at
        if self.acked < acked and acked <= self.position + self._limits.max_window_bytes:
            self.acked = acked
            if acked > self.position:
                self._policy().acknowledged(acked, time_ns)
        if self.waiting:
            self.check_gaps(packet, time_ns, out)

    def handle_fin(self, seq: i64) -> None:
        """Handle a FIN with this sequence number: it ends the stream."""
        end = self.position_of(seq)
        ahead = end - self.position
        if self.fin_at == UNKNOWN and ahead >= 0 and ahead <= self._limits.max_window_bytes:
            self.fin_at = end
            self.fin_acked = self._peer_ack != UNKNOWN and self.position_of(self._peer_ack) > end
            self.acked = min(self.acked, end)

    def check_gaps(self, packet: i64, time_ns: i64, out: list[Event]) -> None:
        """Give up the gaps that the gap policy does not wait for any longer."""
        segments = self._out_of_order
        while segments is not None and (piece := segments.first()) is not None:
            reason = self._policy().check(piece, segments, time_ns)
            if reason is None:
                return
            self._give_up(piece, reason, packet, time_ns, out)

    def give_up_gap(self, packet: i64, time_ns: i64, out: list[Event]) -> None:
        """Give up the first gap to free memory."""
        gap = None if self._out_of_order is None else self._out_of_order.first()
        if gap is not None:
            self._give_up(gap, GapReason.LIMIT, packet, time_ns, out)

    def finish(self, packet: i64, time_ns: i64, out: list[Event]) -> None:
        """Give up all missing bytes, also acknowledged ones behind the last captured byte."""
        segments = self._out_of_order
        while segments is not None and (piece := segments.first()) is not None:
            self._give_up(piece, GapReason.END, packet, time_ns, out)
        if self.fin_at > self.position:
            self._skip(self.fin_at, GapReason.END, packet, time_ns, out)
        elif self.acked > self.position + 1:
            # A single acknowledged byte behind the data would be a FIN that was not captured.
            self._skip(self.acked, GapReason.LOST, packet, time_ns, out)
        self.drop_delivered()

    def drop_delivered(self) -> None:
        """Drop the delivered bytes that retransmissions are compared with."""
        self._budget.remembered -= self._delivered.stored
        self._delivered.clear()

    def reject(self, segment: Segment, reason: DiscardReason, out: list[Event]) -> None:
        """Count a segment that does not belong to the stream.

        It may still be a retransmission of delivered bytes. The totals of a closed connection
        are final: there, it is a reason of its own.
        """
        start, data = self.position_of(segment.seq), segment.data
        packet, time_ns = segment.packet, segment.time_ns
        if start >= 0 and start + segment.size <= self.position:
            if not self.connection.closed:
                self._retransmitted(start, data, packet, time_ns, out)
                return
            if not self._delivered.compare(start, data).late:
                reason = DiscardReason.REPEATED
        self._discard(start, len(data), reason, packet, time_ns, out)

    def _policy(self) -> GapPolicy:
        policy = self._gap_policy
        if policy is None:
            policy = self._gap_policy = GapPolicy(self._limits)
        return policy

    # -- gaps

    def _give_up(
        self, gap_end: i64, reason: GapReason, packet: i64, time_ns: i64, out: list[Event]
    ) -> None:
        self._skip(gap_end, reason, packet, time_ns, out)
        self._deliver_contiguous(packet, time_ns, out, behind_gap=True)

    def _skip(
        self, end: i64, reason: GapReason, packet: i64, time_ns: i64, out: list[Event]
    ) -> None:
        """Report a gap from the next expected position to `end`."""
        size = end - self.position
        start = self.position
        out.append(Gap(self.connection, self.side, start, size, reason, packet, time_ns))
        self.totals.missing += size
        self.position = end
        self.next_seq = (self.next_seq + size) & MASK
        self.drop_delivered()
        self._delivered.skip(end)
        self._policy().moved(end)

    def _store(
        self, start: i64, end: i64, data: bytes, packet: i64, time_ns: i64, out: list[Event]
    ) -> None:
        """Store an out-of-order segment, then deliver contiguous data."""
        budget, segments = self._budget, self._out_of_order
        if segments is None:
            segments = self._out_of_order = OutOfOrderSegments()
        budget.held -= segments.bytes
        for overlap in segments.add(Held(start, data, packet, time_ns)):
            differing = differences(overlap.data, overlap.existing)
            self.totals.duplicate += len(overlap.data) - len(differing)
            if differing:
                position = overlap.start + differing[0]
                self._conflict(position, len(differing), packet, time_ns, out)
        budget.held += segments.bytes
        budget.holding[self] = None
        if start + len(data) < end:
            segments.cut(start + len(data), end)
        self._deliver_contiguous(packet, time_ns, out)
        if self.waiting:
            self.check_gaps(packet, time_ns, out)

    def _deliver_contiguous(
        self, packet: i64, time_ns: i64, out: list[Event], *, behind_gap: bool = False
    ) -> None:
        """Deliver held bytes that continue the stream; report ranges that the snaplen cut off."""
        segments = self._out_of_order
        assert segments is not None
        while True:
            ready = segments.take(self.position)
            if ready:
                self._deliver(ready, packet, time_ns, behind_gap, out)
                continue
            cut = segments.take_cut(self.position)
            if cut == self.position:
                break
            self._skip(cut, GapReason.CUT, packet, time_ns, out)
            behind_gap = True
        self.waiting = len(segments) > 0
        if not segments.bytes:
            self._budget.holding.pop(self, None)

    def _deliver(
        self, ready: list[Held], packet: i64, time_ns: i64, behind_gap: bool, out: list[Event]
    ) -> None:
        """Deliver held bytes.

        The current packet made them contiguous; behind a gap that was given up, each segment's own
        packet did, or a later packet before it in the stream.
        """
        if not behind_gap:
            data = ready[0].data if len(ready) == 1 else b"".join([held.data for held in ready])
            self._budget.held -= len(data)
            self.append(data, packet, time_ns, packet, out)
            return
        last: i64 = 0
        last_ns: i64 = 0
        for held in ready:
            if last <= held.packet:
                last, last_ns = held.packet, held.time_ns
            self._budget.held -= len(held.data)
            self.append(held.data, last, last_ns, packet, out)

    # -- retransmissions

    def _is_keep_alive(self, start: i64, data: bytes, flags: i64) -> bool:
        """Whether a byte is a keep-alive probe: often garbage at an acknowledged position."""
        if start < self.position:
            existing = self._delivered.last(self.position - start)
            return data != existing if existing else start == self.position - 1
        return self.acked > start and not flags & PSH

    def _retransmitted(
        self, start: i64, data: bytes, packet: i64, time_ns: i64, out: list[Event]
    ) -> None:
        """Count bytes before the next expected position."""
        repeated = self._delivered.compare(start, data)
        self.totals.duplicate += repeated.duplicate
        self._discard(start, repeated.before, DiscardReason.BEFORE, packet, time_ns, out)
        for position, size in repeated.late:
            self._discard(position, size, DiscardReason.LATE, packet, time_ns, out)
        if repeated.conflicting:
            self._conflict(repeated.conflict_at, repeated.conflicting, packet, time_ns, out)

    def _conflict(
        self, position: i64, size: i64, packet: i64, time_ns: i64, out: list[Event]
    ) -> None:
        self.totals.conflicting += size
        out.append(Conflict(self.connection, self.side, position, size, packet, time_ns))

    def _discard(
        self,
        position: i64,
        size: i64,
        reason: DiscardReason,
        packet: i64,
        time_ns: i64,
        out: list[Event],
    ) -> None:
        if size:
            self.totals.discarded += size
            event = Discarded(self.connection, self.side, position, size, reason, packet, time_ns)
            out.append(event)

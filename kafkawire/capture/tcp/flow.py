"""TCP reassembly of one direction: segments in any order in, runs of bytes and explicit gaps out.

Law: a hole is waited for until it is certain that it stays one; every payload byte captured is
delivered, or counted as a duplicate, a keep-alive or a conflict, or reported as discarded.

    everything before is delivered or given up | awaited position --> . . hole . . [backlog]

Pure logic; time and packets come in as arguments. Source: RFC 9293 (keep-alive probes: section
3.8.4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, mypyc_attr

from .events import Conflict, Discarded, DiscardReason, Event, Gap, GapReason
from .gap_policy import GapPolicy
from .limits import Budget, ReassemblyLimits, Totals
from .out_of_order import Held, OutOfOrderSegments
from .retransmission import DeliveredBytes, differences
from .run import Run

if TYPE_CHECKING:
    from .connection import Connection

MASK: Final = (1 << 32) - 1
PSH: Final = 0x08
UNKNOWN: Final = -1


@final
@mypyc_attr(acyclic=True)
class Segment:
    """A TCP segment: `size` bytes from sequence number `seq` on, of which `data` was captured."""

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
class Flow:
    """One direction of a connection.

    peer: the other one; None once the connection has let go of both. position: stream position of
    the next byte awaited; next_seq: its sequence number. initial: the sequence number of the SYN,
    UNKNOWN where it was not seen. origin: that of position 0, UNKNOWN before anything was seen.
    acked: up to where the peer is known to have received. fin_at: where the side ends; fin_acked:
    whether the peer has acknowledged that.
    """

    __slots__ = (
        "_backlog",
        "_budget",
        "_limits",
        "_past",
        "_patience",
        "_peer_ack",
        "acked",
        "connection",
        "fin_acked",
        "fin_at",
        "initial",
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
        self.fin_acked: bool = False
        self.side: i64 = side
        self.origin: i64 = UNKNOWN
        self.initial: i64 = UNKNOWN
        self.fin_at: i64 = UNKNOWN
        self.next_seq: i64 = 0
        self.position: i64 = 0
        self.acked: i64 = 0
        self.totals: Totals = Totals()
        self._limits: ReassemblyLimits = limits
        self._budget: Budget = budget
        self._past: DeliveredBytes = DeliveredBytes(limits.remembered_bytes)
        # nearly no flow needs these two
        self._backlog: OutOfOrderSegments | None = None
        self._patience: GapPolicy | None = None
        self._peer_ack: i64 = UNKNOWN

    # -- what is known

    @property
    def anchored(self) -> bool:
        return self.origin != UNKNOWN

    @property
    def held_bytes(self) -> int:
        return 0 if self._backlog is None else self._backlog.bytes

    @property
    def finished(self) -> bool:
        return self.fin_at != UNKNOWN and self.position >= self.fin_at

    def where(self, seq: i64) -> i64:
        """Turn a sequence number into the stream position nearest to the awaited one."""
        return self.position + ((seq - self.next_seq + (1 << 31)) & MASK) - (1 << 31)

    # -- segments

    def open(self, initial: i64) -> None:
        """Take note of a SYN: position 0 is the byte after it."""
        self.initial = initial
        if self.origin == UNKNOWN:
            self._anchor((initial + 1) & MASK)

    def join(self, seq: i64) -> None:
        """Begin in the middle: at what the peer still awaits, if that is known and near, else at
        this segment.
        """
        awaited = self._peer_ack
        near = awaited != UNKNOWN and (seq - awaited) & MASK <= self._limits.max_held_bytes
        self._anchor(awaited if near else seq)

    def _anchor(self, seq: i64) -> None:
        self.origin = self.next_seq = seq

    def take(self, segment: Segment, out: list[Event]) -> bool:
        """Take a segment of at least one byte.

        False if it is too far from everything else to belong here; then nothing was done.
        """
        size, data = segment.size, segment.data
        packet, time_ns = segment.packet, segment.time_ns
        start = self.where(segment.seq)
        if start == 1 and self.position == 0 and self.initial == UNKNOWN and not self.waiting:
            # Joined at an empty keep-alive probe, which stands one byte before the next.
            self._anchor(segment.seq)
            start = 0
        if start == self.position and len(data) == size and not self.waiting:
            self.append(data, packet, time_ns, packet, out)
            return True
        ahead, most = start - self.position, i64(self._limits.max_window_bytes)
        if ahead > most or -ahead > most:
            return False
        if size == 1 and self._is_probe(start, data, segment.flags):
            self.totals.keep_alive += len(data)
            return True
        before = min(max(self.position - start, 0), size)
        if before:
            self._again(start, data[:before], packet, time_ns, out)
        if before < size:
            self._keep(start + before, start + size, data[before:], packet, time_ns, out)
        return True

    def append(self, data: bytes, packet: i64, time_ns: i64, known: i64, out: list[Event]) -> None:
        """Deliver bytes that begin at the awaited position."""
        out.append(Run(self.connection, self.side, self.position, data, packet, time_ns, known))
        size: i64 = len(data)
        self.totals.delivered += size
        self.position += size
        self.next_seq = (self.next_seq + size) & MASK
        past, budget = self._past, self._budget
        budget.remembered -= past.kept
        past.deliver(data)
        budget.remembered += past.kept
        patience = self._patience
        if patience is not None:
            patience.moved(self.position)

    def acknowledge(self, ack: i64, packet: i64, time_ns: i64, out: list[Event]) -> None:
        """Take note that the peer awaits sequence number `ack`."""
        self._peer_ack = ack
        if self.origin == UNKNOWN:
            return
        acked = self.where(ack)
        if self.fin_at != UNKNOWN and acked > self.fin_at:
            self.fin_acked = True
            acked = self.fin_at
        if self.acked < acked and acked <= self.position + self._limits.max_window_bytes:
            self.acked = acked
            if acked > self.position:
                self._waited().acknowledged(acked, time_ns)
        if self.waiting:
            self.check(packet, time_ns, out)

    def end_at(self, seq: i64) -> None:
        """Take note of a FIN: the side ends before this sequence number."""
        end = self.where(seq)
        ahead = end - self.position
        if self.fin_at == UNKNOWN and ahead >= 0 and ahead <= self._limits.max_window_bytes:
            self.fin_at = end
            self.fin_acked = self._peer_ack != UNKNOWN and self.where(self._peer_ack) > end
            self.acked = min(self.acked, end)

    def check(self, packet: i64, time_ns: i64, out: list[Event]) -> None:
        """Give up the holes that are certain to stay."""
        backlog = self._backlog
        while backlog is not None and (known := backlog.first()) is not None:
            reason = self._waited().verdict(known, backlog, time_ns)
            if reason is None:
                return
            self._give_up(known, reason, packet, time_ns, out)

    def give_up_hole(self, packet: i64, time_ns: i64, out: list[Event]) -> None:
        """Give up the first hole, for want of room."""
        known = None if self._backlog is None else self._backlog.first()
        if known is not None:
            self._give_up(known, GapReason.LIMIT, packet, time_ns, out)

    def finish(self, packet: i64, time_ns: i64, out: list[Event]) -> None:
        """Give up everything awaited, also what the peer acknowledged and was never seen."""
        backlog = self._backlog
        while backlog is not None and (known := backlog.first()) is not None:
            self._give_up(known, GapReason.END, packet, time_ns, out)
        if self.fin_at > self.position:
            self._skip(self.fin_at, GapReason.END, packet, time_ns, out)
        elif self.acked > self.position + 1:
            # One byte more than was seen would be a FIN that was not captured.
            self._skip(self.acked, GapReason.LOST, packet, time_ns, out)
        self.forget()

    def forget(self) -> None:
        """Stop remembering bytes for comparison."""
        self._budget.remembered -= self._past.kept
        self._past.forget()

    def refuse(self, segment: Segment, reason: DiscardReason, out: list[Event]) -> None:
        """Account for a segment that is not taken; a repetition of delivered bytes is just that,
        unless the connection is closed, and told about.
        """
        start, data = self.where(segment.seq), segment.data
        packet, time_ns = segment.packet, segment.time_ns
        if not self.connection.closed and start >= 0 and start + segment.size <= self.position:
            self._again(start, data, packet, time_ns, out)
        else:
            self._discard(start, len(data), reason, packet, time_ns, out)

    def _waited(self) -> GapPolicy:
        patience = self._patience
        if patience is None:
            patience = self._patience = GapPolicy(self._limits)
        return patience

    # -- holes

    def _give_up(
        self, hole_end: i64, reason: GapReason, packet: i64, time_ns: i64, out: list[Event]
    ) -> None:
        self._skip(hole_end, reason, packet, time_ns, out)
        self._settle(packet, time_ns, out, behind_gap=True)

    def _skip(
        self, end: i64, reason: GapReason, packet: i64, time_ns: i64, out: list[Event]
    ) -> None:
        """Declare the bytes from the awaited position to `end` missing."""
        size = end - self.position
        at = self.position
        out.append(Gap(self.connection, self.side, at, size, reason, packet, time_ns))
        self.totals.missing += size
        self.position = end
        self.next_seq = (self.next_seq + size) & MASK
        self.forget()
        self._past.skip(end)
        self._waited().moved(end)

    def _keep(
        self, start: i64, end: i64, data: bytes, packet: i64, time_ns: i64, out: list[Event]
    ) -> None:
        """Put what is new into the backlog, and deliver what can be."""
        budget, backlog = self._budget, self._backlog
        if backlog is None:
            backlog = self._backlog = OutOfOrderSegments()
        budget.held -= backlog.bytes
        for overlap in backlog.add(Held(start, data, packet, time_ns)):
            differing = differences(overlap.data, overlap.standing)
            self.totals.duplicate += len(overlap.data) - len(differing)
            if differing:
                at = overlap.start + differing[0]
                self._conflict(at, len(differing), packet, time_ns, out)
        budget.held += backlog.bytes
        budget.holding[self] = None
        if start + len(data) < end:
            backlog.cut(start + len(data), end)
        self._settle(packet, time_ns, out)
        if self.waiting:
            self.check(packet, time_ns, out)

    def _settle(
        self, packet: i64, time_ns: i64, out: list[Event], *, behind_gap: bool = False
    ) -> None:
        """Deliver what continues the stream, and give up what is known to be cut there."""
        backlog = self._backlog
        assert backlog is not None
        while True:
            ready = backlog.take(self.position)
            if ready:
                self._deliver(ready, packet, time_ns, behind_gap, out)
                continue
            cut = backlog.take_cut(self.position)
            if cut == self.position:
                break
            self._skip(cut, GapReason.CUT, packet, time_ns, out)
            behind_gap = True
        self.waiting = len(backlog) > 0
        if not backlog.bytes:
            self._budget.holding.pop(self, None)

    def _deliver(
        self, ready: list[Held], packet: i64, time_ns: i64, behind_gap: bool, out: list[Event]
    ) -> None:
        """Deliver held bytes.

        The packet at hand made all of them contiguous; behind a gap each was so by its own, or by a
        later one before it.
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

    # -- bytes that are there already

    def _is_probe(self, start: i64, data: bytes, flags: i64) -> bool:
        """Whether one byte is a keep-alive probe: often garbage, for a place that the peer has
        acknowledged.
        """
        if start < self.position:
            standing = self._past.last(self.position - start)
            return data != standing if standing else start == self.position - 1
        return self.acked > start and not flags & PSH

    def _again(self, start: i64, data: bytes, packet: i64, time_ns: i64, out: list[Event]) -> None:
        """Account for bytes before the awaited position."""
        again = self._past.judge(start, data)
        self.totals.duplicate += again.duplicate
        self._discard(start, again.before, DiscardReason.BEFORE, packet, time_ns, out)
        for position, size in again.late:
            self._discard(position, size, DiscardReason.LATE, packet, time_ns, out)
        if again.conflicting:
            self._conflict(again.conflict_at, again.conflicting, packet, time_ns, out)

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

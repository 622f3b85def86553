"""TCP reassembly of one direction: segments in any order in, runs of bytes and explicit gaps out.

Law: a hole is waited for until it is certain that it stays one; every payload byte captured is
delivered, or counted as a duplicate, a keep-alive or a conflict, or reported as discarded.

    everything before is delivered or given up | awaited position --> . . hole . . [backlog]

Pure logic; time and packets come in as arguments. Source: RFC 9293 (keep-alive probes: section
3.8.4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mypy_extensions import mypyc_attr

from .backlog import Backlog, Held
from .bounds import Budget, ReassemblyLimits, Totals
from .events import Arrival, Conflict, Discarded, DiscardReason, Event, Gap, GapReason, Run
from .past import Past, differences
from .patience import Patience

if TYPE_CHECKING:
    from .connections import Connection

MASK: Final = (1 << 32) - 1
PSH: Final = 0x08
UNKNOWN: Final = -1


class Segment(NamedTuple):
    """A TCP segment: `size` bytes from sequence number `seq` on, of which `data` was captured."""

    seq: int
    size: int
    data: bytes
    flags: int
    ack: int
    when: Arrival


@mypyc_attr(allow_interpreted_subclasses=True)
class Flow:
    """One direction of a connection.

    position: stream position of the next byte awaited; next_seq: its sequence number. initial: the
    sequence number of the SYN, UNKNOWN where it was not seen. origin: that of position 0, UNKNOWN
    before anything was seen. acked: up to where the peer is known to have received. fin_at: where
    the side ends; fin_acked: whether the peer has acknowledged that.
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
        "position",
        "side",
        "totals",
        "waiting",
    )

    def __init__(
        self, connection: Connection, side: int, limits: ReassemblyLimits, budget: Budget
    ) -> None:
        self.connection = connection
        self.waiting = self.fin_acked = False
        self.side = side
        self.origin = self.initial = self.fin_at = UNKNOWN
        self.next_seq = self.position = self.acked = 0
        self.totals = Totals()
        self._limits = limits
        self._budget = budget
        self._backlog = Backlog()
        self._past = Past(limits.remembered_bytes)
        self._patience = Patience(limits)
        self._peer_ack = UNKNOWN

    # -- what is known

    @property
    def peer(self) -> Flow:
        return self.connection.flows[1 - self.side]

    @property
    def anchored(self) -> bool:
        return self.origin != UNKNOWN

    @property
    def held_bytes(self) -> int:
        return self._backlog.bytes

    @property
    def finished(self) -> bool:
        return self.fin_at != UNKNOWN and self.position >= self.fin_at

    def where(self, seq: int) -> int:
        """Turn a sequence number into the stream position nearest to the awaited one."""
        return self.position + ((seq - self.next_seq + (1 << 31)) & MASK) - (1 << 31)

    # -- events

    def open(self, initial: int) -> None:
        """Take note of the SYN: position 0 is the byte after it."""
        self.initial = initial
        if self.origin == UNKNOWN:
            self._anchor((initial + 1) & MASK)

    def join(self, seq: int) -> None:
        """Begin in the middle: at what the peer still awaits, if that is known and near, else at
        this segment.
        """
        awaited = self._peer_ack
        near = awaited != UNKNOWN and (seq - awaited) & MASK <= self._limits.max_held_bytes
        self._anchor(awaited if near else seq)

    def _anchor(self, seq: int) -> None:
        self.origin = self.next_seq = seq

    def take(self, segment: Segment, out: list[Event]) -> bool:
        """Take a segment of at least one byte.

        False if it is too far from everything else to belong here; then nothing was done.
        """
        seq, size, data, flags, _, when = segment
        start = self.where(seq)
        if start == 1 and self.position == 0 and self.initial == UNKNOWN and not self.waiting:
            # Joined at an empty keep-alive probe, which stands one byte before the next.
            self._anchor(seq)
            start = 0
        if start == self.position and len(data) == size and not self.waiting:
            self.append(data, [start + size], [when.packet], [when.time_ns], when.packet, out)
            return True
        if abs(start - self.position) > self._limits.max_window_bytes:
            return False
        if size == 1 and self._is_probe(start, data, flags):
            self.totals.keep_alive += len(data)
            return True
        before = min(max(self.position - start, 0), size)
        if before:
            self._again(start, data[:before], when, out)
        if before < size:
            self._keep(start + before, start + size, data[before:], when, out)
        return True

    def append(
        self,
        data: bytes,
        ends: list[int],
        packets: list[int],
        times: list[int],
        released: int,
        out: list[Event],
    ) -> None:
        """Deliver bytes that begin at the awaited position."""
        out.append(
            Run(self.connection, self.side, self.position, data, ends, packets, times, released)
        )
        size = len(data)
        self.totals.delivered += size
        self.position += size
        self.next_seq = (self.next_seq + size) & MASK
        self._budget.remembered -= len(self._past.recent)
        self._past.deliver(data)
        self._budget.remembered += len(self._past.recent)
        self._patience.moved(self.position)

    def acknowledge(self, ack: int, when: Arrival, out: list[Event]) -> None:
        """Take note that the peer awaits sequence number `ack`."""
        self._peer_ack = ack
        if self.origin == UNKNOWN:
            return
        acked = self.where(ack)
        if self.fin_at != UNKNOWN:
            self.fin_acked |= acked > self.fin_at
            acked = min(acked, self.fin_at)
        if self.acked < acked <= self.position + self._limits.max_window_bytes:
            self.acked = acked
            if acked > self.position:
                self._patience.acknowledged(acked, when.time_ns)
        if self.waiting:
            self.check(when, out)

    def is_ahead(self, ack: int) -> bool:
        """Whether the peer awaits a place behind what was delivered or given up."""
        return self.where(ack) > self.position

    def end_at(self, seq: int) -> None:
        """Take note of a FIN: the side ends before this sequence number."""
        end = self.where(seq)
        if self.fin_at == UNKNOWN and 0 <= end - self.position <= self._limits.max_window_bytes:
            self.fin_at = end
            self.fin_acked = self._peer_ack != UNKNOWN and self.where(self._peer_ack) > end
            self.acked = min(self.acked, end)

    def check(self, when: Arrival, out: list[Event]) -> None:
        """Give up the holes that are certain to stay."""
        while (known := self._backlog.first()) is not None:
            reason = self._patience.verdict(known, self._backlog, when.time_ns)
            if reason is None:
                return
            self._give_up(known, reason, when, out)

    def give_up_hole(self, when: Arrival, out: list[Event]) -> None:
        """Give up the first hole, for want of room."""
        known = self._backlog.first()
        if known is not None:
            self._give_up(known, GapReason.LIMIT, when, out)

    def finish(self, when: Arrival, out: list[Event]) -> None:
        """Give up everything awaited, also what the peer acknowledged and was never seen."""
        while (known := self._backlog.first()) is not None:
            self._give_up(known, GapReason.END, when, out)
        if self.fin_at > self.position:
            self._skip(self.fin_at, GapReason.END, when, out)
        elif self.acked > self.position + 1:
            # One byte more than was seen would be a FIN that was not captured.
            self._skip(self.acked, GapReason.LOST, when, out)
        self.forget()

    def forget(self) -> None:
        """Stop remembering bytes for comparison."""
        self._budget.remembered -= len(self._past.recent)
        self._past.recent = b""

    def refuse(self, segment: Segment, reason: DiscardReason, out: list[Event]) -> None:
        """Account for a segment that is not taken; a repetition of delivered bytes is just that,
        unless the connection is closed, and told about.
        """
        start = self.where(segment.seq)
        if not self.connection.closed and start >= 0 and start + segment.size <= self.position:
            self._again(start, segment.data, segment.when, out)
        else:
            self._discard(start, len(segment.data), reason, segment.when, out)

    # -- holes

    def _give_up(self, hole_end: int, reason: GapReason, when: Arrival, out: list[Event]) -> None:
        self._skip(hole_end, reason, when, out)
        self._settle(when, out, behind_gap=True)

    def _skip(self, end: int, reason: GapReason, when: Arrival, out: list[Event]) -> None:
        """Declare the bytes from the awaited position to `end` missing."""
        size = end - self.position
        out.append(Gap(self.connection, self.side, self.position, size, reason, *when))
        self.totals.missing += size
        self.position = end
        self.next_seq = (self.next_seq + size) & MASK
        self.forget()
        self._past.skip(end)
        self._patience.moved(end)

    def _keep(self, start: int, end: int, data: bytes, when: Arrival, out: list[Event]) -> None:
        """Put what is new into the backlog, and deliver what can be."""
        backlog, budget = self._backlog, self._budget
        budget.held -= backlog.bytes
        for overlap in backlog.add(Held(start, data, *when)):
            differing = differences(overlap.data, overlap.standing)
            self.totals.duplicate += len(overlap.data) - len(differing)
            if differing:
                self._conflict(overlap.start + differing[0], len(differing), when, out)
        budget.held += backlog.bytes
        budget.holding[self] = None
        if start + len(data) < end:
            backlog.cut(start + len(data), end)
        self._settle(when, out)
        if self.waiting:
            self.check(when, out)

    def _settle(self, when: Arrival, out: list[Event], *, behind_gap: bool = False) -> None:
        """Deliver what continues the stream, and give up what is known to be cut there."""
        while True:
            ready = self._backlog.take(self.position)
            if ready:
                self._deliver(ready, when, behind_gap, out)
                continue
            cut = self._backlog.take_cut(self.position)
            if cut == self.position:
                break
            self._skip(cut, GapReason.CUT, when, out)
            behind_gap = True
        self.waiting = len(self._backlog) > 0
        if not self._backlog.bytes:
            self._budget.holding.pop(self, None)

    def _deliver(
        self, ready: list[Held], when: Arrival, behind_gap: bool, out: list[Event]
    ) -> None:
        """Deliver held bytes.

        The packet at hand made all of them contiguous; behind a gap each was so by its own, or by a
        later one before it.
        """
        data = ready[0].data if len(ready) == 1 else b"".join([held.data for held in ready])
        self._budget.held -= len(data)
        if not behind_gap:
            end = self.position + len(data)
            self.append(data, [end], [when.packet], [when.time_ns], when.packet, out)
            return
        packets: list[int] = []
        times: list[int] = []
        for held in ready:
            late = bool(packets) and packets[-1] > held.packet
            packets.append(packets[-1] if late else held.packet)
            times.append(times[-1] if late else held.time_ns)
        self.append(data, [held.end for held in ready], packets, times, when.packet, out)

    # -- bytes that are there already

    def _is_probe(self, start: int, data: bytes, flags: int) -> bool:
        """Whether one byte is a keep-alive probe: often garbage, for a place that the peer has
        acknowledged.
        """
        if start < self.position:
            standing = self._past.last(self.position - start)
            return data != standing if standing else start == self.position - 1
        return start >= self.position and self.acked > start and not flags & PSH

    def _again(self, start: int, data: bytes, when: Arrival, out: list[Event]) -> None:
        """Account for bytes before the awaited position."""
        again = self._past.judge(start, data)
        self.totals.duplicate += again.duplicate
        self._discard(start, again.before, DiscardReason.BEFORE, when, out)
        for position, size in again.late:
            self._discard(position, size, DiscardReason.LATE, when, out)
        if again.conflicting:
            self._conflict(again.conflict_at, again.conflicting, when, out)

    def _conflict(self, position: int, size: int, when: Arrival, out: list[Event]) -> None:
        self.totals.conflicting += size
        out.append(Conflict(self.connection, self.side, position, size, *when))

    def _discard(
        self, position: int, size: int, reason: DiscardReason, when: Arrival, out: list[Event]
    ) -> None:
        if size:
            self.totals.discarded += size
            out.append(Discarded(self.connection, self.side, position, size, reason, *when))

"""TCP reassembly of one connection: segments in any order in, runs of bytes and explicit gaps out.

Law: the first packet that brings a byte wins; a hole is waited for until it is certain that it stays one; every payload
byte captured is delivered, or counted as a duplicate, a keep-alive or a conflict, or reported as discarded.

    position: everything before it is delivered or given up          held: segments behind a hole
    ---------------------------------|. . . hole . . .|######|. . .|####|

Pure logic, time and packets come in as arguments. Source: RFC 9293; keep-alive probes: its section 3.8.4.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Final, NamedTuple

from .blocks import NO_TIME
from .events import Conflict, Discarded, DiscardReason, Event, Gap, GapReason, Run

MODULUS: Final = 1 << 32
MASK: Final = MODULUS - 1
PSH: Final = 0x08
UNKNOWN: Final = -1

REMEMBERED_GAPS: Final = 16
"""Gaps of a side whose late bytes are told from duplicates."""


@dataclass(frozen=True, slots=True)
class ReassemblyLimits:
    """How much is waited for, and how long, in nanoseconds of the capture's own time.

    max_held_bytes: behind the hole of one side. max_total_bytes: of all sides, with what is remembered for comparing.
    max_held_segments: of one side. max_window_bytes: how far ahead a segment may be. remembered_bytes: the last bytes of a
    side, kept to compare retransmissions with. reorder_ns: how much later than an acknowledgment the acknowledged packet may stand in the capture.
    patience_ns: how long a hole without any acknowledgment is waited for. silence_ns: after that, a sequence number
    that does not continue begins a new connection.
    """

    max_held_bytes: int = 1 << 23
    max_total_bytes: int = 1 << 26
    max_held_segments: int = 1 << 15
    max_window_bytes: int = 1 << 28
    max_connections: int = 1 << 15
    remembered_bytes: int = 1 << 12
    reorder_ns: int = 50_000_000
    patience_ns: int = 30_000_000_000
    silence_ns: int = 300_000_000_000


DEFAULT_REASSEMBLY: Final = ReassemblyLimits()


class Budget:
    """Bytes that all flows together keep: held behind holes, and remembered."""

    def __init__(self) -> None:
        self.held = 0
        self.remembered = 0
        self.holding: dict[Flow, None] = {}


class Held(NamedTuple):
    """Bytes that wait behind a hole, and the packet they came with."""

    start: int
    data: bytes
    packet: int
    time_ns: int

    @property
    def end(self) -> int:
        return self.start + len(self.data)


class Endpoint(NamedTuple):
    """An address (128 bits, IPv4 in its IPv6-mapped form) and a TCP port."""

    number: int
    port: int

    @property
    def address(self) -> str:
        address = IPv6Address(self.number)
        return str(address.ipv4_mapped or address)

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


class Totals:
    """What became of the payload bytes of one side.

    delivered: in runs. duplicate: captured more than once. keep_alive: bytes of keep-alive probes. conflicting: other
    bytes for a place that was taken. discarded: see DiscardReason. missing: in gaps.
    """

    __slots__ = (
        "conflicting",
        "delivered",
        "discarded",
        "duplicate",
        "keep_alive",
        "missing",
    )

    def __init__(self) -> None:
        self.delivered = 0
        self.duplicate = 0
        self.keep_alive = 0
        self.conflicting = 0
        self.discarded = 0
        self.missing = 0

    @property
    def captured(self) -> int:
        """Payload bytes captured of this side."""
        seen = self.delivered + self.duplicate + self.keep_alive
        return seen + self.conflicting + self.discarded


class Connection:
    """Two endpoints and what they say to each other; `id` counts connections in order of their first packet.

    endpoints and flows: side 0 is the one that opened the connection where that was seen, else the one seen first.
    client: 0 where the opening was seen, else None. complete: whether its first bytes were seen.
    """

    def __init__(
        self,
        number: int,
        endpoints: tuple[Endpoint, Endpoint],
        limits: ReassemblyLimits,
        budget: Budget,
        packet: int,
        time_ns: int,
    ) -> None:
        self.id = number
        self.endpoints = endpoints
        self.client: int | None = None
        self.first_packet = packet
        self.first_ns = time_ns
        self.last_packet = packet
        self.last_ns = time_ns
        self.reset = False
        self.closed = False
        self.outside = 0
        self.flows = (Flow(self, 0, limits, budget), Flow(self, 1, limits, budget))

    def seen(self, packet: int, time_ns: int) -> None:
        """Note the packet that was seen last."""
        self.last_packet = packet
        if time_ns != NO_TIME:
            self.last_ns = time_ns
            if self.first_ns == NO_TIME:
                self.first_ns = time_ns

    @property
    def finished(self) -> bool:
        """Whether both sides said that they are done, and nothing of them is awaited."""
        return self.flows[0].finished and self.flows[1].finished

    def finish(self, packet: int, time_ns: int, out: list[Event]) -> None:
        """Give up all that is awaited."""
        for flow in self.flows:
            flow.finish(packet, time_ns, out)

    def __repr__(self) -> str:
        return f"<connection {self.id} {self.endpoints[0]} - {self.endpoints[1]}>"


class Flow:
    """One direction of a connection.

    position: stream position of the next byte awaited; next_seq: its sequence number. initial: the sequence number of
    the SYN, UNKNOWN where it was not seen. origin: sequence number of position 0, UNKNOWN before anything was seen.
    acked: up to where the peer is known to have received. fin_at: where the side ends.
    """

    __slots__ = (
        "_absent",
        "_ahead_since",
        "_budget",
        "_gaps",
        "_hole_since",
        "_limits",
        "_peer_ack",
        "_recent",
        "acked",
        "connection",
        "fin_at",
        "held",
        "held_bytes",
        "initial",
        "next_seq",
        "origin",
        "position",
        "side",
        "totals",
    )

    def __init__(
        self, connection: Connection, side: int, limits: ReassemblyLimits, budget: Budget
    ) -> None:
        self.connection = connection
        self.side = side
        self.origin = UNKNOWN
        self.initial = UNKNOWN
        self.next_seq = 0
        self.position = 0
        self.acked = 0
        self.fin_at = UNKNOWN
        self.held: list[Held] = []
        self.held_bytes = 0
        self.totals = Totals()
        self._limits = limits
        self._budget = budget
        self._absent: list[tuple[int, int]] = []
        self._gaps: list[tuple[int, int]] = []
        self._recent = b""
        self._peer_ack = UNKNOWN
        self._ahead_since: int | None = None
        self._hole_since: int | None = None

    # -- what is known

    @property
    def peer(self) -> Flow:
        return self.connection.flows[1 - self.side]

    @property
    def anchored(self) -> bool:
        return self.origin != UNKNOWN

    @property
    def quiet(self) -> bool:
        """Whether in-order bytes can be appended without looking."""
        return self.origin != UNKNOWN and not self.held and not self._absent

    @property
    def waiting(self) -> bool:
        """Whether something is known behind a hole."""
        return bool(self.held or self._absent)

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
        """Begin in the middle: at what the peer still awaits, if that is known and near, else at this segment."""
        awaited = self._peer_ack
        near = awaited != UNKNOWN and (seq - awaited) & MASK <= self._limits.max_held_bytes
        self._anchor(awaited if near else seq)

    def _anchor(self, seq: int) -> None:
        self.origin = self.next_seq = seq

    def take(
        self, seq: int, size: int, data: bytes, flags: int, packet: int, time_ns: int, out: list[Event]
    ) -> bool:
        """Take a segment of `size` payload bytes (at least 1), of which `data` was captured.

        False if it is too far from everything else to belong here; then nothing was done.
        """
        start = self.where(seq)
        if start == 1 and self.position == 0 and self.initial == UNKNOWN and not self.waiting:
            # Joined at an empty keep-alive probe, which stands one byte before the next.
            self._anchor(seq)
            start = 0
        if start == self.position and len(data) == size and self.quiet:
            self.append(data, [start + size], [packet], [time_ns], packet, out)
            return True
        if abs(start - self.position) > self._limits.max_window_bytes:
            return False
        if self._is_probe(start, size, flags):
            self._probe(start, data, packet, time_ns, out)
            return True
        end = start + size
        before = min(max(self.position - start, 0), size)
        if before:
            self._repeat(start, data[:before], packet, time_ns, out)
            data = data[before:]
            start += before
        if start < end:
            self._hold(start, data, packet, time_ns, out)
            if start + len(data) < end:
                insort(self._absent, (start + len(data), end))
            self._settle(packet, time_ns, out)
            self.check(packet, time_ns, out)
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
        keep = self._limits.remembered_bytes
        recent = data[-keep:] if size >= keep else (self._recent + data)[-keep:]
        self._budget.remembered += len(recent) - len(self._recent)
        self._recent = recent
        if self._ahead_since is not None and self.acked <= self.position:
            self._ahead_since = None
        self._hole_since = None

    def acknowledge(self, ack: int, packet: int, time_ns: int, out: list[Event]) -> None:
        """Take note that the peer awaits sequence number `ack`."""
        self._peer_ack = ack
        if self.origin == UNKNOWN:
            return
        acked = self.where(ack)
        if self.fin_at != UNKNOWN:
            acked = min(acked, self.fin_at)
        if self.acked < acked <= self.position + self._limits.max_window_bytes:
            self.acked = acked
            if acked > self.position and self._ahead_since is None:
                self._ahead_since = time_ns
        if self.held or self._absent:
            self.check(packet, time_ns, out)

    def end_at(self, seq: int, packet: int, time_ns: int, out: list[Event]) -> None:
        """Take note of a FIN: the side ends before this sequence number."""
        end = self.where(seq)
        if self.fin_at == UNKNOWN and 0 <= end - self.position <= self._limits.max_window_bytes:
            self.fin_at = end
            self.acked = min(self.acked, end)
            self.check(packet, time_ns, out)

    def check(self, packet: int, time_ns: int, out: list[Event]) -> None:
        """Give up the holes that are certain to stay."""
        while (known := self._next_known()) is not None:
            reason = self._verdict(known, time_ns)
            if reason is None:
                return
            self._skip(known, reason, packet, time_ns, out)
            self._settle(packet, time_ns, out, behind_gap=True)

    def finish(self, packet: int, time_ns: int, out: list[Event]) -> None:
        """Give up everything awaited, also what the peer acknowledged and was never seen."""
        while (known := self._next_known()) is not None:
            self._skip(known, GapReason.END, packet, time_ns, out)
            self._settle(packet, time_ns, out, behind_gap=True)
        if self.fin_at > self.position:
            self._skip(self.fin_at, GapReason.END, packet, time_ns, out)
        elif self.acked > self.position + 1:
            # One byte more than was seen would be a FIN that was not captured.
            self._skip(self.acked, GapReason.LOST, packet, time_ns, out)
        self.forget()

    def forget(self) -> None:
        """Stop remembering bytes for comparison."""
        self._budget.remembered -= len(self._recent)
        self._recent = b""

    # -- holes

    def _next_known(self) -> int | None:
        """Where the hole at the awaited position ends; None if nothing is known behind it."""
        if not self._absent:
            return self.held[0].start if self.held else None
        cut = self._absent[0][0]
        return min(cut, self.held[0].start) if self.held else cut

    def _verdict(self, hole_end: int, time_ns: int) -> GapReason | None:
        limits = self._limits
        timeless = time_ns == NO_TIME
        ahead = self._ahead_since
        if self.acked >= hole_end and ahead is not None:
            if timeless or ahead == NO_TIME or time_ns - ahead >= limits.reorder_ns:
                return GapReason.LOST
        if self.held_bytes > limits.max_held_bytes:
            return GapReason.LIMIT
        if len(self.held) + len(self._absent) > limits.max_held_segments:
            return GapReason.LIMIT
        if self._hole_since is None:
            self._hole_since = None if timeless else time_ns
        elif not timeless and time_ns - self._hole_since >= limits.patience_ns:
            return GapReason.TIMEOUT
        return None

    def give_up_hole(self, packet: int, time_ns: int, out: list[Event]) -> None:
        """Give up the first hole, for want of room."""
        known = self._next_known()
        if known is not None:
            self._skip(known, GapReason.LIMIT, packet, time_ns, out)
            self._settle(packet, time_ns, out, behind_gap=True)

    def _skip(self, end: int, reason: GapReason, packet: int, time_ns: int, out: list[Event]) -> None:
        """Declare the bytes from the awaited position to `end` missing."""
        size = end - self.position
        out.append(
            Gap(self.connection, self.side, self.position, size, reason, packet, time_ns)
        )
        self._gaps = [*self._gaps[1 - REMEMBERED_GAPS :], (self.position, end)]
        self.totals.missing += size
        self.position = end
        self.next_seq = (self.next_seq + size) & MASK
        self.forget()
        self._hole_since = None
        if self.acked <= self.position:
            self._ahead_since = None

    def _settle(
        self, packet: int, time_ns: int, out: list[Event], *, behind_gap: bool = False
    ) -> None:
        """Deliver what is held at the awaited position, and give up what is known to be cut there."""
        while True:
            if self.held and self.held[0].start <= self.position:
                self._deliver(packet, time_ns, behind_gap, out)
            elif (cut := self._cut_at()) > self.position:
                if self.held:
                    cut = min(cut, self.held[0].start)
                self._skip(cut, GapReason.CUT, packet, time_ns, out)
                behind_gap = True
            else:
                return

    def _cut_at(self) -> int:
        """Where the stretch that a snaplen cut off at the awaited position ends, or the position."""
        end = self.position
        while self._absent and self._absent[0][0] <= end:
            end = max(end, self._absent.pop(0)[1])
        if end > self.position:
            insort(self._absent, (self.position, end))
        return end

    def _deliver(self, packet: int, time_ns: int, behind_gap: bool, out: list[Event]) -> None:
        """Deliver the held bytes from the awaited position up to the next hole.

        The packet at hand made all of them contiguous; behind a gap each was so by its own, or by a later one before it.
        """
        count, end = 0, self.position
        for held in self.held:
            if held.start > end:
                break
            end = held.end
            count += 1
        ready = self.held[:count]
        del self.held[:count]
        size = end - self.position
        self._release(size)
        data = b"".join([held.data for held in ready])
        if not behind_gap:
            self.append(data, [end], [packet], [time_ns], packet, out)
            return
        packets: list[int] = []
        times: list[int] = []
        for held in ready:
            late = bool(packets) and packets[-1] > held.packet
            packets.append(packets[-1] if late else held.packet)
            times.append(times[-1] if late else held.time_ns)
        self.append(data, [held.end for held in ready], packets, times, packet, out)

    def _release(self, size: int) -> None:
        self.held_bytes -= size
        self._budget.held -= size
        if not self.held:
            self._budget.holding.pop(self, None)

    def _hold(self, start: int, data: bytes, packet: int, time_ns: int, out: list[Event]) -> None:
        """Keep the bytes that are not held already; compare the others."""
        held = self.held
        end = start + len(data)
        at = bisect_right(held, start, key=lambda piece: piece.start)
        if at and held[at - 1].end > start:
            at -= 1
        cursor = start
        while cursor < end:
            if at < len(held) and held[at].start <= cursor:
                stop = min(end, held[at].end)
                theirs = held[at].data[cursor - held[at].start : stop - held[at].start]
                self._compare(cursor, data[cursor - start : stop - start], theirs, packet, time_ns, out)
            else:
                stop = min(end, held[at].start) if at < len(held) else end
                held.insert(at, Held(cursor, data[cursor - start : stop - start], packet, time_ns))
                self.held_bytes += stop - cursor
                self._budget.held += stop - cursor
                self._budget.holding[self] = None
            at += 1
            cursor = stop

    # -- bytes that are there already

    def _is_probe(self, start: int, size: int, flags: int) -> bool:
        """Whether a segment is a keep-alive probe: a byte, often garbage, that the peer has already acknowledged."""
        if size != 1:
            return False
        ahead = start >= self.position and self.acked > start and not flags & PSH
        return start == self.position - 1 or ahead

    def _probe(self, start: int, data: bytes, packet: int, time_ns: int, out: list[Event]) -> None:
        if start < self.position and data == self._recent[-1:]:
            self.totals.duplicate += len(data)
        else:
            self.totals.keep_alive += len(data)

    def _repeat(self, start: int, data: bytes, packet: int, time_ns: int, out: list[Event]) -> None:
        """Account for bytes before the awaited position: late ones, those before the beginning, duplicates."""
        if start < 0:
            cut = min(-start, len(data))
            self._discard(start, cut, DiscardReason.BEFORE, packet, time_ns, out)
            start, data = start + cut, data[cut:]
        end = start + len(data)
        known = self.position - len(self._recent)
        unknown = min(max(known - start, 0), len(data))
        self.totals.duplicate += unknown
        for gap_start, gap_end in self._gaps:
            begin = max(start, gap_start)
            late = min(end, gap_end) - begin
            if late > 0:
                self.totals.duplicate -= late
                self._discard(begin, late, DiscardReason.LATE, packet, time_ns, out)
        if unknown < len(data):
            begin = start + unknown
            ours = self._recent[begin - known : end - known]
            self._compare(begin, data[unknown:], ours, packet, time_ns, out)

    def _compare(
        self, start: int, data: bytes, theirs: bytes, packet: int, time_ns: int, out: list[Event]
    ) -> None:
        """Account for bytes whose place is taken by `theirs`."""
        if data == theirs:
            self.totals.duplicate += len(data)
            return
        differing = [at for at in range(len(data)) if data[at] != theirs[at]]
        self.totals.conflicting += len(differing)
        self.totals.duplicate += len(data) - len(differing)
        out.append(
            Conflict(
                self.connection, self.side, start + differing[0], len(differing), packet, time_ns
            )
        )

    def _discard(
        self,
        position: int,
        size: int,
        reason: DiscardReason,
        packet: int,
        time_ns: int,
        out: list[Event],
    ) -> None:
        if size:
            self.totals.discarded += size
            out.append(
                Discarded(self.connection, self.side, position, size, reason, packet, time_ns)
            )

    def refuse(
        self,
        seq: int,
        size: int,
        data: bytes,
        reason: DiscardReason,
        packet: int,
        time_ns: int,
        out: list[Event],
    ) -> None:
        """Account for a segment that is not taken; a repetition of what was delivered is just that."""
        start = self.where(seq)
        if 0 <= start and start + size <= self.position:
            self._repeat(start, data, packet, time_ns, out)
        else:
            self._discard(start, len(data), reason, packet, time_ns, out)

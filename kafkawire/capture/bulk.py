"""The fast way through a block: stretches of a connection in which both sides simply continue.

Law: it takes a stretch only if taking its segments one by one would say the same.

    unit: a connection's segments in packet order    o o . . . . . . . o . . o o .    o: odd
                                                         '-- span ---'
Odd is what has SYN, FIN or RST, was cut, or does not begin where the one before it on its side
ended. A span is taken as a whole, if its first segments are the awaited ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .blocks import Ints
from .events import Arrival, Event
from .flows import MASK, UNKNOWN, Flow, Segment
from .grouping import group, keys
from .packets import ACK, FIN, RST, SYN, Segments

_SPECIAL: Final = SYN | FIN | RST
LEAST_SPAN: Final = 4
"""Segments for which a span costs less than taking them one by one."""


class Range(NamedTuple):
    """Places `first` up to `end` of the sorted block: consecutive segments of one direction."""

    first: int
    end: int


class Unit(NamedTuple):
    """A connection in a block: the first place of each of its sides, and the keys of them.

    order: the places of its segments in packet order. before: how many of the first side lie before
    each of them. odd: which of them are odd, by their index in `order`.
    """

    first: tuple[int, int]
    keys: tuple[bytes, bytes]
    order: list[int]
    before: list[int]
    odd: list[int]

    def ranges(self, start: int, end: int) -> tuple[Range, Range]:
        """Give the places, side by side, of the segments `start` to `end` in packet order."""
        mine, theirs = self.first
        a, b = self.before[start], self.before[end]
        return Range(mine + a, mine + b), Range(theirs + start - a, theirs + end - b)

    def spans(self) -> list[tuple[int, int]]:
        """List the stretches without odd segments, in packet order, that are worth taking whole."""
        edges = [-1, *self.odd, len(self.order)]
        return [(a + 1, b) for a, b in pairwise(edges) if b - a > LEAST_SPAN]


class SortedBlock:
    """A block's segments sorted by connection, side and packet; a place is an index into that."""

    def __init__(self, segments: Segments) -> None:
        """Sort segments, at least one."""
        self.segments: Segments = segments
        order, flows, units = group(segments)
        self.order: Ints = order
        seq = segments.seq[order]
        size = segments.original[order]
        flags = segments.flags[order]
        # A SYN and a FIN count as one in sequence numbers.
        after = (seq + size + (flags & FIN) + ((flags & SYN) >> 1)) & MASK
        odd = (flags & _SPECIAL) != 0
        odd |= (flags & ACK) == 0
        odd |= segments.captured[order] != size
        breaks = seq[1:] != after[:-1]
        # Acknowledgments only grow, but for packets out of order.
        ack = segments.ack[order]
        breaks |= (ack[1:] - ack[:-1]) & MASK > MASK >> 1
        breaks[flows[1:] - 1] = False
        odd[1:] |= breaks
        self.odd: npt.NDArray[np.bool_] = odd
        self._flows: Ints = flows
        self._units: Ints = units
        self._ends: Ints = np.append(flows[1:], len(order))
        forth, back = keys(segments, order[flows])
        self._keys: list[tuple[bytes, bytes]] = list(zip(forth, back, strict=True))
        self._parts: list[tuple[int, int, int, int]] = []
        self._columns(seq, size)

    def _columns(self, seq: Ints, size: Ints) -> None:
        segments, order = self.segments, self.order
        self.seq: list[int] = seq.tolist()
        self.ack: list[int] = segments.ack[order].tolist()
        self.packet: list[int] = segments.packet[order].tolist()
        self.time_ns: list[int] = segments.ts[order].tolist()
        carries = size > 0
        rows, sizes = order[carries], size[carries]
        self._before: list[int] = [0, *np.cumsum(carries).tolist()]
        self._reach: list[int] = np.cumsum(sizes).tolist()
        at = segments.at[rows]
        self._at: list[int] = at.tolist()
        self._end: list[int] = (at + sizes).tolist()
        self._packets: list[int] = segments.packet[rows].tolist()
        self._times: list[int] = segments.ts[rows].tolist()

    def take_whole(self, flows: dict[bytes, Flow], out: list[Event]) -> Iterator[Unit]:
        """Take the connections that are one span each; gives the others."""
        odd: list[bool] = np.logical_or.reduceat(self.odd, self._units).tolist()
        begins: Ints = np.searchsorted(self._flows, np.append(self._units, len(self.order)))
        cuts: list[int] = begins.tolist()
        firsts: list[int] = self._flows.tolist()
        ends: list[int] = self._ends.tolist()
        left: list[tuple[int, int, int, tuple[bytes, bytes]]] = []
        for unit, is_odd in enumerate(odd):
            at = cuts[unit]
            forth, back = self._keys[at]
            if not is_odd:
                two_sided = cuts[unit + 1] - at == 2
                mine = Range(firsts[at], ends[at])
                theirs = Range(firsts[at + 1], ends[at + 1]) if two_sided else Range(0, 0)
                if self.take_span(flows.get(forth), flows.get(back), mine, theirs, out):
                    continue
            left.append((firsts[at], ends[at], ends[cuts[unit + 1] - 1], (forth, back)))
        return self._units_of(left) if left else iter(())

    def _units_of(self, left: list[tuple[int, int, int, tuple[bytes, bytes]]]) -> Iterator[Unit]:
        """Put what is left into packet order, connection by connection."""
        sizes: Ints = np.diff(np.append(self._units, len(self.order)))
        unit_of: Ints = np.repeat(np.arange(len(sizes)), sizes)
        places: Ints = np.argsort(unit_of << 16 | self.order)
        side: Ints = np.zeros(len(self.order), np.int64)
        side[self._flows] = 1
        side[self._units] = 0
        # Places of a second side lie behind its start, so a running sum per unit tells the sides.
        second: Ints = np.cumsum(side)
        is_first = (second - np.repeat(second[self._units], sizes) == 0)[places]
        before: list[int] = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_first)]).tolist()
        order: list[int] = places.tolist()
        odd_at: list[int] = np.flatnonzero(self.odd[places]).tolist()
        for start, middle, end, both in left:
            base = before[start]
            low, high = bisect_left(odd_at, start), bisect_left(odd_at, end)
            yield Unit(
                (start, middle),
                both,
                order[start:end],
                [count - base for count in before[start : end + 1]],
                [at - start for at in odd_at[low:high]],
            )

    def take_span(
        self, mine: Flow | None, theirs: Flow | None, ours: Range, other: Range, out: list[Event]
    ) -> bool:
        """Take a range of each side of a connection; False if they do not just continue it."""
        if mine is None or theirs is None:
            return False
        if not self._continues(mine, ours) or not self._continues(theirs, other):
            return False
        self._append(mine, ours, out)
        self._append(theirs, other, out)
        # Both sides are appended by now, so what an acknowledgment is ahead of was not captured.
        latest = None
        for flow, (first, end) in ((mine, ours), (theirs, other)):
            if first < end:
                when = Arrival(self.packet[end - 1], self.time_ns[end - 1])
                self._acknowledge(flow.peer, first, end, out)
                latest = when if latest is None or when > latest else latest
        if latest is not None:
            mine.connection.seen(*latest)
        return True

    def _continues(self, flow: Flow, places: Range) -> bool:
        connection = flow.connection
        if flow.waiting or connection.closed or connection.reset:
            return False
        first, end = places
        known = flow.origin != UNKNOWN and flow.fin_at == UNKNOWN
        return first == end or (known and flow.next_seq == self.seq[first])

    def _acknowledge(self, flow: Flow, first: int, end: int, out: list[Event]) -> None:
        """Take the acknowledgments of places of the peer's side: the last, and before it those that
        are ahead of what was captured, each where it stands first.
        """
        ahead = end - 1
        while ahead > first and flow.origin != UNKNOWN and flow.is_ahead(self.ack[ahead - 1]):
            ahead -= 1
        for at in range(ahead, end):
            flow.acknowledge(self.ack[at], Arrival(self.packet[at], self.time_ns[at]), out)

    def _append(self, flow: Flow, places: Range, out: list[Event]) -> None:
        first, last = self._before[places.first], self._before[places.end]
        if first == last:
            return
        flow.connection.outside = 0
        data = self.segments.data
        if last - first == 1:
            joined = data[self._at[first] : self._end[first]]
        else:
            starts, ends = self._at[first:last], self._end[first:last]
            joined = b"".join([data[a:b] for a, b in zip(starts, ends, strict=True)])
        shift = flow.position - (self._reach[first - 1] if first else 0)
        flow.append(
            joined,
            [reach + shift for reach in self._reach[first:last]],
            self._packets[first:last],
            self._times[first:last],
            0,
            out,
        )

    def _set_apart(self) -> None:
        """Find where the payload of each place begins and ends, what was sent of it, and the
        flags.
        """
        rows = self.segments
        end = rows.at + rows.captured
        columns = (rows.at, end, rows.original, rows.flags)
        self._parts = list(zip(*[column[self.order].tolist() for column in columns], strict=True))

    def segment(self, place: int) -> Segment:
        """Give one segment by its place."""
        if not self._parts:
            self._set_apart()
        at, end, size, flags = self._parts[place]
        when = Arrival(self.packet[place], self.time_ns[place])
        data = self.segments.data[at:end]
        return Segment(self.seq[place], size, data, flags, self.ack[place], when)

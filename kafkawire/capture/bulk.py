"""The fast way through a block: stretches of a connection in which both sides simply continue.

Law: it takes a stretch only if taking its segments one by one would say the same.

    unit: a connection's segments in packet order    o o . . . . . . . o . . o o .    o: odd
                                                         '-- span ---'
Odd is what has SYN, FIN or RST, was cut, or does not begin where the one before it on its side
ended. A span is taken as a whole, if its first segments are the awaited ones.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

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
    """A connection in a block: the ranges of its directions, and their keys.

    order: the places of its segments in packet order. before: how many of the first direction lie
    before each of them.
    """

    ranges: tuple[Range, Range]
    keys: tuple[bytes, bytes]
    order: list[int]
    before: list[int]

    def ranges_between(self, first: int, end: int) -> tuple[Range, Range]:
        """Give the ranges of the segments `first` up to `end` in packet order."""
        (mine, _), (theirs, _) = self.ranges
        a, b = self.before[first], self.before[end]
        return Range(mine + a, mine + b), Range(theirs + first - a, theirs + end - b)


class SortedBlock:
    """The segments of a block sorted by connection, side and packet; a place is an index into that."""

    def __init__(self, segments: Segments) -> None:
        """Sort segments, at least one."""
        self.segments = segments
        self.order, flows, units = group(segments)
        order = self.order
        seq = segments.seq[order]
        size = segments.original[order]
        flags = segments.flags[order]
        # A SYN and a FIN count as one in sequence numbers.
        after = (seq + size + (flags & FIN) + ((flags & SYN) >> 1)) & MASK
        odd = (flags & _SPECIAL) != 0
        odd |= (flags & ACK) == 0
        odd |= segments.captured[order] != size
        breaks = seq[1:] != after[:-1]
        breaks[flows[1:] - 1] = False
        odd[1:] |= breaks
        self.odd = odd
        self._flows, self._units = flows, units
        self._ends = np.append(flows[1:], len(order))
        forth, back = keys(segments, order[flows])
        self._keys = list(zip(forth, back, strict=True))
        self._columns(seq, size)

    def _columns(self, seq: Ints, size: Ints) -> None:
        segments, order = self.segments, self.order
        self.seq = seq.tolist()
        self.ack = segments.ack[order].tolist()
        self.packet = segments.packet[order].tolist()
        self.time_ns = segments.ts[order].tolist()
        carries = size > 0
        rows, sizes = order[carries], size[carries]
        self._before = [0, *np.cumsum(carries).tolist()]
        self._reach = np.cumsum(sizes).tolist()
        at = segments.at[rows]
        self._at, self._end = at.tolist(), (at + sizes).tolist()
        self._packets = segments.packet[rows].tolist()
        self._times = segments.ts[rows].tolist()

    def take_whole(self, flows: dict[bytes, Flow], out: list[Event]) -> list[Unit]:
        """Take the connections that are one span each; returns the others."""
        whole = ~np.logical_or.reduceat(self.odd, self._units)
        cuts = np.searchsorted(self._flows, np.append(self._units, len(self.order))).tolist()
        firsts, ends = self._flows.tolist(), self._ends.tolist()
        left = []
        for unit, is_whole in enumerate(whole.tolist()):
            at, stop = cuts[unit], cuts[unit + 1]
            mine = Range(firsts[at], ends[at])
            forth, back = self._keys[at]
            theirs = Range(firsts[at + 1], ends[at + 1]) if stop - at == 2 else Range(0, 0)
            if not (
                is_whole and self.take_span(flows.get(forth), flows.get(back), mine, theirs, out)
            ):
                left.append(self._unit(mine, theirs, forth, back))
        return left

    def _unit(self, mine: Range, theirs: Range, forth: bytes, back: bytes) -> Unit:
        places = np.concatenate([np.arange(*mine), np.arange(*theirs)])
        places = places[np.argsort(self.order[places])]
        before = [0, *np.cumsum(places < mine.end).tolist()]
        return Unit((mine, theirs), (forth, back), places.tolist(), before)

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
                flow.peer.acknowledge(self.ack[end - 1], when, out)
                latest = when if latest is None or when > latest else latest
        if latest is not None:
            mine.connection.seen(*latest)
        return True

    def _continues(self, flow: Flow, places: Range) -> bool:
        connection = flow.connection
        if flow.waiting or connection.closed or connection.reset:
            return False
        first, end = places
        return first == end or (flow.origin != UNKNOWN and flow.next_seq == self.seq[first])

    def _append(self, flow: Flow, places: Range, out: list[Event]) -> None:
        first, last = self._before[places.first], self._before[places.end]
        if first == last:
            return
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

    @cached_property
    def _segments(self) -> list[tuple[int, int, int, int]]:
        """Where the payload of each place begins and ends, what was sent of it, and the flags."""
        rows = self.segments
        end = rows.at + rows.captured
        columns = (rows.at, end, rows.original, rows.flags)
        return list(zip(*(column[self.order].tolist() for column in columns), strict=True))

    def segment(self, place: int) -> Segment:
        """Give one segment by its place."""
        at, end, size, flags = self._segments[place]
        when = Arrival(self.packet[place], self.time_ns[place])
        data = self.segments.data[at:end]
        return Segment(self.seq[place], size, data, flags, self.ack[place], when)

    def spans(self, unit: Unit) -> list[tuple[int, int]]:
        """List where, in the packet order of a unit, stretches without odd segments begin and end."""
        odd = np.flatnonzero(self.odd[unit.order])
        edges = [-1, *odd.tolist(), len(unit.order)]
        return [
            (before + 1, after)
            for before, after in pairwise(edges)
            if after - before > LEAST_SPAN
        ]

"""The fast way through a block: connections whose segments simply continue both sides.

Law: it takes a connection only if taking its segments one by one would say the same.
"""

from __future__ import annotations

import numpy as np

from .blocks import Ints
from .connections import Connection
from .events import Arrival, Event
from .flows import Flow
from .grouping import group, keys
from .packets import ACK, FIN, RST, SYN, Segments

_SPECIAL = SYN | FIN | RST


class Bulk:
    """A block of segments sorted by connection, with the columns that the fast way needs."""

    def __init__(self, segments: Segments) -> None:
        """Sort the segments of a block, at least one."""
        self.segments = segments
        self.order, self.flow_starts, self.unit_starts = group(segments)
        order = self.order
        seq = segments.seq[order]
        size = segments.original[order]
        self.after = (seq + size) & 0xFFFFFFFF
        flags = segments.flags[order]
        odd = (flags & _SPECIAL) != 0
        odd |= (flags & ACK) == 0
        odd |= segments.captured[order] != size
        follows = seq[1:] == self.after[:-1]
        follows[self.flow_starts[1:] - 1] = True
        odd[1:] |= ~follows
        self.odd_units = np.logical_or.reduceat(odd, self.unit_starts)
        self.first_seq = seq[self.flow_starts].tolist()
        self._payloads(size)

    def _payloads(self, size: Ints) -> None:
        """Columns of the segments that carry something; `before[i]` counts those before place i."""
        carries = size > 0
        rows = self.order[carries]
        sizes = size[carries]
        self.before = np.concatenate([np.zeros(1, np.int64), np.cumsum(carries)])
        self.reach = np.cumsum(sizes).tolist()
        at = self.segments.at[rows]
        self.at = at.tolist()
        self.end = (at + sizes).tolist()
        self.packet = self.segments.packet[rows].tolist()
        self.time_ns = self.segments.ts[rows].tolist()

    def take(self, flows: dict[bytes, Flow], out: list[Event]) -> Ints:
        """Append to the flows what continues them; returns the segments left, in packet order."""
        starts = self.flow_starts
        ends = np.append(starts[1:], len(self.order))
        units = np.searchsorted(self.unit_starts, starts, side="right") - 1
        known = [flows.get(key) for key in keys(self.segments, self.order[starts])[0]]
        unit_of = units.tolist()
        odd = self.odd_units[units].tolist()
        refused = {
            unit
            for unit, is_odd, flow, seq in zip(unit_of, odd, known, self.first_seq, strict=True)
            if is_odd or flow is None or not _continues(flow, seq)
        }
        firsts, lasts = self.before[starts].tolist(), self.before[ends].tolist()
        taken = []
        for at, flow in enumerate(known):
            if flow is not None and unit_of[at] not in refused:
                self._append(flow, firsts[at], lasts[at], out)
                taken.append((at, flow))
        self._acknowledge(taken, self.order[ends - 1], out)
        if not refused:
            return np.empty(0, np.int64)
        left = np.repeat(np.isin(units, list(refused)), ends - starts)
        return np.sort(self.order[left])

    def _acknowledge(self, taken: list[tuple[int, Flow]], rows: Ints, out: list[Event]) -> None:
        """Tell each side what the other one awaits at last, after both have been appended.

        So an acknowledgment beyond what a side has sent tells of bytes that were not captured.
        """
        acks = self.segments.ack[rows].tolist()
        packets, times = self.segments.packet[rows].tolist(), self.segments.ts[rows].tolist()
        latest: dict[Connection, Arrival] = {}
        for at, flow in taken:
            when = Arrival(packets[at], times[at])
            flow.peer.acknowledge(acks[at], when, out)
            latest[flow.connection] = max(when, latest.get(flow.connection, when))
        for connection, when in latest.items():
            connection.seen(*when)

    def _append(self, flow: Flow, first: int, last: int, out: list[Event]) -> None:
        if first == last:
            return
        data = self.segments.data
        pieces = [
            data[at:end] for at, end in zip(self.at[first:last], self.end[first:last], strict=True)
        ]
        shift = flow.position - (self.reach[first - 1] if first else 0)
        flow.append(
            pieces[0] if len(pieces) == 1 else b"".join(pieces),
            [reach + shift for reach in self.reach[first:last]],
            self.packet[first:last],
            self.time_ns[first:last],
            0,
            out,
        )


def _continues(flow: Flow, seq: int) -> bool:
    connection = flow.connection
    return (
        flow.next_seq == seq
        and flow.anchored
        and not flow.waiting
        and not flow.peer.waiting
        and not connection.closed
        and not connection.reset
    )

"""All connections of a capture: blocks of segments in, events out.

Law: the fast way and the slow way say the same. A connection whose segments of a block simply
continue each side is taken as a whole; anything else in it, and the connection goes segment by
segment, in packet order with all others.

    Segments --grouped--> in order? --yes--> one Run for each side
                              `-----no----> SYN, FIN, RST, holes, repeats, port reuse: one segment
                              at a time
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from .blocks import NO_TIME, Ints
from .bounds import DEFAULT_REASSEMBLY, Budget, ReassemblyLimits
from .bulk import Bulk
from .connections import Connection, Endpoint
from .events import Arrival, Closed, CloseReason, DiscardReason, Event
from .flows import MASK, UNKNOWN, Flow, Payload
from .grouping import KEY, keys
from .packets import ACK, FIN, RST, SYN, Segments

STRAYS: Final = 8
"""Segments far outside in a row after which a connection is taken to be another one."""

LINGER_NS: Final = 1_000_000_000
"""How long after a RST packets that the capture has out of order are waited for."""

OPENING_SLACK: Final = 1 << 20
"""How far ahead the sequence number of a connection may be after a long silence."""


class _Segment(NamedTuple):
    payload: Payload
    ack: int
    when: Arrival


class Reassembler:
    """The connections of a capture.

    connections: how many there were; the last ones are remembered up to limits.max_connections.
    """

    def __init__(self, limits: ReassemblyLimits = DEFAULT_REASSEMBLY) -> None:
        self.limits = limits
        self.connections = 0
        self._budget = Budget()
        self._flows: dict[bytes, Flow] = {}
        self._lingering: dict[Connection, int] = {}
        self._last = Arrival(0, NO_TIME)

    def feed(self, segments: Segments) -> list[Event]:
        """Take the segments of a block; returns what they tell."""
        out: list[Event] = []
        if not len(segments):
            return out
        rest = Bulk(segments).take(self._flows, out)
        if len(rest):
            self._one_by_one(segments, rest, out)
        now = max(self._last.time_ns, int(segments.ts.max()))
        self._last = Arrival(int(segments.packet[-1]), now)
        self._close_lingering(out)
        self._keep_within_limits(out)
        return out

    def finish(self) -> list[Event]:
        """Take note that the capture ends here."""
        out: list[Event] = []
        for flow in list(self._flows.values()):
            connection = flow.connection
            reason = CloseReason.RESET if connection.reset else CloseReason.END
            self._close(connection, reason, self._last, out)
        self._flows.clear()
        return out

    # -- one segment at a time

    def _one_by_one(self, segments: Segments, rows: Ints, out: list[Event]) -> None:
        data = segments.data
        forth, back = keys(segments, rows)
        columns = (
            segments.packet,
            segments.ts,
            segments.seq,
            segments.ack,
            segments.flags,
            segments.at,
            segments.captured,
            segments.original,
        )
        for mine, theirs, packet, time_ns, seq, ack, flags, at, captured, size in zip(
            forth, back, *(column[rows].tolist() for column in columns), strict=True
        ):
            when = Arrival(packet, time_ns)
            segment = _Segment(Payload(seq, size, data[at : at + captured], flags), ack, when)
            flow = self._flows.get(mine)
            if flow is not None and self._begins_another(flow, segment):
                self._close(flow.connection, CloseReason.REPLACED, when, out)
                flow = None
            if flow is None:
                flow = self._connect(mine, theirs, segment)
            self._take(flow, segment, out)
            if self._budget.bytes > self.limits.max_total_bytes:
                self._make_room(when, out)

    def _take(self, flow: Flow, segment: _Segment, out: list[Event]) -> None:
        connection, (payload, ack, when) = flow.connection, segment
        seq, size, data, flags = payload
        connection.seen(*when)
        if flags & SYN:
            flow.open(seq)
            payload = Payload((seq + 1) & MASK, size, data, flags)
            if connection.client is None:
                connection.client = 1 - flow.side if flags & ACK else flow.side
        elif not flow.anchored and not flags & RST:
            flow.join(seq)
        if flags & ACK:
            flow.peer.acknowledge(ack, when, out)
        if size:
            self._take_payload(flow, payload, when, out)
        if flags & FIN:
            flow.end_at((payload.seq + size) & MASK)
        flow.check(when, out)
        if flags & RST and not connection.closed and not connection.reset:
            connection.reset = True
            self._lingering[connection] = when.time_ns
        if connection.finished:
            self._close(connection, CloseReason.FINISHED, when, out)

    def _take_payload(self, flow: Flow, payload: Payload, when: Arrival, out: list[Event]) -> None:
        connection = flow.connection
        if connection.closed or payload.flags & RST:
            flow.refuse(payload, DiscardReason.AFTER, when, out)
        elif flow.take(payload, when, out):
            connection.outside = 0
        else:
            connection.outside += 1
            flow.refuse(payload, DiscardReason.OUTSIDE, when, out)

    # -- which connection

    def _connect(self, mine: bytes, theirs: bytes, segment: _Segment) -> Flow:
        opening = segment.payload.flags & (SYN | ACK)
        side = 1 if opening == SYN | ACK else 0
        connection = Connection(
            self.connections,
            _endpoints(theirs if side else mine),
            self.limits,
            self._budget,
            segment.when,
        )
        self.connections += 1
        for key in (mine, theirs):
            # What this one replaces leaves its place, so that the table stays in order of age.
            self._flows.pop(key, None)
        self._flows[mine] = connection.flows[side]
        self._flows[theirs] = connection.flows[1 - side]
        return connection.flows[side]

    def _begins_another(self, flow: Flow, segment: _Segment) -> bool:
        """Whether a segment belongs to a later connection between the same endpoints."""
        connection = flow.connection
        seq, _, _, flags = segment.payload
        if flags & SYN:
            return _is_other_opening(flow, segment)
        if not flow.anchored or flags & RST:
            return False
        distance = abs(flow.where(seq) - flow.position)
        if distance > self.limits.max_window_bytes:
            return connection.closed or connection.reset or connection.outside >= STRAYS
        time_ns = segment.when.time_ns
        timed = NO_TIME not in (time_ns, connection.last_ns)
        silent = timed and time_ns - connection.last_ns > self.limits.silence_ns
        return silent and distance > OPENING_SLACK

    # -- the end of connections

    def _close(
        self, connection: Connection, reason: CloseReason, when: Arrival, out: list[Event]
    ) -> None:
        if connection.closed:
            return
        connection.closed = True
        self._lingering.pop(connection, None)
        connection.finish(when, out)
        if reason is CloseReason.REPLACED and connection.reset:
            reason = CloseReason.RESET
        out.append(Closed(connection, reason, *when))

    def _close_lingering(self, out: list[Event]) -> None:
        now = self._last.time_ns
        due = [
            connection
            for connection, since in self._lingering.items()
            if NO_TIME in (since, now) or now - since >= LINGER_NS
        ]
        for connection in due:
            self._close(connection, CloseReason.RESET, self._last, out)

    def _make_room(self, when: Arrival, out: list[Event]) -> None:
        """Come back under the limit of bytes: forget first, then give up what is held."""
        for flow in self._flows.values():
            flow.forget()
        while self._budget.held > self.limits.max_total_bytes:
            most = max(self._budget.holding, key=lambda flow: flow.held_bytes)
            most.give_up_hole(when, out)

    def _keep_within_limits(self, out: list[Event]) -> None:
        if self._budget.bytes > self.limits.max_total_bytes:
            self._make_room(self._last, out)
        if len(self._flows) <= 2 * self.limits.max_connections:
            return
        connections = {flow.connection: None for flow in self._flows.values()}
        # Those that ended go first, then those that were silent for longest.
        oldest = sorted(connections, key=lambda each: (not each.closed, each.last_packet))
        gone = set(oldest[: len(oldest) - self.limits.max_connections * 7 // 8])
        for connection in oldest[: len(gone)]:
            self._close(connection, CloseReason.FORGOTTEN, self._last, out)
        self._flows = {
            key: flow for key, flow in self._flows.items() if flow.connection not in gone
        }


def _endpoints(key: bytes) -> tuple[Endpoint, Endpoint]:
    (row,) = np.frombuffer(key, KEY).tolist()
    return Endpoint(row[0] << 64 | row[1], row[2]), Endpoint(row[3] << 64 | row[4], row[5])


def _is_other_opening(flow: Flow, segment: _Segment) -> bool:
    """Whether a SYN opens another connection than the one that its direction is known for."""
    seq, _, _, flags = segment.payload
    peer = flow.peer
    if flow.initial != UNKNOWN:
        return flow.initial != seq
    if flow.anchored:
        # The SYN may stand behind its first data in the capture.
        return flow.origin != (seq + 1) & MASK
    if not peer.anchored:
        return False
    if flags & ACK:
        return not 0 <= peer.where(segment.ack) <= OPENING_SLACK
    return peer.initial == UNKNOWN

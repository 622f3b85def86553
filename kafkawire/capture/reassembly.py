"""All connections of a capture: blocks of segments in, events out.

Law: the fast way and the slow way say the same. A connection whose segments of a block simply continue each side is
taken as a whole; anything else in it, and the connection goes segment by segment, in packet order with all others.

    Segments --grouped--> in order? --yes--> one Run for each side
                              `-----no----> SYN, FIN, RST, holes, repeats, port reuse: one segment at a time
"""

from __future__ import annotations

from typing import Final

import numpy as np

from .blocks import NO_TIME, Ints
from .bulk import Bulk
from .events import Closed, CloseReason, DiscardReason, Event
from .flows import (
    DEFAULT_REASSEMBLY,
    UNKNOWN,
    Budget,
    Connection,
    Endpoint,
    Flow,
    ReassemblyLimits,
)
from .grouping import keys
from .packets import ACK, FIN, RST, SYN, Segments

STRAYS: Final = 8
"""Segments far outside in a row after which a connection is taken to be another one."""

LINGER_NS: Final = 1_000_000_000
"""How long after a RST packets that the capture has out of order are waited for."""

OPENING_SLACK: Final = 1 << 20
"""How far ahead the sequence number of a connection may be after a long silence."""


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
        self._packet = 0
        self._now = NO_TIME

    def feed(self, segments: Segments) -> list[Event]:
        """Take the segments of a block; returns what they tell."""
        out: list[Event] = []
        if not len(segments):
            return out
        rest = Bulk(segments).take(self._flows, out)
        if len(rest):
            self._one_by_one(segments, rest, out)
        self._packet = int(segments.packet[-1])
        self._now = max(self._now, int(segments.ts.max()))
        self._close_lingering(out)
        self._keep_within_limits(out)
        return out

    def finish(self) -> list[Event]:
        """Take note that the capture ends here."""
        out: list[Event] = []
        for flow in list(self._flows.values()):
            connection = flow.connection
            reason = CloseReason.RESET if connection.reset else CloseReason.END
            self._close(connection, reason, self._packet, self._now, out)
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
            flow = self._flow(mine, theirs, seq, ack, flags, packet, time_ns, out)
            self._segment(
                flow, seq, ack, flags, size, data[at : at + captured], packet, time_ns, out
            )
            if self._budget.held + self._budget.remembered > self.limits.max_total_bytes:
                self._make_room(packet, time_ns, out)

    def _segment(
        self,
        flow: Flow,
        seq: int,
        ack: int,
        flags: int,
        size: int,
        data: bytes,
        packet: int,
        time_ns: int,
        out: list[Event],
    ) -> None:
        connection = flow.connection
        connection.seen(packet, time_ns)
        if flags & SYN:
            flow.open(seq)
            seq = seq + 1 & 0xFFFFFFFF
            if connection.client is None:
                connection.client = 1 - flow.side if flags & ACK else flow.side
        elif not flow.anchored and not flags & RST:
            flow.join(seq)
        if flags & ACK:
            flow.peer.acknowledge(ack, packet, time_ns, out)
        if connection.closed or flags & RST:
            flow.refuse(seq, size, data, DiscardReason.AFTER, packet, time_ns, out)
        elif size:
            if flow.take(seq, size, data, flags, packet, time_ns, out):
                connection.outside = 0
            else:
                connection.outside += 1
                flow.refuse(seq, size, data, DiscardReason.OUTSIDE, packet, time_ns, out)
        if flags & FIN:
            flow.end_at(seq + size & 0xFFFFFFFF, packet, time_ns, out)
        flow.check(packet, time_ns, out)
        if flags & RST and not connection.reset:
            connection.reset = True
            self._lingering[connection] = time_ns
        if connection.finished and not connection.closed:
            self._close(connection, CloseReason.FINISHED, packet, time_ns, out)

    # -- which connection

    def _flow(
        self,
        mine: bytes,
        theirs: bytes,
        seq: int,
        ack: int,
        flags: int,
        packet: int,
        time_ns: int,
        out: list[Event],
    ) -> Flow:
        flow = self._flows.get(mine)
        if flow is not None and not self._begins_another(flow, seq, ack, flags, time_ns):
            return flow
        if flow is not None:
            self._close(flow.connection, CloseReason.REPLACED, packet, time_ns, out)
        return self._connect(mine, theirs, flags, packet, time_ns)

    def _connect(
        self, mine: bytes, theirs: bytes, flags: int, packet: int, time_ns: int
    ) -> Flow:
        side = 1 if flags & SYN and flags & ACK else 0
        ends = _endpoints(theirs if side else mine)
        connection = Connection(
            self.connections, ends, self.limits, self._budget, packet, time_ns
        )
        self.connections += 1
        for key in (mine, theirs):
            # A connection replaced by this one goes behind the others: the table stays in order of age.
            self._flows.pop(key, None)
        self._flows[mine] = connection.flows[side]
        self._flows[theirs] = connection.flows[1 - side]
        return connection.flows[side]

    def _begins_another(self, flow: Flow, seq: int, ack: int, flags: int, time_ns: int) -> bool:
        """Whether a segment belongs to a later connection between the same endpoints."""
        connection = flow.connection
        if flags & SYN:
            return _is_other_opening(flow, seq, ack, flags)
        if not flow.anchored or flags & RST:
            return False
        distance = abs(flow.where(seq) - flow.position)
        if distance > self.limits.max_window_bytes:
            return connection.closed or connection.reset or connection.outside >= STRAYS
        silent = NO_TIME not in (time_ns, connection.last_ns)
        silent = silent and time_ns - connection.last_ns > self.limits.silence_ns
        return silent and distance > OPENING_SLACK

    # -- the end of connections

    def _close(
        self,
        connection: Connection,
        reason: CloseReason,
        packet: int,
        time_ns: int,
        out: list[Event],
    ) -> None:
        if connection.closed:
            return
        connection.closed = True
        self._lingering.pop(connection, None)
        connection.finish(packet, time_ns, out)
        if reason is CloseReason.REPLACED and connection.reset:
            reason = CloseReason.RESET
        out.append(Closed(connection, reason, packet, time_ns))

    def _close_lingering(self, out: list[Event]) -> None:
        due = [
            connection
            for connection, since in self._lingering.items()
            if NO_TIME in (since, self._now) or self._now - since >= LINGER_NS
        ]
        for connection in due:
            self._close(connection, CloseReason.RESET, self._packet, self._now, out)

    def _make_room(self, packet: int, time_ns: int, out: list[Event]) -> None:
        """Come back under the limit of bytes: stop remembering first, then give up the holes that hold most."""
        for flow in self._flows.values():
            flow.forget()
        while self._budget.held > self.limits.max_total_bytes:
            most = max(self._budget.holding, key=lambda flow: flow.held_bytes)
            most.give_up_hole(packet, time_ns, out)

    def _keep_within_limits(self, out: list[Event]) -> None:
        if self._budget.held + self._budget.remembered > self.limits.max_total_bytes:
            self._make_room(self._packet, self._now, out)
        if len(self._flows) <= 2 * self.limits.max_connections:
            return
        connections = {flow.connection: None for flow in self._flows.values()}
        oldest = sorted(connections, key=lambda each: (not each.closed, each.last_packet))
        gone = set(oldest[: len(oldest) - self.limits.max_connections * 7 // 8])
        for connection in gone:
            self._close(connection, CloseReason.FORGOTTEN, self._packet, self._now, out)
        self._flows = {
            key: flow for key, flow in self._flows.items() if flow.connection not in gone
        }


def _endpoints(key: bytes) -> tuple[Endpoint, Endpoint]:
    halves = []
    for half in (key[:18], key[18:]):
        high, low, port = np.frombuffer(half, "u8,u8,u2")[0].item()
        halves.append(Endpoint(high << 64 | low, port))
    return halves[0], halves[1]


def _is_other_opening(flow: Flow, seq: int, ack: int, flags: int) -> bool:
    """Whether a SYN opens another connection than the one that its direction is known for."""
    if flow.initial != UNKNOWN:
        return flow.initial != seq
    if flow.anchored:
        # The SYN may stand behind its first data in the capture.
        return flow.origin != (seq + 1) & 0xFFFFFFFF
    peer = flow.peer
    if not peer.anchored:
        return False
    if flags & ACK:
        return not 0 <= peer.where(ack) <= OPENING_SLACK
    return peer.initial == UNKNOWN

"""The connections of a capture that are remembered, and which of them a segment belongs to.

Law: one connection at a time for a pair of endpoints; what is replaced or forgotten is closed, and
an event says so. What becomes of a connection depends on its own packets alone, not on others nor
on the blocks that packets come in; but for `max_total_bytes` and `max_connections`, which bound all
connections together.

    SYN with another number, a far-off sequence number after the end or a long silence --> a new one
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from ..files.blocks import NO_TIME
from ..packets.parser import ACK, RST, SYN
from .connection import END, Connection
from .events import Closed, CloseReason, Event
from .flow import MASK, UNKNOWN, Flow, Segment
from .limits import Budget, ReassemblyLimits

STRAYS: Final = 8
"""Segments far outside in a row after which a connection is taken to be another one."""

LINGER_NS: Final = 1_000_000_000
"""How long after a RST a connection's own packets still belong to it, as out of order."""

STILL_OPEN: Final = 1 << 64
"""What makes any time that is an int64 later than all others."""

OPENING_SLACK: Final = 1 << 20
"""How far a connection may have come since its opening, or during a silence, to be the same."""


@final
class ConnectionTable:
    """Connections by the keys of their two directions.

    opened: how many there have been.
    """

    def __init__(self, limits: ReassemblyLimits) -> None:
        self.limits: ReassemblyLimits = limits
        self.budget: Budget = Budget()
        self.flows: dict[bytes, Flow] = {}
        self.opened: int = 0
        self._most: i64 = limits.max_total_bytes
        self._gone: list[Connection] = []

    def flow(self, key: bytes, segment: Segment, out: list[Event]) -> Flow:
        """Find the flow that a segment belongs to; begin a connection where there is none."""
        flow = self.flows.get(key)
        if flow is not None:
            if flow.connection.reset:
                self._linger(flow.connection, segment, out)
            if segment.seq == flow.next_seq and not segment.flags & SYN:
                return flow
            if not self._begins_another(flow, segment):
                return flow
            replaced = CloseReason.REPLACED
            self.close(flow.connection, replaced, segment.packet, segment.time_ns, out)
            self._gone.append(flow.connection)
        return self._connect(key, segment)

    def part(self) -> None:
        """Let go of the connections that were replaced or forgotten; what was said of them has been
        read by now.
        """
        for connection in self._gone:
            connection.part()
        self._gone.clear()

    def reset(self, connection: Connection, time_ns: i64) -> None:
        """Note a RST: the connection is closed when nothing out of order can come any more."""
        if not connection.closed and not connection.reset:
            connection.reset = True
            connection.reset_ns = time_ns

    def close(
        self,
        connection: Connection,
        reason: CloseReason,
        packet: i64,
        time_ns: i64,
        out: list[Event],
    ) -> None:
        """Close a connection, once; it stays in the table for what may come late."""
        if connection.closed:
            return
        connection.closed = True
        connection.finish(packet, time_ns, out)
        if reason is CloseReason.REPLACED and connection.reset:
            reason = CloseReason.RESET
        out.append(Closed(connection, reason, packet, time_ns))

    def tidy(self, packet: i64, time_ns: i64, out: list[Event]) -> None:
        """Come back within the limits."""
        self.make_room(packet, time_ns, out)
        if len(self.flows) > 2 * self.limits.max_connections:
            self._forget_some(packet, time_ns, out)

    def make_room(self, packet: i64, time_ns: i64, out: list[Event]) -> None:
        """Come back under the limit of bytes: forget first, then give up what is held."""
        if self.budget.held + self.budget.remembered <= self._most:
            return
        for flow in self.flows.values():
            flow.forget()
        # Well below the limit, so that this is not done again for the next segment.
        enough = self._most * 7 // 8
        for flow in sorted(self.budget.holding, key=lambda flow: -flow.held_bytes):
            while flow.held_bytes and self.budget.held > enough:
                flow.give_up_hole(packet, time_ns, out)

    def finish(self, out: list[Event]) -> None:
        """Close all connections, each at its own last packet."""
        self.part()
        connections = list(dict.fromkeys([flow.connection for flow in self.flows.values()]))
        left = [connection for connection in connections if not connection.closed]
        for connection in sorted(left, key=lambda connection: connection.last_packet):
            reason = CloseReason.FINISHED if connection.finished else CloseReason.END
            if connection.reset:
                reason = CloseReason.RESET
            self.close(connection, reason, connection.last_packet, connection.last_ns, out)
        self.flows.clear()
        self._gone += connections

    def _linger(self, connection: Connection, segment: Segment, out: list[Event]) -> None:
        """Close a connection that was reset so long ago that a packet of it is no straggler."""
        since, now = connection.reset_ns, segment.time_ns
        if since != NO_TIME and now != NO_TIME and now - since >= LINGER_NS:
            self.close(connection, CloseReason.RESET, segment.packet, now, out)

    # -- which connection

    def _connect(self, key: bytes, segment: Segment) -> Flow:
        opposite = _opposite(key)
        answers = segment.flags & (SYN | ACK) == SYN | ACK
        connection = Connection(
            self.opened,
            opposite if answers else key,
            self.limits,
            self.budget,
            segment.packet,
            segment.time_ns,
        )
        self.opened += 1
        first, second = connection.flows
        mine, theirs = (second, first) if answers else (first, second)
        self.flows[key] = mine
        self.flows[opposite] = theirs
        return mine

    def _begins_another(self, flow: Flow, segment: Segment) -> bool:
        connection = flow.connection
        if segment.flags & SYN:
            return _is_other_opening(flow, segment)
        if not flow.anchored or segment.flags & RST:
            return False
        distance = flow.where(segment.seq) - flow.position
        if distance < 0:
            distance = -distance
        if distance > self.limits.max_window_bytes:
            return connection.closed or connection.reset or connection.outside >= STRAYS
        last, now = connection.last_ns, segment.time_ns
        if last == NO_TIME or now == NO_TIME:
            return False
        return now - last > self.limits.silence_ns and distance > OPENING_SLACK

    def _forget_some(self, packet: i64, time_ns: i64, out: list[Event]) -> None:
        """Forget those that ended first, then those that were silent for longest."""
        keys = [key for key, flow in self.flows.items() if flow is flow.connection.flows[0]]
        keys.sort(key=self._age)
        for key in keys[: len(keys) - self.limits.max_connections * 3 // 4]:
            connection = self.flows[key].connection
            self.close(connection, CloseReason.FORGOTTEN, packet, time_ns, out)
            self._gone.append(connection)
            del self.flows[key]
            del self.flows[_opposite(key)]

    def _age(self, key: bytes) -> int:
        connection = self.flows[key].connection
        last: int = connection.last_ns
        return last if connection.closed or connection.reset else last + STILL_OPEN


def _opposite(key: bytes) -> bytes:
    return key[END:] + key[:END]


def _is_other_opening(flow: Flow, segment: Segment) -> bool:
    """Whether a SYN opens another connection than the one that its direction is known for."""
    peer = flow.peer
    assert peer is not None
    if flow.initial != UNKNOWN:
        return flow.initial != segment.seq
    if flow.anchored:
        # The SYN may stand behind its first data in the capture.
        return flow.origin != (segment.seq + 1) & MASK
    if not peer.anchored:
        return False
    if segment.flags & ACK:
        return not 0 <= peer.where(segment.ack) <= OPENING_SLACK
    return peer.initial == UNKNOWN

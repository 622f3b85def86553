"""The connections of a capture that are remembered, and which of them a segment belongs to.

Law: one connection at a time for a pair of endpoints; what is replaced or forgotten is closed, and
an event says so. What becomes of a connection depends on its own packets alone, not on others nor
on the blocks that packets come in; but for `max_total_bytes` and `max_connections`, which bound all
connections together.

    SYN with another number, a far-off sequence number after the end or a long silence --> a new one
"""

from __future__ import annotations

from typing import Final

import numpy as np
from mypy_extensions import mypyc_attr

from .blocks import NO_TIME
from .bounds import Budget, ReassemblyLimits
from .connections import Connection, Endpoint
from .events import Arrival, Closed, CloseReason, Event
from .flows import MASK, UNKNOWN, Flow, Segment
from .grouping import KEY
from .packets import ACK, RST, SYN

STRAYS: Final = 8
"""Segments far outside in a row after which a connection is taken to be another one."""

LINGER_NS: Final = 1_000_000_000
"""How long after a RST a connection's own packets still belong to it, as out of order."""

OPENING_SLACK: Final = 1 << 20
"""How far a connection may have come since its opening, or during a silence, to be the same."""

UNNUMBERED: Final = -1


@mypyc_attr(allow_interpreted_subclasses=True)
class ConnectionTable:
    """Connections by the keys of their two directions.

    opened: how many there have been.
    """

    def __init__(self, limits: ReassemblyLimits) -> None:
        self.limits = limits
        self.budget = Budget()
        self.flows: dict[bytes, Flow] = {}
        self.opened = 0
        self._new: list[Connection] = []
        self._gone: list[Connection] = []

    def flow(self, mine: bytes, theirs: bytes, segment: Segment, out: list[Event]) -> Flow:
        """Find the flow that a segment belongs to; begin a connection where there is none."""
        flow = self.flows.get(mine)
        if flow is not None:
            if flow.connection.reset:
                self._linger(flow.connection, segment.when, out)
            if segment.seq == flow.next_seq and not segment.flags & SYN:
                return flow
            if not self._begins_another(flow, segment):
                return flow
            self.close(flow.connection, CloseReason.REPLACED, segment.when, out)
        return self._connect(mine, theirs, segment)

    def number(self) -> None:
        """Number the connections begun since the last call, in order of their first packet."""
        for connection in sorted(self._new, key=lambda new: new.first_packet):
            connection.id = self.opened
            self.opened += 1
        self._new.clear()

    def part(self) -> None:
        """Let go of the connections that were replaced or forgotten; what was said of them has been
        read by now.
        """
        for connection in self._gone:
            connection.part()
        self._gone.clear()

    def reset(self, connection: Connection, when: Arrival) -> None:
        """Note a RST: the connection is closed when nothing out of order can come any more."""
        if not connection.closed and not connection.reset:
            connection.reset = True
            connection.reset_ns = when.time_ns

    def close(
        self, connection: Connection, reason: CloseReason, when: Arrival, out: list[Event]
    ) -> None:
        """Close a connection, once; it stays in the table for what may come late."""
        if connection.closed:
            return
        connection.closed = True
        connection.finish(when, out)
        if reason is CloseReason.REPLACED and connection.reset:
            reason = CloseReason.RESET
        out.append(Closed(connection, reason, *when))

    def tidy(self, when: Arrival, out: list[Event]) -> None:
        """Come back within the limits."""
        self.make_room(when, out)
        if len(self.flows) > 2 * self.limits.max_connections:
            self._forget_some(when, out)

    def make_room(self, when: Arrival, out: list[Event]) -> None:
        """Come back under the limit of bytes: forget first, then give up what is held."""
        if self.budget.held + self.budget.remembered <= self.limits.max_total_bytes:
            return
        for flow in self.flows.values():
            flow.forget()
        # Well below the limit, so that this is not done again for the next segment.
        enough = self.limits.max_total_bytes * 7 // 8
        for flow in sorted(self.budget.holding, key=lambda flow: -flow.held_bytes):
            while flow.held_bytes and self.budget.held > enough:
                flow.give_up_hole(when, out)

    def finish(self, out: list[Event]) -> None:
        """Close all connections, each at its own last packet."""
        for flow in self.flows.values():
            connection = flow.connection
            reason = CloseReason.FINISHED if connection.finished else CloseReason.END
            if connection.reset:
                reason = CloseReason.RESET
            self.close(connection, reason, connection.last, out)
        self.flows.clear()

    def _linger(self, connection: Connection, when: Arrival, out: list[Event]) -> None:
        """Close a connection that was reset so long ago that a packet of it is no straggler."""
        timed = NO_TIME not in (connection.reset_ns, when.time_ns)
        if timed and when.time_ns - connection.reset_ns >= LINGER_NS:
            self.close(connection, CloseReason.RESET, when, out)

    # -- which connection

    def _connect(self, mine: bytes, theirs: bytes, segment: Segment) -> Flow:
        answers = segment.flags & (SYN | ACK) == SYN | ACK
        ends = endpoints(theirs if answers else mine)
        connection = Connection(UNNUMBERED, ends, self.limits, self.budget, segment.when)
        self._new.append(connection)
        side = 1 if answers else 0
        replaced = self.flows.get(mine)
        if replaced is not None:
            self._gone.append(replaced.connection)
        self.flows[mine] = connection.flows[side]
        self.flows[theirs] = connection.flows[1 - side]
        return connection.flows[side]

    def _begins_another(self, flow: Flow, segment: Segment) -> bool:
        connection = flow.connection
        if segment.flags & SYN:
            return _is_other_opening(flow, segment)
        if not flow.anchored or segment.flags & RST:
            return False
        distance = abs(flow.where(segment.seq) - flow.position)
        if distance > self.limits.max_window_bytes:
            return connection.closed or connection.reset or connection.outside >= STRAYS
        time_ns = segment.when.time_ns
        timed = NO_TIME not in (time_ns, connection.last_ns)
        silent = timed and time_ns - connection.last_ns > self.limits.silence_ns
        return silent and distance > OPENING_SLACK

    def _forget_some(self, when: Arrival, out: list[Event]) -> None:
        """Forget those that ended first, then those that were silent for longest."""
        connections = {flow.connection: None for flow in self.flows.values()}
        oldest = sorted(
            connections, key=lambda each: (not (each.closed or each.reset), each.last_ns)
        )
        gone = dict.fromkeys(oldest[: len(oldest) - self.limits.max_connections * 7 // 8])
        for connection in gone:
            self.close(connection, CloseReason.FORGOTTEN, when, out)
        self._gone += gone
        self.flows = {key: flow for key, flow in self.flows.items() if flow.connection not in gone}


def endpoints(key: bytes) -> tuple[Endpoint, Endpoint]:
    """Read the source and the destination out of a direction's key."""
    (row,) = np.frombuffer(key, KEY).tolist()
    return Endpoint(row[0] << 64 | row[1], row[2]), Endpoint(row[3] << 64 | row[4], row[5])


def _is_other_opening(flow: Flow, segment: Segment) -> bool:
    """Whether a SYN opens another connection than the one that its direction is known for."""
    peer = flow.peer
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

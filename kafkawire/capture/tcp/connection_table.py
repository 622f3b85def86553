"""The tracked connections of a capture; finds the connection of a segment.

A pair of endpoints has one connection at a time; a connection that is replaced or evicted is
closed with an event. The events of a connection depend on its own packets alone, not on those of
others nor on how packets are grouped into blocks, except for the limits of all connections together
(`max_total_bytes`, `max_connections`).

    another initial sequence number, or a distant one after a close or a long silence: a new one
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from ..files.blocks import NO_TIME
from ..packets.segment_rows import ACK, RST, SYN
from .connection import END, UNKNOWN, Connection
from .events import Closed, CloseReason, Event
from .flow import MASK, Budget, Flow, Segment
from .limits import ReassemblyLimits

MAX_OUT_OF_WINDOW: Final = 8
"""Consecutive out-of-window segments after which they belong to a new connection."""

LINGER_NS: Final = 1_000_000_000
"""How long after a RST packets may still be out-of-order segments of the connection."""

OPEN_LAST: Final = 1 << 64
"""Added to the time of an open connection, so that it sorts behind all closed ones."""

MAX_SYN_DISTANCE: Final = 1 << 20
"""How far sequence numbers may be from the SYN, or from those before a long silence, to belong to
the same connection.
"""


@final
class ConnectionTable:
    """The flows of the tracked connections, by key.

    opened: the number of connections so far.
    """

    def __init__(self, limits: ReassemblyLimits) -> None:
        self.limits: ReassemblyLimits = limits
        self.budget: Budget = Budget()
        self.flows: dict[bytes, Flow] = {}
        self.opened: int = 0
        self._max_bytes: i64 = limits.max_total_bytes
        self._removed: list[Flow] = []

    def flow(self, key: bytes, segment: Segment, out: list[Event]) -> Flow:
        """Find the flow of a segment; start a new connection if there is none."""
        flow = self.flows.get(key)
        if flow is not None:
            if flow.connection.reset:
                self._close_after_reset(flow, segment, out)
            if segment.seq == flow.next_seq and not segment.flags & SYN:
                return flow
            if not self._is_new_connection(flow, segment):
                return flow
            replaced = CloseReason.REPLACED
            self.close(flow, replaced, segment.packet, segment.time_ns, out)
            self._removed.append(flow)
        return self._connect(key, segment)

    def release(self) -> None:
        """Release replaced and evicted connections: none of their segments is being handled."""
        for flow in self._removed:
            if flow.peer is not None:
                flow.peer.release()
            flow.release()
        self._removed.clear()

    def reset(self, connection: Connection, time_ns: i64) -> None:
        """Handle a RST: the connection closes when no out-of-order segment can follow any more."""
        if not connection.closed and not connection.reset:
            connection.reset = True
            connection.reset_ns = time_ns

    def close(
        self,
        flow: Flow,
        reason: CloseReason,
        packet: i64,
        time_ns: i64,
        out: list[Event],
    ) -> None:
        """Close the connection of a flow, once; it stays in the table for late segments."""
        connection, peer = flow.connection, flow.peer
        if connection.closed or peer is None:
            return
        first, second = (peer, flow) if flow.side else (flow, peer)
        first.finish(packet, time_ns, out)
        second.finish(packet, time_ns, out)
        connection.close()
        if reason is CloseReason.REPLACED and connection.reset:
            reason = CloseReason.RESET
        out.append(Closed(connection, reason, packet, time_ns))

    def bytes_left(self) -> i64:
        """Return how many bytes more may be stored before a limit is enforced."""
        return self._max_bytes - self.budget.held - self.budget.remembered

    def add_delivered(self, size: i64) -> None:
        """Count bytes more that are kept for comparison, of segments handled elsewhere."""
        self.budget.remembered += size

    def exceeds_limits(self) -> bool:
        """Whether `enforce_limits` has something to do."""
        return self.bytes_left() < 0 or len(self.flows) > 2 * self.limits.max_connections

    def enforce_limits(self, packet: i64, time_ns: i64, out: list[Event]) -> None:
        """Enforce the limits of all connections together."""
        self.enforce_byte_limit(packet, time_ns, out)
        if len(self.flows) > 2 * self.limits.max_connections:
            self._evict(packet, time_ns, out)

    def enforce_byte_limit(self, packet: i64, time_ns: i64, out: list[Event]) -> None:
        """Enforce `max_total_bytes`: drop delivered bytes first, then give up gaps."""
        if self.budget.held + self.budget.remembered <= self._max_bytes:
            return
        for flow in self.flows.values():
            flow.drop_delivered()
        # Well below the limit, so that the next segment does not exceed it again.
        target = self._max_bytes * 7 // 8
        for flow in sorted(self.budget.holding, key=lambda flow: -flow.held_bytes):
            while flow.held_bytes and self.budget.held > target:
                flow.give_up_gap(packet, time_ns, out)

    def finish(self, out: list[Event]) -> None:
        """Close all connections, each at its own last packet."""
        flows = list({flow.connection: flow for flow in self.flows.values()}.values())
        open_flows = [flow for flow in flows if not flow.connection.closed]
        for flow in sorted(open_flows, key=lambda flow: flow.connection.last_packet):
            connection = flow.connection
            reason = CloseReason.FINISHED if flow.both_finished else CloseReason.END
            if connection.reset:
                reason = CloseReason.RESET
            self.close(flow, reason, connection.last_packet, connection.last_ns, out)
        self.flows.clear()
        self._removed += flows

    def _close_after_reset(self, flow: Flow, segment: Segment, out: list[Event]) -> None:
        """Close a connection whose RST is too old for this segment to be out of order."""
        since, now = flow.connection.reset_ns, segment.time_ns
        if since != NO_TIME and now != NO_TIME and now - since >= LINGER_NS:
            self.close(flow, CloseReason.RESET, segment.packet, now, out)

    # -- connections

    def _connect(self, key: bytes, segment: Segment) -> Flow:
        reverse = _reversed(key)
        is_syn_ack = segment.flags & (SYN | ACK) == SYN | ACK
        connection = Connection(
            self.opened,
            reverse if is_syn_ack else key,
            segment.packet,
            segment.time_ns,
        )
        self.opened += 1
        flow = Flow(connection, 1 if is_syn_ack else 0, self.limits, self.budget)
        peer = Flow(connection, 0 if is_syn_ack else 1, self.limits, self.budget)
        flow.peer, peer.peer = peer, flow
        self.flows[key] = flow
        self.flows[reverse] = peer
        return flow

    def _is_new_connection(self, flow: Flow, segment: Segment) -> bool:
        connection = flow.connection
        if segment.flags & SYN:
            return _is_new_syn(flow, segment)
        if not flow.has_origin or segment.flags & RST:
            return False
        distance = flow.position_of(segment.seq) - flow.position
        if distance < 0:
            distance = -distance
        if distance > self.limits.max_window_bytes:
            return (
                connection.closed
                or connection.reset
                or connection.out_of_window >= MAX_OUT_OF_WINDOW
            )
        last, now = connection.last_ns, segment.time_ns
        if last == NO_TIME or now == NO_TIME:
            return False
        return now - last > self.limits.silence_ns and distance > MAX_SYN_DISTANCE

    def _evict(self, packet: i64, time_ns: i64, out: list[Event]) -> None:
        """Evict the connections that closed first, then those that were idle for longest."""
        keys = [key for key, flow in self.flows.items() if flow.side == 0]
        keys.sort(key=self._age)
        for key in keys[: len(keys) - self.limits.max_connections * 3 // 4]:
            flow = self.flows[key]
            self.close(flow, CloseReason.FORGOTTEN, packet, time_ns, out)
            self._removed.append(flow)
            del self.flows[key]
            del self.flows[_reversed(key)]

    def _age(self, key: bytes) -> int:
        connection = self.flows[key].connection
        last: int = connection.last_ns
        return last if connection.closed or connection.reset else last + OPEN_LAST


def _reversed(key: bytes) -> bytes:
    return key[END:] + key[:END]


def _is_new_syn(flow: Flow, segment: Segment) -> bool:
    """Whether a SYN opens a new connection instead of repeating that of the flow."""
    peer = flow.peer
    assert peer is not None
    if flow.initial != UNKNOWN:
        return flow.initial != segment.seq
    if flow.has_origin:
        # The SYN may follow its first data in the capture.
        return flow.origin != (segment.seq + 1) & MASK
    if not peer.has_origin:
        return False
    if segment.flags & ACK:
        return not 0 <= peer.position_of(segment.ack) <= MAX_SYN_DISTANCE
    return peer.initial == UNKNOWN

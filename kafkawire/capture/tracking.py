"""Moves the state of connections to `frames.in_order`, and back.

A connection is tracked while nothing of it is missing and all its bytes are frames; then its
state is as if its flows and streams had handled every segment themselves.

    Connection, Flow, Stream  --track-->  InOrderFrames  --untrack-->  Connection, Flow, Stream
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i64_le, write_i64_le

from .exchanges.conversation import Conversation
from .frames.in_order import UNTRACKED, InOrderFrames
from .frames.tracked_state import TrackedState
from .tcp.connection import Connection
from .tcp.connection_table import ConnectionTable

SIDE_AT: Final = 16
OTHER_SIDE_AT: Final = 64
STREAM_AT: Final = 40
"""Where the numbers of a side begin in the state, and where that of its stream is among them (see
`TrackedState`).
"""


def track(
    in_order: InOrderFrames,
    table: ConnectionTable,
    connection: Connection,
    conversation: Conversation,
) -> int:
    """Track a connection if it is in order; return its slot, or UNTRACKED."""
    flow = table.flows.get(connection.key)
    peer = None if flow is None else flow.peer
    if (
        flow is None
        or peer is None
        or flow.connection is not connection
        or not (connection.is_open and flow.is_in_order and peer.is_in_order)
        or not conversation.is_in_order
    ):
        return UNTRACKED
    first, second = conversation.streams
    numbers, marks, other_marks = BytesWriter(), BytesWriter(), BytesWriter()
    write_i64_le(numbers, connection.last_packet)
    write_i64_le(numbers, connection.last_ns)
    delivered = flow.save(numbers)
    write_i64_le(numbers, first.position)
    other_delivered = peer.save(numbers)
    write_i64_le(numbers, second.position)
    held, other_held = first.save(marks), second.save(other_marks)
    state = TrackedState(
        numbers.getvalue(),
        delivered,
        other_delivered,
        held,
        other_held,
        marks.getvalue(),
        other_marks.getvalue(),
    )
    return in_order.track(connection.key, conversation.client or 0, state)


def untrack(
    in_order: InOrderFrames,
    slot: int,
    table: ConnectionTable,
    connection: Connection,
    conversation: Conversation,
) -> None:
    """Continue behind the segments that were handled while the connection was tracked."""
    state = in_order.untrack(slot)
    numbers = state.numbers
    flow = table.flows[connection.key]
    peer = flow.peer
    assert peer is not None
    connection.last_packet = read_i64_le(numbers, 0)
    connection.last_ns = read_i64_le(numbers, 8)
    flow.restore(numbers, SIDE_AT, state.delivered)
    peer.restore(numbers, OTHER_SIDE_AT, state.other_delivered)
    first, second = conversation.streams
    first.restore(read_i64_le(numbers, SIDE_AT + STREAM_AT), state.held, state.marks)
    position = read_i64_le(numbers, OTHER_SIDE_AT + STREAM_AT)
    second.restore(position, state.other_held, state.other_marks)

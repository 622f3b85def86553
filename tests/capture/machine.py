"""Events for a conversation, and the rows that it makes of them."""

from __future__ import annotations

from typing import Final

from kafkawire.capture.exchanges.conversation import Conversation
from kafkawire.capture.frames.decoding import RawFrame
from kafkawire.capture.rows import Row
from kafkawire.capture.tcp.connection import Connection, Run
from kafkawire.capture.tcp.events import Closed, CloseReason, Event, Gap, GapReason

CONNECTION: Final = Connection(0, bytes(36), 0, 0)


def feed(
    conversation: Conversation, side: int, data: bytes, packet: int, time_ns: int
) -> list[Row]:
    """The next bytes of a side, which became contiguous with one packet."""
    return rows_of(conversation, Run(CONNECTION, side, 0, data, packet, time_ns, packet))


def gap(conversation: Conversation, side: int, size: int, packet: int, time_ns: int) -> list[Row]:
    """`size` bytes of a side were not captured."""
    return rows_of(conversation, Gap(CONNECTION, side, 0, size, GapReason.LOST, packet, time_ns))


def finish(conversation: Conversation) -> list[Row]:
    """The connection ended."""
    return rows_of(conversation, Closed(CONNECTION, CloseReason.END, 0, 0))


def rows_of(conversation: Conversation, event: Event) -> list[Row]:
    """The rows of an event."""
    limits = conversation.limits
    items = conversation.handle(event)
    return [item.decode(limits) if isinstance(item, RawFrame) else item for item in items]

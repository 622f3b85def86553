"""Packets, and streams, that tools print as text: what `kafkawire.capture` reads as captures.

    text --> Splitter --> PrintedPacket(data, link type, time | problem)
             PrintedPackets    tcpdump -X, tshark -x
             FollowedStream    Follow TCP Stream: hex dump, raw, YAML, C arrays
             TracedCalls       strace

It imports little, and the rest for text alone, since every command recognises its inputs by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .splitter import Splitter

HEAD: Final = 1 << 15
"""Bytes of a file in which the first packet must begin: `tshark -V` describes it first."""
STEP: Final = 1 << 12
"""Bytes of a head of which a few more change nothing."""


def is_text(head: bytes) -> bool:
    """Whether a file may be text. head: its first bytes, but those of a capture."""
    return not any(byte < 0x20 and byte not in b"\t\n\r" for byte in head[:STEP])


def splitter_of(head: bytes) -> Splitter | None:
    """Return what splits a file that begins so into packets; None if it has none.

    head: its first bytes, of which at most HEAD count.
    """
    if not is_text(head):
        return None
    from .recognition import splitter_of

    return splitter_of(head[:HEAD])


def why_not_printed(head: bytes) -> str:
    """Return why text about packets is not a capture; "" for others. head: its first bytes."""
    if not is_text(head):
        return ""
    from .recognition import why_not_printed

    return why_not_printed(head[:HEAD])


def more_of_text(head: bytes, more: Iterator[bytes]) -> bytes:
    """Read on in a file until packets are recognised in it, if it begins as text does.

    head: its first bytes. Returns as many as are needed, or all.
    """
    tried = 0
    while is_text(head) and len(head) < HEAD:
        if len(head) < STEP or len(head) >= tried + tried // 4:  # a pipe may bring byte by byte
            tried = len(head)
            if splitter_of(head) is not None:
                break
        if not (part := next(more, b"")):
            break
        head += part
    return head

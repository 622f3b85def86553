"""Recognises text that tools print about packets by its beginning, and how it is split."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .calls import TracedCalls, is_traced
from .packets import MIN_BYTES, SUMMARY, PrintedPackets
from .splitter import PrintedPacket, Splitter
from .streams import FollowedStream, form_of, lossy_form

NO_BYTES: Final = (
    "lines about packets without their bytes: print them with tcpdump -X or tshark -x, or write "
    "them with -w FILE"
)
NO_LINK_TYPE: Final = (
    "packets as text, with a header that is none of Ethernet, Linux cooked and IP: print them with "
    "tcpdump -X, which leaves it out, or write them with -w FILE"
)
LOSSY: Final = "a stream followed as {}, which does not have all of its bytes: follow it as raw"

EXPORTED: Final = {
    "JSON": re.compile(r'\s*(?:\[\s*\{\s*|\{"index": ?\{)"_index": ?"packets-'),
    "XML": re.compile(r"<\?xml [^>]{0,80}\?>[\s\S]{0,400}<p[ds]ml "),
}
"""Forms in which tshark and Wireshark export what they make of packets -> how files begin."""
NOT_READ: Final = (
    "packets as {} of tshark or Wireshark: read the capture itself, or print it with tshark -x"
)


def splitter_of(head: bytes) -> Splitter | None:
    """Return what splits a file that begins so into packets; None if it has none."""
    form = form_of(head)
    if form is not None:
        return FollowedStream(form)
    if is_traced(head):
        return TracedCalls()
    has_packet = any(each.link is not None for each in _packets_of(head))
    return PrintedPackets() if has_packet else None


def why_not_printed(head: bytes) -> str:
    """Return why text about packets is not a capture; "" for other text."""
    if form := lossy_form(head):
        return LOSSY.format(form)
    text = head.decode("latin-1")
    for name, pattern in EXPORTED.items():
        if pattern.match(text):
            return NOT_READ.format(name)
    if SUMMARY.match(text) is None:
        return ""
    has_bytes = any(len(each.data) >= MIN_BYTES for each in _packets_of(head))
    return NO_LINK_TYPE if has_bytes else NO_BYTES


def _packets_of(head: bytes) -> Iterator[PrintedPacket]:
    packets = PrintedPackets()
    yield from packets.feed(head)
    yield from packets.finish()

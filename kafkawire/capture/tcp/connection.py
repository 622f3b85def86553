"""A TCP connection: its endpoints, its packets and times, the bytes of its sides, how it ended.

Side 0 opened the connection if its SYN was captured; otherwise it is the side of the first
captured packet. The two directions are `Flow`s, which refer to their connection. Most packets make
one `Run` of bytes, so that is cheap to create.
"""

from __future__ import annotations

import sys
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple, final

from mypy_extensions import i64, mypyc_attr

from ..files.blocks import NO_TIME

END: Final = 18
"""Bytes of one endpoint in the key of a flow: an address and a port."""

ADDRESS: Final = 16
MAPPED: Final = 0xFFFF
"""An IPv4 address in its IPv6-mapped form, without its last 32 bits."""

UNKNOWN: Final = -1
"""A sequence number that is not known."""

LITTLE: Final = sys.byteorder == "little"
MAX_CACHED_ADDRESSES: Final = 1 << 12

_address_texts: Final[dict[bytes, str]] = {}


class Endpoint(NamedTuple):
    """An address (128 bits, IPv4 in its IPv6-mapped form) and a TCP port."""

    number: int
    port: int

    @property
    def address(self) -> str:
        number = self.number
        if number >> 32 == MAPPED:  # as below, in a tenth of the time
            return f"{number >> 24 & 255}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        address = IPv6Address(number)
        return str(address.ipv4_mapped or address)

    def __str__(self) -> str:
        return _host_port(self.address, self.port)


def endpoint(text: str) -> Endpoint:
    """Parse `address:port` as rows show it, an IPv6 address in brackets. Raises ValueError."""
    address, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
        raise ValueError(f"invalid address {text!r}: expected address:port")
    if address[:1] + address[-1:] == "[]":
        return Endpoint(int(IPv6Address(address[1:-1])), int(port))
    number = ip_address(address)
    return Endpoint(int(number) | (0xFFFF << 32 if number.version == 4 else 0), int(port))


@final
@mypyc_attr(acyclic=True)
class Totals:
    """Payload bytes of one side, by what became of them.

    delivered: in runs. duplicate: retransmitted with the same content, or too late to compare.
    conflicting: retransmitted with other content. keep_alive: in keep-alive probes.
    discarded: see DiscardReason. missing: in gaps.
    """

    __slots__ = ("conflicting", "delivered", "discarded", "duplicate", "keep_alive", "missing")

    def __init__(self) -> None:
        self.delivered: i64 = 0
        self.duplicate: i64 = 0
        self.conflicting: i64 = 0
        self.keep_alive: i64 = 0
        self.discarded: i64 = 0
        self.missing: i64 = 0

    @property
    def captured(self) -> int:
        """Payload bytes captured of this side."""
        repeated = self.duplicate + self.conflicting + self.keep_alive
        return self.delivered + repeated + self.discarded


@final
@mypyc_attr(acyclic=True)
class Receiver:
    """What one side announced as a receiver: its maximum segment size, 0 if unknown; its window.

    zero_windows: how often the window closed. closed_ns: how long it was closed in all; closed_at:
    since when it is, NO_TIME while it is open. finished: whether the side sent a FIN; finished_ns:
    when it sent the first one.
    """

    __slots__ = (
        "closed_at",
        "closed_ns",
        "finished",
        "finished_ns",
        "is_closed",
        "mss",
        "zero_windows",
    )

    def __init__(self) -> None:
        self.mss: i64 = 0
        self.zero_windows: i64 = 0
        self.closed_ns: i64 = 0
        self.closed_at: i64 = NO_TIME
        self.is_closed: bool = False
        self.finished: bool = False
        self.finished_ns: i64 = NO_TIME

    def set_window(self, is_zero: bool, time_ns: i64) -> None:
        """Handle the window of a segment (RFC 9293, section 3.8.6)."""
        if is_zero == self.is_closed:
            return
        self.is_closed = is_zero
        if is_zero:
            self.zero_windows += 1
            self.closed_at = time_ns
            return
        if self.closed_at != NO_TIME and time_ns > self.closed_at:
            self.closed_ns += time_ns - self.closed_at
        self.closed_at = NO_TIME


@final
class Connection:
    """One connection; `id` numbers connections from 0 in order of their first packet.

    key: the key of the flow from side 0 to side 1. client: the side that sent the SYN, None if no
    SYN was captured. syn_seen: for each side, whether its SYN was captured. reset: whether a RST
    was seen; reset_ns: when the first one was. starts: the first sequence number of each side, or
    what the other side acknowledged before it. out_of_window: consecutive segments too far out of
    the window. source: the side behind a proxy, and the `address:port` that the proxy says it has.
    totals: the byte counts of each side. captured_bytes, repeated_bytes: their sums, set when the
    connection is closed. receivers: what each side announced. syn_ns, syn_ack_ns, established_ns:
    when the SYN, the SYN of the other side and the first ACK after it were captured.
    """

    def __init__(
        self,
        number: int,
        key: bytes,
        packet: i64,
        time_ns: i64,
    ) -> None:
        self.id: int = number
        self.key: bytes = key
        self.client: int | None = None
        self.first_packet: i64 = packet
        self.last_packet: i64 = packet
        self.first_ns: i64 = time_ns
        self.last_ns: i64 = time_ns
        self.reset: bool = False
        self.reset_ns: i64 = NO_TIME
        self.closed: bool = False
        self.out_of_window: i64 = 0
        self.captured_bytes: i64 = 0
        self.repeated_bytes: i64 = 0
        self.syn_seen: list[bool] = [False, False]
        self.source: tuple[int, str] | None = None
        self.starts: list[int] = [UNKNOWN, UNKNOWN]
        self.totals: tuple[Totals, Totals] = Totals(), Totals()
        self.receivers: tuple[Receiver, Receiver] = Receiver(), Receiver()
        self.syn_ns: i64 = NO_TIME
        self.syn_ack_ns: i64 = NO_TIME
        self.established_ns: i64 = NO_TIME

    def seen(self, packet: i64, time_ns: i64) -> None:
        """Record the last packet seen; packets after the close do not count."""
        if self.closed:
            return
        self.last_packet = packet
        if time_ns != NO_TIME:
            self.last_ns = time_ns
            if self.first_ns == NO_TIME:
                self.first_ns = time_ns

    def note_syn(self, is_ack: bool, time_ns: i64) -> None:
        """Record the time of a SYN, the last one if it was sent again."""
        if self.established_ns == NO_TIME:
            if is_ack:
                self.syn_ack_ns = time_ns
            elif self.syn_ack_ns == NO_TIME:
                self.syn_ns = time_ns

    def rtt_ns(self, side: i64) -> i64:
        """Return the round-trip time between the capture and a side, from the handshake.

        NO_TIME if it is not known.
        """
        if self.client is None:
            return NO_TIME
        first, last = self.syn_ns, self.syn_ack_ns
        if side == self.client:
            first, last = self.syn_ack_ns, self.established_ns
        if first == NO_TIME or last == NO_TIME or last < first:
            return NO_TIME
        return last - first

    @property
    def is_open(self) -> bool:
        """Whether it was neither closed nor reset, and its packets have times."""
        return not self.closed and not self.reset and self.first_ns != NO_TIME

    @property
    def endpoints(self) -> tuple[Endpoint, Endpoint]:
        """The endpoints of side 0 and side 1."""
        return _endpoint(self.key[:END]), _endpoint(self.key[END:])

    def name(self, side: int) -> str:
        """Format the endpoint of a side as rows show it, like `str(endpoint)`.

        That of a side behind a proxy is its real one.
        """
        source = self.source
        if source is not None and source[0] == side:
            return source[1]
        start = END if side else 0
        address = self.key[start : start + ADDRESS]
        text = _address_texts.get(address)
        if text is None:
            if len(_address_texts) >= MAX_CACHED_ADDRESSES:
                _address_texts.clear()
            text = _address_texts[address] = self.endpoints[side].address
        first, second = self.key[start + ADDRESS], self.key[start + ADDRESS + 1]
        return _host_port(text, first | second << 8 if LITTLE else first << 8 | second)

    def close(self) -> None:
        """Mark the connection closed and add up its totals."""
        self.closed = True
        for receiver in self.receivers:
            receiver.set_window(False, self.last_ns)
        for totals in self.totals:
            self.captured_bytes += totals.captured
            self.repeated_bytes += totals.duplicate + totals.keep_alive

    def __repr__(self) -> str:
        return f"<connection {self.id} {self.name(0)} - {self.name(1)}>"


@final
@mypyc_attr(acyclic=True)
class Run:
    """Contiguous bytes of a side, starting at `position`.

    packet, time_ns: the packet that made the bytes contiguous, and its time. known: the packet
    after which the run was reported; later than `packet` if a gap before the run timed out first.
    """

    __slots__ = ("connection", "data", "known", "packet", "position", "side", "time_ns")

    def __init__(
        self,
        connection: Connection,
        side: i64,
        position: i64,
        data: bytes,
        packet: i64,
        time_ns: i64,
        known: i64,
    ) -> None:
        self.connection: Connection = connection
        self.side: i64 = side
        self.position: i64 = position
        self.data: bytes = data
        self.packet: i64 = packet
        self.time_ns: i64 = time_ns
        self.known: i64 = known

    @property
    def end(self) -> int:
        return self.position + len(self.data)


def _endpoint(key: bytes) -> Endpoint:
    order = sys.byteorder
    high, low = int.from_bytes(key[:8], order), int.from_bytes(key[8:ADDRESS], order)
    return Endpoint(high << 64 | low, int.from_bytes(key[ADDRESS:], order))


def _host_port(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"

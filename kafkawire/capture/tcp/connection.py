"""A TCP connection: two endpoints, and a flow from each to the other.

Law: side 0 opened the connection, where that was seen; otherwise it is the side that was seen
first.
"""

from __future__ import annotations

import sys
from ipaddress import IPv6Address
from typing import Final, NamedTuple, final

from mypy_extensions import i64

from ..files.blocks import NO_TIME
from .events import Event
from .flow import Flow
from .limits import Budget, ReassemblyLimits

END: Final = 18
"""Bytes of one end in the key of a direction: an address and a port."""

ADDRESS: Final = 16
LITTLE: Final = sys.byteorder == "little"
MOST_TEXTS: Final = 1 << 12

_texts: Final[dict[bytes, str]] = {}


class Endpoint(NamedTuple):
    """An address (128 bits, IPv4 in its IPv6-mapped form) and a TCP port."""

    number: int
    port: int

    @property
    def address(self) -> str:
        address = IPv6Address(self.number)
        return str(address.ipv4_mapped or address)

    def __str__(self) -> str:
        return _joined(self.address, self.port)


@final
class Connection:
    """One connection; `id` counts them in order of their first packet, from 0.

    key: of the direction from side 0 to side 1. client: 0 where the opening was seen, else None.
    reset: whether a RST was seen; reset_ns: when that was first. outside: segments in a row that
    were too far off to belong to it. When it is closed, captured_bytes and repeated_bytes say what
    its totals were. totals: what became of the bytes of each side.
    """

    def __init__(
        self,
        number: int,
        key: bytes,
        limits: ReassemblyLimits,
        budget: Budget,
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
        self.outside: i64 = 0
        self.captured_bytes: i64 = 0
        self.repeated_bytes: i64 = 0
        first, second = Flow(self, 0, limits, budget), Flow(self, 1, limits, budget)
        first.peer, second.peer = second, first
        self.flows: tuple[Flow, ...] = first, second
        self.totals = first.totals, second.totals

    def seen(self, packet: i64, time_ns: i64) -> None:
        """Note the packet that was seen last; what comes when all is over counts no more."""
        if self.closed:
            return
        self.last_packet = packet
        if time_ns != NO_TIME:
            self.last_ns = time_ns
            if self.first_ns == NO_TIME:
                self.first_ns = time_ns

    @property
    def endpoints(self) -> tuple[Endpoint, Endpoint]:
        """The ends of side 0 and of side 1."""
        return _endpoint(self.key[:END]), _endpoint(self.key[END:])

    def name(self, side: int) -> str:
        """Write an end as rows show it, as the str of its endpoint."""
        at = END if side else 0
        address = self.key[at : at + ADDRESS]
        text = _texts.get(address)
        if text is None:
            if len(_texts) >= MOST_TEXTS:
                _texts.clear()
            text = _texts[address] = self.endpoints[side].address
        one, other = self.key[at + ADDRESS], self.key[at + ADDRESS + 1]
        return _joined(text, one | other << 8 if LITTLE else one << 8 | other)

    @property
    def finished(self) -> bool:
        """Whether both sides said that they are done, and nothing of them is awaited."""
        return self.flows[0].finished and self.flows[1].finished

    @property
    def over(self) -> bool:
        """Whether both sides know, too: the last acknowledgment was seen."""
        first, second = self.flows
        return first.fin_acked and second.fin_acked and first.finished and second.finished

    def finish(self, packet: i64, time_ns: i64, out: list[Event]) -> None:
        """Give up all that is awaited, and close the accounts."""
        for flow in self.flows:
            flow.finish(packet, time_ns, out)
            totals = flow.totals
            self.captured_bytes += totals.captured
            self.repeated_bytes += totals.duplicate + totals.keep_alive

    def part(self) -> None:
        """Let go of the flows, of a connection that nobody looks up any more: flows know their
        connection and each other, and such circles wait in memory for somebody to look for them.
        """
        for flow in self.flows:
            flow.peer = None
        self.flows = ()

    def __repr__(self) -> str:
        return f"<connection {self.id} {self.name(0)} - {self.name(1)}>"


def _endpoint(key: bytes) -> Endpoint:
    order = sys.byteorder
    high, low = int.from_bytes(key[:8], order), int.from_bytes(key[8:ADDRESS], order)
    return Endpoint(high << 64 | low, int.from_bytes(key[ADDRESS:], order))


def _joined(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"

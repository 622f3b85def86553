"""A TCP connection: two endpoints, and a flow from each to the other.

Law: side 0 opened the connection, where that was seen; otherwise it is the side that was seen
first.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address
from typing import NamedTuple

from mypy_extensions import mypyc_attr

from .blocks import NO_TIME
from .bounds import Budget, ReassemblyLimits
from .events import Arrival, Event
from .flows import Flow


class Endpoint(NamedTuple):
    """An address (128 bits, IPv4 in its IPv6-mapped form) and a TCP port."""

    number: int
    port: int

    @property
    def address(self) -> str:
        return _address(self.number)

    def __str__(self) -> str:
        address = _address(self.number)
        return f"[{address}]:{self.port}" if ":" in address else f"{address}:{self.port}"


@lru_cache(maxsize=4096)
def _address(number: int) -> str:
    address = IPv6Address(number)
    return str(address.ipv4_mapped or address)


@mypyc_attr(allow_interpreted_subclasses=True)
class Connection:
    """One connection; `id` counts them in order of their first packet, from 0.

    client: 0 where the opening was seen, else None. reset: whether a RST was seen; reset_ns: when
    that was first. outside: segments in a row that were too far off to belong to it. When it is
    closed, captured_bytes and repeated_bytes say what its totals were. totals: what became of the
    bytes of each side.
    """

    def __init__(
        self,
        number: int,
        endpoints: tuple[Endpoint, Endpoint],
        limits: ReassemblyLimits,
        budget: Budget,
        when: Arrival,
    ) -> None:
        self.id = number
        self.endpoints = endpoints
        self.client: int | None = None
        self.first_packet = self.last_packet = when.packet
        self.first_ns = self.last_ns = when.time_ns
        self.reset = False
        self.reset_ns = NO_TIME
        self.closed = False
        self.outside = 0
        self.captured_bytes = self.repeated_bytes = 0
        self.flows: tuple[Flow, ...] = (
            Flow(self, 0, limits, budget),
            Flow(self, 1, limits, budget),
        )
        self.totals = self.flows[0].totals, self.flows[1].totals

    def seen(self, packet: int, time_ns: int) -> None:
        """Note the packet that was seen last; what comes when all is over counts no more."""
        if self.closed:
            return
        self.last_packet = packet
        if time_ns != NO_TIME:
            self.last_ns = time_ns
            if self.first_ns == NO_TIME:
                self.first_ns = time_ns

    @property
    def last(self) -> Arrival:
        """The packet seen last."""
        return Arrival(self.last_packet, self.last_ns)

    @property
    def finished(self) -> bool:
        """Whether both sides said that they are done, and nothing of them is awaited."""
        return self.flows[0].finished and self.flows[1].finished

    @property
    def over(self) -> bool:
        """Whether both sides know, too: the last acknowledgment was seen."""
        return self.finished and self.flows[0].fin_acked and self.flows[1].fin_acked

    def finish(self, when: Arrival, out: list[Event]) -> None:
        """Give up all that is awaited, and close the accounts."""
        for flow in self.flows:
            flow.finish(when, out)
        self.captured_bytes = sum(each.captured for each in self.totals)
        self.repeated_bytes = sum(each.duplicate + each.keep_alive for each in self.totals)

    def part(self) -> None:
        """Let go of the flows, of a connection that nobody looks up any more: flows know their
        connection, and such circles wait in memory for somebody to look for them.
        """
        self.flows = ()

    def __repr__(self) -> str:
        return f"<connection {self.id} {self.endpoints[0]} - {self.endpoints[1]}>"

"""Counts packets whose headers were not decoded down to TCP although they may carry it.

Other traffic (ARP, ICMP, UDP without a tunnel, ...) is not among them. One problem of the capture
reports each kind of header and number: packets, and their captured bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ...display import plural
from .kinds import MAX_LAYERS, Kind

NO_NUMBER: Final = -1
MAX_REASONS: Final = 100
"""Reasons that are reported of a file; the packets of the others are added up."""


class Reason(NamedTuple):
    """Why packets were not decoded.

    kind: SKIPPED, CUT, MALFORMED, NESTED or a kind of fragments. header: where decoding ended.
    number: the unknown protocol in this header.
    """

    kind: Kind
    header: Kind
    number: int = NO_NUMBER


class Count(NamedTuple):
    """Packets, and their captured bytes."""

    packets: int = 0
    bytes: int = 0

    def __add__(self, other: Count) -> Count:  # type: ignore[override]
        return Count(self.packets + other.packets, self.bytes + other.bytes)


class Undecoded:
    """Packets that were not decoded, by reason."""

    def __init__(self, counts: Mapping[Reason, Count] | None = None) -> None:
        self.counts: dict[Reason, Count] = dict(counts or {})

    def add(self, reason: Reason, count: Count) -> None:
        """Add packets."""
        self.counts[reason] = self.counts.get(reason, Count()) + count

    def merge(self, others: Iterable[tuple[Reason, Count]]) -> None:
        """Add what was counted elsewhere."""
        for reason, count in others:
            self.add(reason, count)

    def problems(self) -> list[Skipped]:
        """Return a problem for each reason, the most frequent first."""
        ordered = sorted(self.counts.items(), key=lambda one: (-one[1].packets, one[0]))
        skipped = [Skipped(_text(reason, count), count.bytes) for reason, count in ordered]
        if len(skipped) <= MAX_REASONS:
            return skipped
        rest = Count()
        for _, count in ordered[MAX_REASONS:]:
            rest += count
        more = f"{_packets(rest)} not decoded: {len(skipped) - MAX_REASONS} more reasons"
        return [*skipped[:MAX_REASONS], Skipped(more, rest.bytes)]


class Skipped(NamedTuple):
    """A problem: packets that were not decoded. bytes: captured of them."""

    text: str
    bytes: int


def reason_in(text: str) -> str:
    """Return the reason in the text of a problem, without the counts."""
    return text.partition(": ")[2]


SPACES: Final = {
    **dict.fromkeys((Kind.IPV4, Kind.IPV6, Kind.EXTENSION, Kind.AUTHENTICATION), "IP protocol"),
    **dict.fromkeys((Kind.PPPOE, Kind.PPP_PROTOCOL), "PPP protocol"),
    **dict.fromkeys((Kind.PPI, Kind.PKTAP), "link type"),
    Kind.UDP: "UDP port",
    Kind.NAT_T: "UDP port",
    Kind.GRE: "GRE protocol",
    Kind.VXLAN: "VXLAN flags or protocol",
    Kind.NSH: "NSH protocol",
    Kind.ERSPAN_3: "ERSPAN frame type",
    Kind.GTP: "GTP-U flags",
    Kind.ETHERIP: "EtherIP version",
}
"""What the numbers in a header are; EtherTypes otherwise."""

IN_HEX: Final = frozenset({"EtherType", "PPP protocol", "GRE protocol"})

NAMES: Final = {
    ("EtherType", 0x22F3): "TRILL",
    ("EtherType", 0x8903): "FabricPath",
    ("EtherType", 0x8909): "Cisco metadata",
    ("EtherType", 0x88E5): "MACsec",
    ("IP protocol", 50): "ESP, encrypted",
    ("IP protocol", 55): "minimal encapsulation",
    ("IP protocol", 108): "IPComp",
    ("IP protocol", 115): "L2TP",
    ("PPP protocol", 0x003D): "multilink",
    ("PPP protocol", 0x00FD): "compressed",
    ("PPP protocol", 0x0053): "encrypted",
    ("GRE protocol", 0x883E): "WCCP",
    ("UDP port", 1194): "OpenVPN",
    ("UDP port", 1701): "L2TP",
    ("UDP port", 3544): "Teredo",
    ("UDP port", 4500): "ESP, encrypted",
    ("UDP port", 5247): "CAPWAP",
    ("UDP port", 6080): "GUE",
    ("UDP port", 51820): "WireGuard, encrypted",
    ("UDP port", 51871): "WireGuard, encrypted",
}

HEADER_NAMES: Final = {
    Kind.ETHERNET: "Ethernet",
    Kind.SLL: "Linux cooked",
    Kind.SLL2: "Linux cooked",
    Kind.IPV4: "IPv4",
    Kind.IPV6: "IPv6",
    Kind.EXTENSION: "IPv6 extension",
    Kind.AUTHENTICATION: "IP authentication",
    Kind.RAW_IP: "IP",
    Kind.VLAN: "VLAN",
    Kind.FRAGMENT4: "IPv4 fragment",
    Kind.FRAGMENT6: "IPv6 fragment",
    Kind.IEEE802_11: "802.11",
    Kind.MPLS_PAYLOAD: "MPLS",
    Kind.PPP_PROTOCOL: "PPP",
    Kind.GTP: "GTP-U",
    Kind.GTP_EXTENSION: "GTP-U",
}
"""Headers whose name is not that of their kind."""


def _text(reason: Reason, count: Count) -> str:
    return f"{_packets(count)} not decoded: {_why(reason)}"


def _packets(count: Count) -> str:
    return f"{plural(count.packets, 'packet')} ({plural(count.bytes, 'byte')})"


def _why(reason: Reason) -> str:
    kind, header, number = reason
    name = HEADER_NAMES.get(header) or header.name.replace("_", " ")
    if kind is Kind.CUT:
        return f"incomplete {name} header"
    if kind is Kind.MALFORMED:
        return f"malformed {name} header"
    if kind is Kind.NESTED:
        return f"more than {MAX_LAYERS} headers"
    if kind in (Kind.FRAGMENT4, Kind.FRAGMENT6):
        return f"fragments of incomplete datagrams, IP protocol {number}"
    if header is Kind.IEEE802_11:
        return "802.11 frames, " + ("encrypted" if number else "in fragments or aggregated")
    space = SPACES.get(header, "EtherType")
    shown = f"{number:#06x}" if space in IN_HEX else str(number)
    protocol = NAMES.get((space, number))
    return f"{space} {shown}" + (f" ({protocol})" if protocol else "")

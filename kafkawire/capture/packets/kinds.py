"""Types of headers, and the protocol numbers that lead from one header to the next.

A number in no table is SKIPPED: it may carry TCP, and a problem of the capture reports it. OTHER
lists what is known to carry none (ARP, ICMP, LLDP, ...): that is counted, and no problem.

Sources: IANA's registries, IEEE 802 numbers, tcpdump.org/linktypes.html.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple


class Kind(IntEnum):
    """The type of header at an offset of a packet; those up to ENDS are final."""

    OTHER = 0
    """Something that does not carry TCP."""
    CUT = 1
    """A header truncated by the snaplen, or by the end of its packet."""
    MALFORMED = 2
    """A header that contradicts itself."""
    LINK_TYPE = 3
    """An unsupported link type."""
    TCP = 4
    FRAGMENT4 = 5
    FRAGMENT6 = 6
    SKIPPED = 7
    """A protocol that is not decoded and may carry TCP."""
    NESTED = 8
    """More headers than MAX_LAYERS."""
    ETHERNET = 9
    SLL = 10
    SLL2 = 11
    NULL = 12
    RAW_IP = 13
    PPPOE = 14
    VLAN = 15
    IPV4 = 16
    IPV6 = 17
    EXTENSION = 18
    AUTHENTICATION = 19
    UDP = 20
    VXLAN = 21
    GENEVE = 22
    GRE = 23
    LLC = 24
    SNAP = 25
    MPLS = 26
    MPLS_PAYLOAD = 27
    TAG = 28
    """VN-tag or HSR: four bytes, then an EtherType."""
    E_TAG = 29
    I_TAG = 30
    NSH = 31
    ERSPAN_1 = 32
    """ERSPAN type I or II; the sequence number of GRE says which."""
    ERSPAN_2 = 33
    ERSPAN_3 = 34
    GTP = 35
    GTP_EXTENSION = 36
    ETHERIP = 37
    NAT_T = 38
    PPP = 39
    PPP_PROTOCOL = 40
    PPPD = 41
    PPP_DIRECTION = 42
    CISCO_HDLC = 43
    NFLOG = 44
    PKTAP = 45
    ENC = 46
    IPNET = 47
    FIREWIRE = 48
    IEEE802_11 = 49
    RADIOTAP = 50
    PPI = 51
    AVS = 52


ENDS: Final = Kind.NESTED
MAX_LAYERS: Final = 40
"""Headers of one packet at most: eight times VXLAN, for example."""

LINKS: Final = {
    0: Kind.NULL,
    1: Kind.ETHERNET,
    9: Kind.PPP,
    12: Kind.RAW_IP,
    14: Kind.RAW_IP,
    50: Kind.PPP,
    51: Kind.PPPOE,
    101: Kind.RAW_IP,
    104: Kind.CISCO_HDLC,
    105: Kind.IEEE802_11,
    108: Kind.NULL,
    109: Kind.ENC,
    113: Kind.SLL,
    127: Kind.RADIOTAP,
    138: Kind.FIREWIRE,
    163: Kind.AVS,
    166: Kind.PPPD,
    192: Kind.PPI,
    204: Kind.PPP_DIRECTION,
    226: Kind.IPNET,
    228: Kind.IPV4,
    229: Kind.IPV6,
    239: Kind.NFLOG,
    258: Kind.PKTAP,
    276: Kind.SLL2,
}
"""LINKTYPE_ numbers."""

MAX_LENGTH: Final = 1500
"""An EtherType up to this is the length of an 802.3 frame, which LLC follows."""

OTHER_ETHERTYPES: Final = frozenset(
    {
        *(0x0806, 0x8035, 0x80F3),  # ARP, RARP, AARP
        *(0x2000, 0x2003, 0x2004, 0x9000),  # Cisco discovery and trunking, loopback
        *(0x6002, 0x6003, 0x6004, 0x809B, 0x8137, 0x8138),  # DEC, AppleTalk, IPX
        *(0x8808, 0x8809, 0x88CC, 0x8902, 0x88F5, 0x88F6, 0x22EA),  # LACP, LLDP, CFM, MVRP, ...
        *(0x0842, 0x886F, 0x8863, 0x888E, 0x8899, 0x88BF),  # Wake-on-LAN, NLB, PPPoE discovery,
        # EAPOL, loop detection, RoMON
        *(0x887B, 0x88E1, 0x8912, 0x893A),  # HomePlug, IEEE 1905
        *(0x8819, 0x8892, 0x88A4, 0x88AB, 0x88B8, 0x88B9, 0x88BA, 0x88CD, 0x88E3),  # fieldbuses
        *(0x22F0, 0x88F7, 0x88F8, 0x88FB),  # AVTP, PTP, NC-SI, PRP
        *(0x889A, 0x88A2, 0x8906, 0x8914, 0x8915),  # HyperSCSI, AoE, FCoE, FIP, RoCE
    }
)
"""EtherTypes that carry no TCP."""

ETHERTYPES: Final = {
    0x0800: Kind.IPV4,
    0x86DD: Kind.IPV6,
    0x8100: Kind.VLAN,
    0x88A8: Kind.VLAN,
    0x9100: Kind.VLAN,
    0x9200: Kind.VLAN,
    0x8847: Kind.MPLS,
    0x8848: Kind.MPLS,
    0x8864: Kind.PPPOE,
    0x880B: Kind.PPP,
    0x6558: Kind.ETHERNET,
    0x8926: Kind.TAG,
    0x892F: Kind.TAG,
    0x893F: Kind.E_TAG,
    0x88E7: Kind.I_TAG,
    0x894F: Kind.NSH,
    **dict.fromkeys(OTHER_ETHERTYPES, Kind.OTHER),
}
IN_GRE: Final = {**ETHERTYPES, 0x88BE: Kind.ERSPAN_1, 0x22EB: Kind.ERSPAN_3}
BELOW_ETHERTYPES: Final = {**dict.fromkeys(range(0x600), Kind.OTHER), 4: Kind.LLC}
"""Linux's ETH_P_ numbers that are no EtherTypes, in the cooked link types."""

_OTHER_PROTOCOLS: Final = (1, 2, 3, 8, 9, 33, 46, 58, 59, 88, 89, 103, 112, 113, 132, 136)
"""ICMP, IGMP, routing protocols, RSVP, VRRP, SCTP, DCCP, UDP-Lite, ..."""

PROTOCOLS4: Final = {
    4: Kind.RAW_IP,
    6: Kind.TCP,
    17: Kind.UDP,
    41: Kind.RAW_IP,
    47: Kind.GRE,
    51: Kind.AUTHENTICATION,
    94: Kind.RAW_IP,
    97: Kind.ETHERIP,
    137: Kind.MPLS,
    **dict.fromkeys(_OTHER_PROTOCOLS, Kind.OTHER),
}
PROTOCOLS6: Final = {
    **PROTOCOLS4,
    44: Kind.FRAGMENT6,
    **dict.fromkeys((0, 43, 60, 135, 139, 140), Kind.EXTENSION),
}
PPP_PROTOCOLS: Final = {
    0x0021: Kind.IPV4,
    0x0057: Kind.IPV6,
    0x0281: Kind.MPLS,
    0x0283: Kind.MPLS,
    **dict.fromkeys((0x0001, 0x0023, 0x0029, 0x002B), Kind.OTHER),  # padding, OSI, AppleTalk, IPX
}
PPP_CONTROL: Final = range(0x4000, 0x10000)
"""Control protocols of PPP, which are OTHER: a table of them all would be made at each start."""

UDP_PORTS: Final = {
    1194: Kind.SKIPPED,
    1701: Kind.SKIPPED,
    2152: Kind.GTP,
    3544: Kind.SKIPPED,
    4500: Kind.NAT_T,
    4754: Kind.GRE,
    4789: Kind.VXLAN,
    4790: Kind.VXLAN,
    5247: Kind.SKIPPED,
    6080: Kind.SKIPPED,
    6081: Kind.GENEVE,
    6635: Kind.MPLS,
    8472: Kind.VXLAN,
}
"""Destination ports of tunnels; any other port is OTHER."""

NEXT_PROTOCOLS: Final = {
    1: Kind.IPV4,
    2: Kind.IPV6,
    3: Kind.ETHERNET,
    4: Kind.NSH,
    5: Kind.MPLS,
}
"""What follows VXLAN-GPE and NSH (RFC 8300)."""

TUNNELS: Final = {
    "vxlan": Kind.VXLAN,
    "geneve": Kind.GENEVE,
    "gtp-u": Kind.GTP,
    "gre": Kind.GRE,
    "mpls": Kind.MPLS,
}
"""Tunnels over UDP by name, for ports other than their own."""


class Tunnel(NamedTuple):
    """A UDP port that carries a tunnel; text: as the option has it."""

    kind: Kind
    port: int


def tunnel(text: str) -> Tunnel:
    """Parse `vxlan:14789`. Raises ValueError."""
    name, _, port = text.partition(":")
    kind = TUNNELS.get(name.lower())
    if kind is None or not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
        expected = f"TUNNEL:PORT with a tunnel of {', '.join(TUNNELS)}"
        raise ValueError(f"invalid tunnel {text!r}: expected {expected}")
    return Tunnel(kind, int(port))


def udp_ports(tunnels: Iterable[str] = ()) -> dict[int, Kind]:
    """Return what UDP ports carry, with tunnels on other ports. Raises ValueError."""
    return {**UDP_PORTS, **{port: kind for kind, port in map(tunnel, tunnels)}}


BITMAP: Final = 1 << 13
PROTOCOL_BITMAP: Final = 1 << 5
"""Bytes of a bit for each number of 16 and of 8 bits."""


def passed_over(ports: Mapping[int, Kind]) -> bytes:
    """Return which packets carry no TCP, as bitmaps, for `ordinary`.

    EtherTypes | protocols of IPv4 | protocols of IPv6, where set bits carry none; then UDP ports
    where set bits are tunnels.
    """
    tables = (
        (BITMAP, OTHER_ETHERTYPES),
        (PROTOCOL_BITMAP, _others(PROTOCOLS4)),
        (PROTOCOL_BITMAP, _others(PROTOCOLS6)),
        (BITMAP, ports),
    )
    return b"".join(_bitmap(size, numbers) for size, numbers in tables)


def _others(table: Mapping[int, Kind]) -> list[int]:
    return [number for number, kind in table.items() if kind is Kind.OTHER]


def _bitmap(size: int, numbers: Iterable[int]) -> bytes:
    bits = bytearray(size)
    for number in numbers:
        bits[number >> 3] |= 1 << (number & 7)
    return bytes(bits)

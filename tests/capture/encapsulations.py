"""Encapsulations made by hand: tags, labels and tunnels around packets, and link types.

A packet is a frame of Ethernet or an IP packet. WRAPPERS turn one into the other, or into itself;
LINKS are what a capture begins with. Nothing is shared with the reader.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from .wire import Packet, ethernet, ipv4, ipv6, udp

FRAME, IP = "frame", "ip"
OUTER4 = "192.168.0.1", "192.168.0.2"
OUTER6 = "fe80::1", "fe80::2"


def outer4(payload: bytes, protocol: int) -> bytes:
    return ipv4(payload, source=OUTER4[0], destination=OUTER4[1], protocol=protocol)


def outer6(payload: bytes, following: int) -> bytes:
    return ipv6(payload, source=OUTER6[0], destination=OUTER6[1], following=following)


def ethertype(packet: bytes) -> int:
    return 0x0800 if packet[0] >> 4 == 4 else 0x86DD


def protocol(packet: bytes) -> int:
    return 4 if packet[0] >> 4 == 4 else 41


def tagged(tag: bytes, outer: int) -> Callable[[bytes], bytes]:
    return lambda ip: ethernet(tag + struct.pack(">H", ethertype(ip)) + ip, outer)


def typed_gre(payload: bytes, kind: int, flags: int = 0) -> bytes:
    return outer4(
        struct.pack(">HH", flags, kind) + bytes(4 * (flags >> 12).bit_count()) + payload, 47
    )


def ppp_in_gre(ip: bytes) -> bytes:
    number = b"\x00\x21" if ethertype(ip) == 0x0800 else b"\x00\x57"
    body = b"\xff\x03" + number + ip
    head = struct.pack(">HHHHII", 0x3081, 0x880B, len(body), 7, 1, 2)
    return outer4(head + body, 47)


def over_udp(port: int, head: bytes) -> Callable[[bytes], bytes]:
    return lambda payload: outer4(udp(port, head + payload), 17)


def over_udp6(port: int, head: bytes) -> Callable[[bytes], bytes]:
    return lambda payload: outer6(udp(port, head + payload), 17)


def gtp(ip: bytes, flags: int = 0x30, more: bytes = b"") -> bytes:
    head = struct.pack(">BBHI", flags, 255, len(more) + len(ip), 1)
    return outer4(udp(2152, head + more + ip), 17)


def snap(ip: bytes) -> bytes:
    body = b"\xaa\xaa\x03\0\0\0" + struct.pack(">H", ethertype(ip)) + ip
    return ethernet(body, len(body) if len(body) <= 1500 else 1500)


def nsh(following: int) -> bytes:
    return struct.pack(">HBBI", 2, 2, following, 256)  # type 2, without metadata


VXLAN: Final = b"\x08" + bytes(3) + b"\0\0\x48\0"
ERSPAN_2: Final = struct.pack(">HHI", 0x1000, 100, 0)
ERSPAN_3: Final = struct.pack(">HHIHH", 0x2000, 100, 7, 0, 0)
LABEL: Final = struct.pack(">I", 16 << 12 | 64)
BOTTOM: Final = struct.pack(">I", 17 << 12 | 0x100 | 64)


class Wrapper(NamedTuple):
    """An encapsulation. takes, gives: FRAME or IP."""

    takes: str
    gives: str
    wrap: Callable[[bytes], bytes]


WRAPPERS: Final[dict[str, Wrapper]] = {
    "ethernet": Wrapper(IP, FRAME, lambda ip: ethernet(ip, ethertype(ip))),
    "vlan": Wrapper(IP, FRAME, tagged(b"\0\x64", 0x8100)),
    "qinq": Wrapper(IP, FRAME, tagged(b"\0\x64\x81\0\0\x65", 0x88A8)),
    "vn-tag": Wrapper(IP, FRAME, tagged(bytes(4), 0x8926)),
    "e-tag": Wrapper(IP, FRAME, tagged(bytes(6), 0x893F)),
    "hsr": Wrapper(IP, FRAME, tagged(bytes(4), 0x892F)),
    "snap": Wrapper(IP, FRAME, snap),
    "mpls": Wrapper(IP, FRAME, lambda ip: ethernet(LABEL + BOTTOM + ip, 0x8847)),
    "pppoe": Wrapper(
        IP,
        FRAME,
        lambda ip: ethernet(
            struct.pack(">BBHH", 0x11, 0, 1, len(ip) + 2)
            + (b"\0\x21" if ethertype(ip) == 0x0800 else b"\0\x57")
            + ip,
            0x8864,
        ),
    ),
    "nsh in ethernet": Wrapper(
        IP, FRAME, lambda ip: ethernet(nsh(1 if ethertype(ip) == 0x0800 else 2) + ip, 0x894F)
    ),
    "i-tag": Wrapper(FRAME, FRAME, lambda frame: ethernet(bytes(4) + frame, 0x88E7)),
    "pseudowire": Wrapper(FRAME, FRAME, lambda frame: ethernet(BOTTOM + bytes(4) + frame, 0x8847)),
    "ip in ip": Wrapper(IP, IP, lambda ip: outer4(ip, protocol(ip))),
    "ip in ipv6": Wrapper(IP, IP, lambda ip: outer6(ip, protocol(ip))),
    "gre": Wrapper(IP, IP, lambda ip: typed_gre(ip, ethertype(ip))),
    "gre with options": Wrapper(IP, IP, lambda ip: typed_gre(ip, ethertype(ip), 0xB000)),
    "gre mpls": Wrapper(IP, IP, lambda ip: typed_gre(BOTTOM + ip, 0x8847)),
    "pptp": Wrapper(IP, IP, ppp_in_gre),
    "mpls in ip": Wrapper(IP, IP, lambda ip: outer4(BOTTOM + ip, 137)),
    "mpls in udp": Wrapper(IP, IP, over_udp(6635, BOTTOM)),
    "gre in udp": Wrapper(
        IP, IP, lambda ip: outer4(udp(4754, struct.pack(">HH", 0, ethertype(ip)) + ip), 17)
    ),
    "gtp-u": Wrapper(IP, IP, gtp),
    "gtp-u sequence": Wrapper(IP, IP, lambda ip: gtp(ip, 0x32, b"\0\1\0\0")),
    "gtp-u extensions": Wrapper(
        IP, IP, lambda ip: gtp(ip, 0x34, b"\0\0\0\x85\x01\x10\0\x85\x01\x10\0\0")
    ),
    "vxlan-gpe": Wrapper(
        IP,
        IP,
        lambda ip: outer4(
            udp(4790, b"\x0c\0\0" + bytes([1 if ethertype(ip) == 0x0800 else 2]) + bytes(4) + ip),
            17,
        ),
    ),
    "geneve ip": Wrapper(
        IP,
        IP,
        lambda ip: outer4(
            udp(6081, struct.pack(">BBHI", 2, 0, ethertype(ip), 0) + bytes(8) + ip), 17
        ),
    ),
    "vxlan": Wrapper(FRAME, IP, over_udp(4789, VXLAN)),
    "vxlan 8472": Wrapper(FRAME, IP, over_udp(8472, VXLAN)),
    "vxlan over ipv6": Wrapper(FRAME, IP, over_udp6(4789, VXLAN)),
    "vxlan-gpe ethernet": Wrapper(FRAME, IP, over_udp(4790, b"\x0c\0\0\3" + bytes(4))),
    "vxlan-gpe nsh": Wrapper(FRAME, IP, over_udp(4790, b"\x0c\0\0\4" + bytes(4) + nsh(3))),
    "geneve": Wrapper(FRAME, IP, over_udp(6081, struct.pack(">BBHI", 0, 0, 0x6558, 0))),
    "nvgre": Wrapper(FRAME, IP, lambda frame: typed_gre(frame, 0x6558, 0x2000)),
    "erspan i": Wrapper(FRAME, IP, lambda frame: typed_gre(frame, 0x88BE)),
    "erspan ii": Wrapper(FRAME, IP, lambda frame: typed_gre(ERSPAN_2 + frame, 0x88BE, 0x1000)),
    "erspan iii": Wrapper(FRAME, IP, lambda frame: typed_gre(ERSPAN_3 + frame, 0x22EB, 0x1000)),
    "erspan iii, more": Wrapper(
        FRAME,
        IP,
        lambda frame: typed_gre(ERSPAN_3[:-1] + b"\1" + bytes(8) + frame, 0x22EB, 0x1000),
    ),
    "etherip": Wrapper(FRAME, IP, lambda frame: outer4(b"\x30\0" + frame, 97)),
}


def wifi(ip: bytes, control: bytes = b"\x08\x02", more: bytes = b"") -> bytes:
    head = control + bytes(22) + more
    return head + b"\xaa\xaa\x03\0\0\0" + struct.pack(">H", ethertype(ip)) + ip


def attribute(kind: int, value: bytes, order: str = "<") -> bytes:
    return struct.pack(order + "HH", len(value) + 4, kind) + value + bytes(-len(value) % 4)


def nflog(ip: bytes, order: str = "<") -> bytes:
    family = 2 if ethertype(ip) == 0x0800 else 10
    prefix = attribute(10, b"prefix\0", order) + attribute(1, bytes(4), order)
    return bytes([family, 0, 0, 5]) + prefix + attribute(9, ip, order)


def ppp(ip: bytes) -> bytes:
    return (b"\0\x21" if ethertype(ip) == 0x0800 else b"\0\x57") + ip


RADIOTAP: Final = struct.pack("<BBHI", 0, 0, 8, 0)


class Link(NamedTuple):
    """A link type of a capture. takes: FRAME or IP."""

    number: int
    takes: str
    wrap: Callable[[bytes], bytes]


LINKS: Final[dict[str, Link]] = {
    "ethernet": Link(1, FRAME, bytes),
    "pktap": Link(258, FRAME, lambda frame: struct.pack("<III", 108, 1, 1) + bytes(96) + frame),
    "ppi": Link(192, FRAME, lambda frame: struct.pack("<BBHI", 0, 0, 8, 1) + frame),
    "ppi 802.11": Link(192, IP, lambda ip: struct.pack("<BBHI", 0, 0, 8, 105) + wifi(ip)),
    "sll": Link(113, IP, lambda ip: bytes(14) + struct.pack(">H", ethertype(ip)) + ip),
    "sll2": Link(276, IP, lambda ip: struct.pack(">H", ethertype(ip)) + bytes(18) + ip),
    "null": Link(0, IP, lambda ip: bytes([2 if ethertype(ip) == 0x0800 else 30, 0, 0, 0]) + ip),
    "raw": Link(101, IP, bytes),
    "ppp": Link(9, IP, lambda ip: b"\xff\x03" + ppp(ip)),
    "ppp compressed": Link(9, IP, lambda ip: ppp(ip)[1:]),
    "ppp hdlc": Link(50, IP, lambda ip: b"\xff\x03" + ppp(ip)),
    "ppp with direction": Link(204, IP, lambda ip: b"\1\xff\x03" + ppp(ip)),
    "pppd": Link(166, IP, lambda ip: b"\1\x03" + ppp(ip)),
    "cisco hdlc": Link(104, IP, lambda ip: b"\x0f\0" + struct.pack(">H", ethertype(ip)) + ip),
    "enc": Link(109, IP, lambda ip: bytes([2 if ethertype(ip) == 0x0800 else 24]) + bytes(11) + ip),
    "ipnet": Link(
        226,
        IP,
        lambda ip: (
            struct.pack(">BBHI", 1, 2 if ethertype(ip) == 0x0800 else 26, 0, len(ip))
            + bytes(16)
            + ip
        ),
    ),
    "firewire": Link(138, IP, lambda ip: bytes(16) + struct.pack(">H", ethertype(ip)) + ip),
    "nflog": Link(239, IP, nflog),
    "nflog big-endian": Link(239, IP, lambda ip: nflog(ip, ">")),
    "802.11": Link(105, IP, wifi),
    "802.11 qos": Link(105, IP, lambda ip: wifi(ip, b"\x88\x01", bytes(2))),
    "802.11 qos, order": Link(105, IP, lambda ip: wifi(ip, b"\x88\x81", bytes(6))),
    "802.11 four addresses": Link(105, IP, lambda ip: wifi(ip, b"\x08\x03", bytes(6))),
    "radiotap": Link(127, IP, lambda ip: RADIOTAP + wifi(ip)),
    "avs": Link(163, IP, lambda ip: struct.pack(">II", 0x80211001, 64) + bytes(56) + wifi(ip)),
}


def form(packet: bytes, wrappers: Iterable[str], takes: str = IP) -> tuple[bytes, str]:
    """Wrap a packet; return it with its form. Frames are made where one is needed."""
    gives = takes
    for name in wrappers:
        wrapper = WRAPPERS[name]
        packet = as_form(packet, gives, wrapper.takes)
        packet, gives = wrapper.wrap(packet), wrapper.gives
    return packet, gives


def as_form(packet: bytes, has: str, needs: str) -> bytes:
    """Put an IP packet into a frame, or a frame into an IP packet, where that is needed."""
    if has == needs:
        return packet
    return WRAPPERS["ethernet" if needs == FRAME else "vxlan"].wrap(packet)


def encapsulated(ip: bytes, wrappers: Sequence[str], link: str = "ethernet") -> bytes:
    """Wrap an IP packet, innermost wrapper first, and put it on a link."""
    packet, gives = form(ip, wrappers)
    return LINKS[link].wrap(as_form(packet, gives, LINKS[link].takes))


def random_wrappers(rng: random.Random, most: int = 4) -> list[str]:
    """Choose wrappers, innermost first."""
    return [rng.choice(list(WRAPPERS)) for _ in range(rng.randint(0, most))]


def fragmented(ip: bytes, rng: random.Random, identification: int) -> list[bytes]:
    """Cut an IPv4 packet without options into fragments."""
    body, cuts = ip[20:], []
    at = 0
    while at < len(body):
        cuts.append(at)
        at += 8 * rng.randint(1, max(1, len(body) // 16))
    found = []
    for start, end in zip(cuts, [*cuts[1:], len(body)], strict=True):
        more = 0x2000 if end < len(body) else 0
        head = struct.pack(">HHH", 20 + end - start, identification, more | start // 8)
        found.append(ip[:2] + head + ip[8:20] + body[start:end])
    return found


def ip_packets(packets: Iterable[Packet]) -> list[Packet]:
    """Take the IP packets out of frames of Ethernet, without padding."""
    found = []
    for packet in packets:
        kind, data = packet.data[12:14], packet.data[14:]
        if kind == b"\x08\0" and len(data) >= 20:
            found.append(packet._replace(data=data[: int.from_bytes(data[2:4], "big")]))
        elif kind == b"\x86\xdd" and len(data) >= 40:
            found.append(packet._replace(data=data[: 40 + int.from_bytes(data[4:6], "big")]))
    return found

"""All encapsulations, alone and mixed in one block; truncated and malformed headers, fragments."""

from __future__ import annotations

import random
import struct
from ipaddress import ip_address
from itertools import pairwise

import pytest

from kafkawire.capture.files.blocks import MAX_PACKETS
from kafkawire.capture.packets.fragments import Defragmenter, Fragment
from kafkawire.capture.packets.kinds import Kind
from kafkawire.capture.packets.parser import PacketParser
from kafkawire.errors import UnsupportedLinkType
from tests.capture.wire import (
    ACK,
    PSH,
    Packet,
    ethernet,
    ipv4,
    ipv6,
    payloads,
    pcap,
    read,
    segments,
    tcp,
    udp,
)

PAYLOAD = b"kafka-payload"
SEGMENT = tcp(50000, 9092, 1000, PAYLOAD, ack=77, flags=PSH | ACK)
FOUR = ipv4(SEGMENT)
SIX = ipv6(SEGMENT)
PADDED = ethernet(ipv4(tcp(1, 2, 3, b"x"))) + bytes(5)


def vlan(payload: bytes, ethertype: int = 0x0800) -> bytes:
    return struct.pack(">HH", 100, ethertype) + payload


def pppoe(payload: bytes, protocol: int) -> bytes:
    return struct.pack(">BBHHH", 0x11, 0, 1, len(payload) + 2, protocol) + payload


def gre(payload: bytes, ethertype: int, flags: int = 0) -> bytes:
    optional = bytes(4 * (flags & 0xF000).bit_count())
    return struct.pack(">HH", flags, ethertype) + optional + payload


def vxlan(payload: bytes) -> bytes:
    return udp(4789, b"\x08" + bytes(7) + payload)


def geneve(payload: bytes, ethertype: int, options: bytes = b"") -> bytes:
    head = struct.pack(">BBHI", len(options) // 4, 0, ethertype, 0)
    return udp(6081, head + options + payload)


def extension(following: int, size: int = 8) -> bytes:
    return bytes([following, size // 8 - 1]) + bytes(size - 2)


def outer4(payload: bytes, protocol: int) -> bytes:
    return ipv4(payload, source="192.168.0.1", destination="192.168.0.2", protocol=protocol)


def outer6(payload: bytes, following: int) -> bytes:
    return ipv6(payload, source="fe80::1", destination="fe80::2", following=following)


IN_ETHERNET = {
    "ipv4": ethernet(FOUR),
    "ipv4 options": ethernet(ipv4(SEGMENT, options=b"\x01" * 12)),
    "ipv4 padded": ethernet(FOUR) + bytes(20),
    "ipv4 offloaded": ethernet(ipv4(SEGMENT, length=0)),
    "ipv6": ethernet(SIX, 0x86DD),
    "ipv6 extensions": ethernet(
        ipv6(extension(60) + extension(43, 24) + extension(6) + SEGMENT, following=0), 0x86DD
    ),
    "ipv6 authentication": ethernet(
        ipv6(bytes([6, 4]) + bytes(22) + SEGMENT, following=51), 0x86DD
    ),
    "ipv6 atomic fragment": ethernet(ipv6(b"\x06" + bytes(7) + SEGMENT, following=44), 0x86DD),
    "vlan": ethernet(vlan(FOUR), 0x8100),
    "qinq": ethernet(vlan(vlan(SIX, 0x86DD), 0x8100), 0x88A8),
    "old qinq": ethernet(vlan(vlan(vlan(FOUR), 0x8100), 0x8100), 0x9100),
    "pppoe": ethernet(pppoe(FOUR, 0x21), 0x8864),
    "pppoe ipv6 in vlan": ethernet(vlan(pppoe(SIX, 0x57), 0x8864), 0x8100),
    "vxlan": ethernet(outer4(vxlan(ethernet(FOUR)), 17)),
    "vxlan over ipv6": ethernet(outer6(vxlan(ethernet(FOUR)), 17), 0x86DD),
    "geneve ethernet": ethernet(outer4(geneve(ethernet(FOUR), 0x6558), 17)),
    "geneve ip, options": ethernet(outer4(geneve(SIX, 0x86DD, bytes(8)), 17)),
    "gre": ethernet(outer4(gre(FOUR, 0x0800), 47)),
    "gre checksum key sequence": ethernet(outer4(gre(FOUR, 0x0800, 0xB000), 47)),
    "gre ethernet vlan": ethernet(outer4(gre(ethernet(vlan(FOUR), 0x8100), 0x6558), 47)),
    "two tunnels": ethernet(outer4(outer4(FOUR, 4), 4)),
    "vxlan in vxlan": ethernet(outer4(vxlan(ethernet(outer4(vxlan(ethernet(FOUR)), 17))), 17)),
    "ip in ip": ethernet(outer4(FOUR, 4)),
    "ipv6 in ip": ethernet(outer4(SIX, 41)),
    "ipv4 in ipv6": ethernet(outer6(FOUR, 4), 0x86DD),
}

OTHER_LINKS = {
    "null little": (0, b"\x02\0\0\0" + FOUR),
    "null big": (0, b"\0\0\0\x02" + FOUR),
    "null ipv6 macos": (0, b"\x1e\0\0\0" + SIX),
    "loop": (108, b"\0\0\0\x18" + SIX),
    "raw 101": (101, SIX),
    "raw 12": (12, FOUR),
    "ipv4": (228, FOUR),
    "ipv6": (229, SIX),
    "sll": (113, bytes(14) + b"\x08\x00" + FOUR),
    "sll vlan": (113, bytes(14) + b"\x81\x00" + vlan(SIX, 0x86DD)),
    "sll2": (276, b"\x86\xdd" + bytes(18) + SIX),
    "pppoe": (51, pppoe(FOUR, 0x21)),
}

LINKED = {name: (1, data) for name, data in IN_ETHERNET.items()} | OTHER_LINKS


@pytest.mark.parametrize("name", LINKED)
def test_every_encapsulation(name: str) -> None:
    link, data = LINKED[name]
    parser = PacketParser()
    found = segments([Packet(data)], parser, link)
    assert payloads(found) == [PAYLOAD]
    assert found.packet.tolist() == [1]
    assert found.original.tolist() == [len(PAYLOAD)]
    assert (found.seq.tolist(), found.ack.tolist()) == ([1000], [77])
    assert found.flags.tolist() == [PSH | ACK | 65535 << 16]
    assert found.ports.tolist() == [50000 << 16 | 9092]
    assert parser.skipped.total() == 0
    assert parser.problems == []
    if SIX in data or ("ipv6" in name and FOUR not in data):
        ends = ip_address("fd00::1"), ip_address("fd00::2")
    else:
        ends = ip_address("::ffff:10.0.0.1"), ip_address("::ffff:10.0.0.2")
    high, low = found.source_high.tolist()[0], found.source_low.tolist()[0]
    assert high << 64 | low == int(ends[0])
    high, low = found.destination_high.tolist()[0], found.destination_low.tolist()[0]
    assert high << 64 | low == int(ends[1])


def test_all_of_them_in_one_block_stay_in_packet_order() -> None:
    names = list(IN_ETHERNET) * 5
    random.Random(4).shuffle(names)
    found = segments([Packet(IN_ETHERNET[name]) for name in names])
    assert found.packet.tolist() == list(range(1, len(names) + 1))
    assert set(payloads(found)) == {PAYLOAD}


def test_padding_is_not_payload() -> None:
    assert payloads(segments([Packet(PADDED)])) == [b"x"]


OTHERS = {
    "arp": (ethernet(bytes(28), 0x0806), Kind.OTHER),
    "udp": (ethernet(ipv4(udp(53, b"query"), protocol=17)), Kind.OTHER),
    "802.3": (ethernet(bytes(50), 46), Kind.OTHER),
    "ethernet cut": (ethernet(FOUR)[:13], Kind.CUT),
    "ip cut": (ethernet(FOUR)[:30], Kind.CUT),
    "tcp cut": (ethernet(FOUR)[:53], Kind.CUT),
    "version 5": (ethernet(b"\x55" + FOUR[1:]), Kind.MALFORMED),
    "short header": (ethernet(b"\x44" + FOUR[1:]), Kind.MALFORMED),
    "total below header": (ethernet(ipv4(SEGMENT, length=19)), Kind.MALFORMED),
    "tcp header beyond ip": (ethernet(ipv4(SEGMENT, length=30)), Kind.MALFORMED),
    "tcp offset": (ethernet(ipv4(SEGMENT[:12] + b"\x40" + SEGMENT[13:])), Kind.MALFORMED),
    "endless extensions": (
        ethernet(ipv6(extension(60) * 60 + SEGMENT, following=60), 0x86DD),
        Kind.NESTED,
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_packets_are_counted(name: str) -> None:
    data, kind = OTHERS[name]
    parser = PacketParser()
    found = segments([Packet(ethernet(FOUR)), Packet(data), Packet(ethernet(FOUR))], parser)
    assert found.packet.tolist() == [1, 3]
    assert +parser.skipped == {kind: 1}


@pytest.mark.parametrize("captured", range(54, 54 + len(PAYLOAD) + 1))
def test_snaplen_cuts(captured: int) -> None:
    data = ethernet(FOUR)
    found = segments([Packet(data[:captured], original=len(data))])
    assert payloads(found) == [PAYLOAD[: captured - 54]]
    assert found.original.tolist() == [len(PAYLOAD)]


def test_truncated_tcp_options() -> None:
    data = ethernet(ipv4(tcp(1, 2, 3, PAYLOAD, options=b"\x01" * 12)))
    found = segments([Packet(data[:60], original=len(data))])
    assert payloads(found) == [b""]
    assert found.original.tolist() == [len(PAYLOAD)]


def test_unsupported_link_types_are_reported_once() -> None:
    parser = PacketParser()
    found = segments([Packet(bytes(60))] * 3, parser, link=147)
    assert len(found) == 0
    assert parser.skipped == {Kind.LINK_TYPE: 3}
    assert [type(problem) for problem in parser.problems] == [UnsupportedLinkType]
    assert "147" in str(parser.problems[0])


def test_large_files_are_read_in_blocks() -> None:
    packets = [Packet(ethernet(ipv4(tcp(1, 2, i, b"")))) for i in range(MAX_PACKETS + 10)]
    blocks, _ = read(pcap(packets), 1 << 24)
    assert [len(found) for found in blocks] == [MAX_PACKETS, 10]
    parser = PacketParser()
    seqs = [seq for found in blocks for seq in parser.parse(found).seq.tolist()]
    assert seqs == list(range(MAX_PACKETS + 10))


# -- fragments


def fragments(data: bytes, cuts: list[int], identification: int = 7) -> list[Packet]:
    edges = [0, *cuts, len(data)]
    pieces = []
    for start, end in pairwise(edges):
        more = 0x2000 if end < len(data) else 0
        pieces.append(
            Packet(
                ethernet(
                    ipv4(
                        data[start:end],
                        identification=identification,
                        fragment=more | start // 8,
                    )
                )
            )
        )
    return pieces


LONG = tcp(50000, 9092, 1000, bytes(range(256)) * 8)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 0, 2, 2, 1]])
def test_ipv4_fragments(order: list[int]) -> None:
    pieces = fragments(LONG, [8, 1480])
    parser = PacketParser()
    found = segments([pieces[i] for i in order], parser)
    assert payloads(found) == [LONG[20:]]
    assert found.packet.tolist() == [len(order)]
    assert parser.skipped[Kind.FRAGMENT4] == len(order) - 1


def test_ipv6_fragments() -> None:
    head, tail = b"\x06\0\0\x01\0\0\0\x09", b"\x06\0" + struct.pack(">H", 1024) + b"\0\0\0\x09"
    pieces = [
        Packet(ethernet(ipv6(head + LONG[:1024], following=44), 0x86DD)),
        Packet(ethernet(ipv6(tail + LONG[1024:], following=44), 0x86DD)),
    ]
    assert payloads(segments(pieces)) == [LONG[20:]]


def test_fragments_may_span_blocks() -> None:
    parser = PacketParser()
    first, second = fragments(LONG, [1480])
    assert len(segments([first], parser)) == 0
    assert payloads(segments([second], parser)) == [LONG[20:]]


def test_fragments_of_different_datagrams_do_not_mix() -> None:
    other = tcp(50000, 9092, 5000, b"z" * 2000)
    a, b = fragments(LONG, [1480], 1), fragments(other, [1480], 2)
    found = segments([a[0], b[1], b[0], a[1]])
    assert payloads(found) == [other[20:], LONG[20:]]


def test_a_fragment_truncated_by_the_snaplen_is_counted() -> None:
    first, second = fragments(LONG, [1480])
    cut = Packet(first.data[:100], original=len(first.data))
    parser = PacketParser()
    assert len(segments([cut, second], parser)) == 0
    assert parser.skipped == {Kind.CUT: 1, Kind.FRAGMENT4: 1}


def test_waiting_fragments_are_bounded() -> None:
    defragmenter = Defragmenter(max_waiting=10, max_bytes=1000)
    for i in range(100):
        assert defragmenter.add(Fragment((i,), 0, False, b"12345678")) is None
    assert defragmenter.dropped == 90
    for i in range(100):
        assert defragmenter.add(Fragment((1000,), i * 800, False, bytes(800))) is None
    assert defragmenter.dropped > 180
    assert defragmenter.add(Fragment((1,), 0xFFF8, True, bytes(100))) is None


def test_the_first_fragment_with_a_byte_wins() -> None:
    defragmenter = Defragmenter()
    assert defragmenter.add(Fragment((1,), 0, False, b"a" * 16)) is None
    assert defragmenter.add(Fragment((1,), 8, True, b"b" * 16)) == b"a" * 16 + b"b" * 8

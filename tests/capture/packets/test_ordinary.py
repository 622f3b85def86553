"""Ordinary packets are parsed as by `parser`: the same segments, or the block is left to it.

C and its Python twin do the same.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterable

import pytest

from kafkawire.capture.files.packet_headers import PcapBlock
from kafkawire.capture.files.pcap import PcapDecoder
from kafkawire.capture.multifile import PacketReader
from kafkawire.capture.packets import ordinary
from kafkawire.capture.packets.kinds import Kind, passed_over, udp_ports
from kafkawire.capture.packets.parser import PacketParser
from kafkawire.capture.packets.segment_rows import KEY_BYTES, PASSED_OVER, ordinary_rows
from tests.capture.wire import ACK, SYN, Packet, ethernet, ipv4, ipv6, pcap, tcp, udp
from tests.conftest import FIXTURES
from tests.twins import twin

from .test_encapsulations import SKIPPED
from .test_layers import FOUR, IN_ETHERNET, LINKED, SEGMENT, SIX, geneve, outer4, vxlan

TWIN = twin(ordinary)

ORDINARY = {
    "ipv4",
    "ipv4 options",
    "ipv4 padded",
    "ipv4 offloaded",
    "ipv6",
    "raw 101",
    "raw 12",
    "sll",
    "sll2",
}
"""Those of LINKED that need no other parser."""


def linked(name: str) -> tuple[int, bytes]:
    """Return one of ORDINARY with its link type; in Ethernet, if that is not ordinary."""
    link, data = LINKED[name]
    ip = 0x86DD if name == "ipv6" else 0x0800
    return (link, data) if link in TWIN.LINKS else (1, ethernet(data, ip))


OTHERS = {
    "arp": ethernet(bytes(28), 0x0806),
    "icmp": ethernet(ipv4(bytes(20), protocol=1)),
    "icmp 6": ethernet(ipv6(bytes(20), following=58), 0x86DD),
    "dns": ethernet(ipv4(udp(53, bytes(20)), protocol=17)),
    "spanning tree": ethernet(b"\x42\x42\x03" + bytes(35), 38),
    "lldp": ethernet(bytes(60), 0x88CC),
    "ospf": ethernet(ipv4(bytes(40), protocol=89)),
    "dns over ipv6": ethernet(ipv6(udp(53, bytes(20)), following=17), 0x86DD),
    "empty": b"",
}
"""Ethernet packets that carry no TCP."""

MAGICS = [(0xA1B2C3D4, "<"), (0xA1B2C3D4, ">"), (0xA1B23C4D, ">"), (0xA1B2CD34, "<")]


def blocks(
    packets: Iterable[Packet], link: int = 1, magic: int = 0xA1B2C3D4, order: str = "<"
) -> list[PcapBlock]:
    return list(PcapDecoder().feed(pcap(packets, link=link, magic=magic, order=order)))


def segments(block: PcapBlock) -> tuple[bytes, bytes] | None:
    """Return what C and the twin find in a block."""
    shape = block.shape
    arguments = (
        shape.size,
        shape.nanoseconds,
        shape.order == ">",
        block.link,
        block.first,
        PASSED_OVER,
    )
    found = ordinary.ordinary_segments(block.data, block.offsets, *arguments)
    assert found == TWIN.ordinary_segments(block.data, block.offsets, *arguments)
    return found


def same(block: PcapBlock) -> bool:
    """Whether a block is ordinary; its segments are those of the parser then, which has nothing
    to report.
    """
    found = segments(block)
    if found is not None:
        parser = PacketParser()
        expected = parser.parse(block).rows()
        assert found == (expected.keys, expected.numbers)
        assert parser.undecoded.counts == {}
        assert parser.skipped.total() == parser.skipped[Kind.OTHER]
    return found is not None


@pytest.mark.parametrize("name", LINKED)
def test_each_encapsulation(name: str) -> None:
    link, data = LINKED[name]
    if link not in TWIN.LINKS:
        (block,) = blocks([Packet(data)], link)
        assert segments(block) is None
    if link in TWIN.LINKS:
        (block,) = blocks([Packet(data), Packet(data, original=len(data) + 9)], link)
        assert same(block) == (name in ORDINARY)


@pytest.mark.parametrize("name", OTHERS)
def test_packets_without_tcp_are_passed_over(name: str) -> None:
    (block,) = blocks([Packet(ethernet(FOUR)), Packet(OTHERS[name]), Packet(ethernet(FOUR))])
    assert same(block)
    found = segments(block)
    assert found is not None
    assert len(found[0]) == 2 * KEY_BYTES


@pytest.mark.parametrize("port", [4789, 8472, 6081])
def test_tunnels_over_udp_are_not_ordinary(port: int) -> None:
    (block,) = blocks([Packet(ethernet(outer4(udp(port, bytes(40)), 17)))])
    assert not same(block)
    tunnels = vxlan(ethernet(FOUR)), geneve(ethernet(FOUR), 0x6558)
    assert not any(same(blocks([Packet(ethernet(outer4(one, 17)))])[0]) for one in tunnels)


@pytest.mark.parametrize("name", sorted(SKIPPED))
def test_packets_to_report_are_not_ordinary(name: str) -> None:
    (block,) = blocks([Packet(SKIPPED[name][0])])
    assert not same(block)


def test_tunnels_on_other_ports_are_not_ordinary() -> None:
    (block,) = blocks([Packet(ethernet(outer4(udp(14789, bytes(40)), 17)))])
    assert same(block)
    assert ordinary_rows(block) is not None
    assert ordinary_rows(block, passed_over(udp_ports(["vxlan:14789"]))) is None


@pytest.mark.parametrize("name", sorted(ORDINARY))
def test_truncated_at_each_byte(name: str) -> None:
    link, data = linked(name)
    ordinary = []
    for size in range(len(data)):
        (block,) = blocks([Packet(data[:size], original=len(data))], link)
        ordinary.append(same(block))
    whole = ordinary.index(True)  # the headers, from there on
    assert ordinary == [size >= whole for size in range(len(data))]


@pytest.mark.parametrize(("magic", "order"), MAGICS)
def test_each_format_of_packet_headers(magic: int, order: str) -> None:
    packets = [
        Packet(ethernet(FOUR), 1_700_000_000_123_456_789),
        Packet(ethernet(SIX, 0x86DD), 4_294_967_295 * 10**9),
    ]
    (block,) = blocks(packets, magic=magic, order=order)
    assert same(block.numbered(1 << 40))


def test_malformed_headers() -> None:
    draw = random.Random(3)
    ordinary = 0
    sources = [
        *(linked(name) for name in sorted(ORDINARY)),
        *((1, each) for each in OTHERS.values()),
    ]
    for _ in range(3000):
        link, data = draw.choice(sources)
        changed = bytearray(data)
        for _ in range(draw.randint(0, 3) if changed else 0):
            changed[draw.randrange(min(len(changed), 70))] = draw.randrange(256)
        rest = [Packet(linked(name)[1]) for name in ("ipv4", "ipv6")] if link == 1 else []
        found = blocks(
            [Packet(bytes(changed), original=len(data) + draw.choice([0, 5])), *rest], link
        )
        ordinary += all(map(same, found))
    assert 1500 < ordinary < 2999


OPTIONS = {
    b"\x02\x04\x05\xb4": 1460,
    b"\x01\x01\x03\x03\x07\x02\x04\x02\x18\x01\x01\x01": 536,
    b"\x03\x03\x07\x00\x02\x04\x05\xb4": 0,  # behind the end of the options
    b"\x02\x05\x05\xb4": 0,
    b"\x04\x00\x02\x04": 0,  # an option without a length
    b"\x03\xff\x02\x04": 0,
    b"\x01\x01\x02\x04": 0,  # cut off
    b"\x01\x01\x01\x02": 0,
    b"": 0,
}
"""Options of a SYN -> its maximum segment size."""


@pytest.mark.parametrize("options", OPTIONS, ids=bytes.hex)
def test_the_window_and_the_maximum_segment_size(options: bytes) -> None:
    packets = [
        ethernet(ipv4(tcp(1, 2, 3, b"data", flags=flags, options=options, window=777)))
        for flags in (SYN, ACK)
    ]
    for cut in (0, 4, 5, 6) if options else (0,):  # also with options that the snaplen cut off
        packet = packets[0]
        lengths = [len(packet) - cut, len(packet)]
        (block,) = blocks([Packet(packet[: lengths[0]], original=lengths[1]), Packet(packets[1])])
        assert same(block)
        found = segments(block)
        assert found is not None
        assert int.from_bytes(found[1][56:64], "little") in (
            SYN | OPTIONS[options] << 16,
            SYN if cut > 4 else -1,
        )
        assert int.from_bytes(found[1][120:128], "little") == ACK | 777 << 16


def test_lengths_that_contradict_each_other() -> None:
    packets = [
        ethernet(ipv4(SEGMENT, length=length))
        for length in (0, 1, 19, 20, 39, 40, 41, 53, 54, 65535)
    ]
    packets += [ethernet(ipv4(tcp(1, 2, 3, bytes(size)))) + bytes(6) for size in range(8)]
    ordinary = [same(one) for packet in packets for one in blocks([Packet(packet)])]
    assert ordinary == [True] + [False] * 4 + [True] * (len(packets) - 5)


def test_a_block_with_another_packet_is_left_to_the_parser() -> None:
    packets = [Packet(ethernet(FOUR)), Packet(IN_ETHERNET["qinq"]), Packet(ethernet(FOUR))]
    reader = PacketReader()
    (block,) = blocks(packets)
    assert segments(block) is None
    assert len(reader.read(block)) == 3
    (plain,) = blocks(packets[:1])
    assert len(reader.read(plain)) == 1
    assert reader.problems == []


def test_an_unsupported_link_type_is_a_problem() -> None:
    reader = PacketReader()
    for block in blocks([Packet(ethernet(FOUR))], link=147):
        assert len(reader.read(block)) == 0
    assert len(reader.problems) == 1


def test_packets_outside_of_the_data_are_refused() -> None:
    (block,) = blocks([Packet(ethernet(FOUR))])
    for data, offset in [(block.data[:-1], 0), (block.data, 1), (block.data, -8), (b"", 0)]:
        offsets = (24 + offset if data else 0).to_bytes(8, "little", signed=True)
        for module in (ordinary, TWIN):
            with pytest.raises(IndexError):
                module.ordinary_segments(data, offsets, 16, 1000, False, 1, 1, PASSED_OVER)


def test_ordinary_captures_need_no_numpy() -> None:
    capture = str(FIXTURES / "captures" / "kcat-kf.pcap")
    script = (
        "import sys; from kafkawire.capture.multifile import Traffic\n"
        f"assert sum(map(len, Traffic([{capture!r}]).batches())) > 10\n"
        "assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)

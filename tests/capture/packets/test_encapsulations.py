"""Each encapsulation and link type, alone, nested, in fragments, cut; and what tshark says."""

from __future__ import annotations

import random
import shutil
import subprocess
from itertools import product
from pathlib import Path

import pytest

from kafkawire.capture.packets.headers import HEADERS
from kafkawire.capture.packets.kinds import MAX_LAYERS, Kind
from kafkawire.capture.packets.parser import PacketParser
from tests.capture.encapsulations import (
    LINKS,
    WRAPPERS,
    encapsulated,
    form,
    fragmented,
    outer4,
    random_wrappers,
)
from tests.capture.wire import (
    ACK,
    PSH,
    Packet,
    ethernet,
    ipv4,
    ipv6,
    payloads,
    pcap,
    segments,
    tcp,
    udp,
)
from tests.conftest import missing

PAYLOAD = b"kafka-payload"
SEGMENT = tcp(50000, 9092, 1000, PAYLOAD, ack=77, flags=PSH | ACK)
PACKETS = {"ipv4": ipv4(SEGMENT), "ipv6": ipv6(SEGMENT)}


def undecoded(parser: PacketParser) -> list[str]:
    parser.finish()
    return [problem.text for problem in parser.undecoded.problems()]


@pytest.mark.parametrize(("name", "ip"), [*product(WRAPPERS, PACKETS)])
def test_each_encapsulation(name: str, ip: str) -> None:
    parser = PacketParser()
    found = segments([Packet(encapsulated(PACKETS[ip], [name]))], parser)
    assert payloads(found) == [PAYLOAD]
    assert undecoded(parser) == []


@pytest.mark.parametrize(("name", "ip"), [*product(LINKS, PACKETS)])
def test_each_link_type(name: str, ip: str) -> None:
    parser = PacketParser()
    packets = [Packet(encapsulated(PACKETS[ip], [], name)) for _ in range(2)]
    found = segments(packets, parser, LINKS[name].number)
    assert payloads(found) == [PAYLOAD] * 2
    assert (undecoded(parser), parser.problems) == ([], [])


@pytest.mark.parametrize("outer", WRAPPERS)
def test_each_encapsulation_in_each_other(outer: str) -> None:
    names = list(WRAPPERS)
    parser = PacketParser()
    packets = [Packet(encapsulated(PACKETS["ipv4"], [inner, outer])) for inner in names]
    found = segments(packets, parser)
    assert payloads(found) == [PAYLOAD] * len(names)
    assert found.packet.tolist() == list(range(1, len(names) + 1))
    assert undecoded(parser) == []


@pytest.mark.parametrize("seed", range(8))
def test_random_nesting(seed: int) -> None:
    rng = random.Random(seed)
    link = rng.choice(list(LINKS))
    chosen = [random_wrappers(rng) for _ in range(50)]
    packets = [Packet(encapsulated(rng.choice([*PACKETS.values()]), one, link)) for one in chosen]
    parser = PacketParser()
    found = segments(packets, parser, LINKS[link].number)
    assert payloads(found) == [PAYLOAD] * 50
    assert undecoded(parser) == []


@pytest.mark.parametrize("name", WRAPPERS)
def test_fragments_in_tunnels_and_tunnels_in_fragments(name: str) -> None:
    rng = random.Random(name)
    inner = fragmented(PACKETS["ipv4"], rng, 7)
    parser = PacketParser()
    found = segments([Packet(encapsulated(one, [name])) for one in inner], parser)
    assert payloads(found) == [PAYLOAD]
    packet, gives = form(PACKETS["ipv4"], [name])
    if gives == "ip" and packet[0] >> 4 == 4:
        pieces = fragmented(packet, rng, 8)
        found = segments([Packet(ethernet(one)) for one in pieces], parser)
        assert payloads(found) == [PAYLOAD]
        pieces = fragmented(outer4(pieces[0], 4), rng, 9) + [outer4(p, 4) for p in pieces[1:]]
        found = segments([Packet(ethernet(one)) for one in pieces], parser)
        assert payloads(found) == [PAYLOAD]  # fragments in fragments
    assert undecoded(parser) == []


SKIPPED = {
    "unknown EtherType": (ethernet(bytes(60), 0x88E5), ["EtherType 0x88e5 (MACsec)"]),
    "esp": (ethernet(outer4(bytes(60), 50)), ["IP protocol 50 (ESP, encrypted)"]),
    "l2tp": (ethernet(outer4(udp(1701, bytes(60)), 17)), ["UDP port 1701 (L2TP)"]),
    "esp over udp": (
        ethernet(outer4(udp(4500, b"\1" * 60), 17)),
        ["UDP port 4500 (ESP, encrypted)"],
    ),
    "gre": (ethernet(outer4(b"\0\0\x88\x3e" + bytes(60), 47)), ["GRE protocol 0x883e (WCCP)"]),
    "vxlan without a network": (
        ethernet(outer4(udp(4789, bytes(60)), 17)),
        ["VXLAN flags or protocol 0"],
    ),
    "cut": (encapsulated(PACKETS["ipv4"], ["vxlan"])[:70], ["incomplete IPv4 header"]),
    "cut tcp": (encapsulated(PACKETS["ipv4"], ["vxlan"])[:100], ["incomplete TCP header"]),
    "malformed": (ethernet(b"\x44" + PACKETS["ipv4"][1:]), ["malformed IPv4 header"]),
    "fragment": (
        ethernet(fragmented(PACKETS["ipv4"], random.Random(1), 3)[0]),
        ["fragments of incomplete datagrams, IP protocol 6"],
    ),
    "nested": (
        encapsulated(PACKETS["ipv4"], ["ip in ip"] * MAX_LAYERS),
        [f"more than {MAX_LAYERS} headers"],
    ),
}


@pytest.mark.parametrize("name", SKIPPED)
def test_what_is_skipped_is_counted(name: str) -> None:
    data, reasons = SKIPPED[name]
    parser = PacketParser()
    good = Packet(encapsulated(PACKETS["ipv4"], []))
    original = len(data) if name != "fragment" else None
    found = segments([good, Packet(data, original=original), good], parser)
    assert found.packet.tolist() == [1, 3]
    texts = undecoded(parser)
    assert [text.partition(": ")[2] for text in texts] == reasons
    assert texts[0].startswith("1 packet (")


def test_other_traffic_is_no_problem() -> None:
    parser = PacketParser()
    others = [
        ethernet(bytes(28), 0x0806),
        ethernet(bytes(60), 0x88CC),
        ethernet(b"\x42\x42\x03" + bytes(35), 38),
        ethernet(ipv4(bytes(20), protocol=1)),
        ethernet(ipv4(udp(53, b"query"), protocol=17)),
        ethernet(ipv6(bytes(20), following=58), 0x86DD),
        ethernet(outer4(udp(4500, b"\xff"), 17)),
        encapsulated(ipv4(bytes(20), protocol=1), ["vxlan"]),
        b"",
    ]
    assert len(segments(list(map(Packet, others)), parser)) == 0
    assert undecoded(parser) == []
    assert parser.skipped[Kind.OTHER] == len(others) - 1


def test_tunnels_on_other_ports() -> None:
    packet = encapsulated(PACKETS["ipv4"], ["vxlan"]).replace(b"\x12\xb5", b"\x39\xc5", 1)
    assert payloads(segments([Packet(packet)], PacketParser(["vxlan:14789"]))) == [PAYLOAD]
    parser = PacketParser()
    assert len(segments([Packet(packet)], parser)) == 0
    with pytest.raises(ValueError, match="invalid tunnel 'vxlan'"):
        PacketParser(["vxlan"])


def test_work_is_bounded_however_packets_nest(monkeypatch: pytest.MonkeyPatch) -> None:
    from kafkawire.capture.packets import descent

    calls = 0
    decode = descent._decode

    def counted(*given):  # type: ignore[no-untyped-def]
        nonlocal calls
        calls += 1
        return decode(*given)

    monkeypatch.setattr(descent, "_decode", counted)
    rng = random.Random(1)
    packets = [Packet(encapsulated(PACKETS["ipv4"], random_wrappers(rng, 9))) for _ in range(2000)]
    segments(packets)
    assert calls <= MAX_LAYERS * len(HEADERS)


@pytest.mark.parametrize("name", [*WRAPPERS, *(f"link {name}" for name in LINKS)])
def test_every_byte_cut_and_flipped(name: str) -> None:
    link = name.removeprefix("link ") if name.startswith("link ") else "ethernet"
    wrappers = [] if name.startswith("link ") else [name]
    data = encapsulated(PACKETS["ipv4"], wrappers, link)
    parser = PacketParser()
    cut = [Packet(data[:size], original=len(data)) for size in range(len(data))]
    found = segments(cut, parser, LINKS[link].number)
    parser.finish()
    skipped = sum(count.packets for count in parser.undecoded.counts.values())
    others = parser.skipped[Kind.OTHER]
    assert len(found) + skipped + others == len(data)
    assert all(PAYLOAD.startswith(one) for one in payloads(found))
    rng = random.Random(name)
    for _ in range(300):
        flipped = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            flipped[rng.randrange(len(data))] = rng.randrange(256)
        segments([Packet(bytes(flipped))], parser, LINKS[link].number)


TSHARK_DIFFERS = {"pseudowire", "vxlan 8472", "pppd", "nflog big-endian"}
"""tshark 4.0 takes these for something else, or needs an option."""


@pytest.mark.parametrize("ip", PACKETS)
def test_tshark_reads_the_same(ip: str, tmp_path: Path) -> None:
    wanted = [name for name in WRAPPERS if name not in TSHARK_DIFFERS]
    packets = [Packet(encapsulated(PACKETS[ip], [name])) for name in wanted]
    seen = tshark(pcap(packets), tmp_path)
    assert dict(zip(wanted, seen, strict=True)) == dict.fromkeys(wanted, "50000")


@pytest.mark.parametrize("name", sorted(LINKS.keys() - TSHARK_DIFFERS))
def test_tshark_reads_the_same_links(name: str, tmp_path: Path) -> None:
    packets = [Packet(encapsulated(one, [], name)) for one in PACKETS.values()]
    assert tshark(pcap(packets, link=LINKS[name].number), tmp_path) == ["50000"] * 2


def tshark(capture: bytes, folder: Path) -> list[str]:
    """Return the source port of each packet, as tshark reads it."""
    path = folder / "a.pcap"
    path.write_bytes(capture)
    program = shutil.which("tshark") or missing("tshark")
    fields = ["-T", "fields", "-e", "tcp.srcport"]
    run = subprocess.run([program, "-r", str(path), *fields], capture_output=True, check=True)
    return run.stdout.decode().splitlines()

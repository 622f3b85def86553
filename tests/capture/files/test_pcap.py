"""Classic pcap: every variant, any chunking, any cut, damage in the middle."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire.capture.files.pcap import VARIANTS, PcapDecoder, read_header
from kafkawire.capture.files.resynchronisation import find_packet
from kafkawire.errors import BadMagic, CorruptCapture, TruncatedCapture
from tests.capture.wire import START_NS, Packet, packets_of, pcap, read

PACKETS = [
    Packet(bytes([size & 0xFF]) * size, START_NS + size * 1000, size + 5)
    for size in (60, 1500, 0, 65535, 14, 333)
]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("magic", VARIANTS, ids=hex)
def test_every_variant(order: str, magic: int) -> None:
    blocks, capture = read(pcap(PACKETS, order=order, magic=magic, link=113))
    assert packets_of(blocks) == [packet.data for packet in PACKETS]
    assert [t for b in blocks for t in b.ts.tolist()] == [p.time_ns for p in PACKETS]
    assert [n for b in blocks for n in b.original.tolist()] == [p.length for p in PACKETS]
    assert {n for b in blocks for n in b.link.tolist()} == {113}
    assert capture.problems == []


@pytest.mark.parametrize("step", [1, 7, 24, 61, 4096])
def test_chunks_do_not_matter(step: int) -> None:
    blocks, _ = read(pcap(PACKETS), step)
    assert packets_of(blocks) == [packet.data for packet in PACKETS]
    numbers = [found.first + i for found in blocks for i in range(len(found))]
    assert numbers == [1, 2, 3, 4, 5, 6]


@given(st.integers(0, len(pcap(PACKETS))))
def test_truncation_anywhere_keeps_complete_packets(at: int) -> None:
    data = pcap(PACKETS)[:at]
    if at < 4:
        with pytest.raises(TruncatedCapture):
            read(data)
        return
    blocks, capture = read(data)
    found = packets_of(blocks)
    assert found == [packet.data for packet in PACKETS][: len(found)]
    used = 24 + sum(16 + len(packet) for packet in found)
    whole = at == used and at >= 24
    assert [type(problem) for problem in capture.problems] == ([] if whole else [TruncatedCapture])
    assert len(found) == len(PACKETS) or used + 16 + len(PACKETS[len(found)].data) > at


def test_damage_is_skipped_and_reported() -> None:
    many = [Packet(bytes([i % 251]) * 200, START_NS + i * 10**6) for i in range(20000)]
    data = bytearray(pcap(many))
    at = 24 + 100 * 216
    data[at + 8 : at + 12] = b"\xff\xff\xff\xff"
    blocks, capture = read(bytes(data))
    found = packets_of(blocks)
    assert found == [packet.data for i, packet in enumerate(many) if i != 100]
    assert [type(problem) for problem in capture.problems] == [CorruptCapture]
    assert capture.problems[0].offset == at
    assert "216 bytes" in str(capture.problems[0])


@pytest.mark.parametrize("size", [1, 5000, 300_001])
def test_packets_are_found_behind_any_amount_of_damage(size: int) -> None:
    many = [Packet(bytes([i % 251]) * 200, START_NS + i * 10**6) for i in range(9000)]
    before, behind = pcap(many[:4000]), pcap(many[4000:])[24:]
    damage = b"\xff" * 16 + random.Random(size).randbytes(size)
    blocks, capture = read(before + damage + behind, 1 << 16)
    assert packets_of(blocks) == [packet.data for packet in many]
    assert [problem.args for problem in capture.problems] == [
        (f"{len(damage)} bytes are not packets", len(before))
    ]


def test_damage_takes_linear_time() -> None:
    many = [Packet(bytes([i % 251]) * 60, START_NS + i * 10**6) for i in range(50_000)]
    data = bytearray(pcap(many))
    for at in range(24, len(data), 76 * 10):
        data[at + 8 : at + 12] = b"\xff\xff\xff\xff"
    blocks, capture = read(bytes(data))
    assert sum(map(len, blocks)) == 45_000
    assert len(capture.problems) == 5000


@given(st.integers(24, 24 + 216 * 3000), st.sampled_from(["<", ">"]))
def test_the_start_of_a_split_is_found_and_proved_by_the_one_before(at: int, order: str) -> None:
    many = [Packet(bytes([i % 251]) * 200, START_NS + i * 10**6) for i in range(3000)]
    data = pcap(many, order=order)
    header = read_header(data)
    found = find_packet(data, at, header.shape, near=START_NS // 10**9, ended=True)
    if at > len(data) - 216:
        assert found is None
        return
    assert found == at + (24 - at) % 216
    decoder = PcapDecoder(header, position=found, first=(found - 24) // 216 + 1)
    blocks = [*decoder.feed(data[found:]), *decoder.finish()]
    assert sum(map(len, blocks)) == (len(data) - found) // 216
    assert blocks[0].position == found
    assert blocks[-1].first + len(blocks[-1]) - 1 == 3000


@pytest.mark.parametrize("step", [1 << 23, 5000])
def test_zeros_at_the_end_are_not_packets(step: int) -> None:
    blocks, capture = read(pcap(PACKETS) + bytes(100_000), step)
    assert len(packets_of(blocks)) == len(PACKETS)
    assert [str(problem) for problem in capture.problems] == [
        f"100000 bytes are not packets (at byte {len(pcap(PACKETS))})"
    ]


def test_a_large_packet_in_many_chunks_is_not_copied_for_each() -> None:
    size = 1 << 24
    decoder = PcapDecoder()
    data = pcap([Packet(bytes(size))], snaplen=size)
    found = [b for at in range(0, len(data), 100) for b in decoder.feed(data[at : at + 100])]
    assert packets_of([block.columns() for block in found]) == [bytes(size)]


@pytest.mark.parametrize("head", [b"", b"\xd4\xc3", b"\xd4\xc3\xb2"])
def test_a_file_too_short_for_a_magic_number(head: bytes) -> None:
    with pytest.raises(TruncatedCapture):
        read(head)


def test_another_kind_of_file() -> None:
    with pytest.raises(BadMagic, match="7f 45 4c 46"):
        read(b"\x7fELF" + bytes(100))

"""pcapng: sections, interfaces, options, each kind of packet block, cuts and damage."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire.capture.files.blocks import NO_TIME, PacketBlock
from kafkawire.errors import (
    CorruptCapture,
    TruncatedCapture,
    UnsupportedBlockType,
    UnsupportedLinkType,
)
from tests.capture.wire import (
    START_NS,
    Packet,
    block,
    enhanced,
    interface,
    old,
    option,
    packets_of,
    pcapng,
    read,
    section,
    simple,
)

PACKETS = [
    Packet(bytes([size & 0xFF]) * size, START_NS + size * 1000, size + 5)
    for size in (60, 1501, 0, 65535, 14, 333)
]


def times(blocks: list[PacketBlock]) -> list[int]:
    return [time_ns for found in blocks for time_ns in found.ts.tolist()]


def links(blocks: list[PacketBlock]) -> list[int]:
    return [link for found in blocks for link in found.link.tolist()]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("step", [1 << 23, 1, 50])
def test_enhanced_packets(order: str, step: int) -> None:
    blocks, capture = read(pcapng(PACKETS, order=order), step)
    assert packets_of(blocks) == [packet.data for packet in PACKETS]
    assert times(blocks) == [packet.time_ns for packet in PACKETS]
    assert [n for b in blocks for n in b.original.tolist()] == [p.length for p in PACKETS]
    assert [b.first + i for b in blocks for i in range(len(b))] == [1, 2, 3, 4, 5, 6]
    assert capture.problems == []


def test_all_packet_blocks_and_those_that_are_none() -> None:
    packet = Packet(b"abcde", START_NS)
    data = b"".join(
        [
            section(),
            block(0x80000001, b"custom"),
            interface(link=101),
            enhanced(packet, START_NS // 1000),
            block(5, bytes(12)),
            old(packet, START_NS // 1000),
            simple(packet),
            block(4, bytes(8)),
            enhanced(packet, START_NS // 1000),
        ]
    )
    blocks, capture = read(data)
    assert packets_of(blocks) == [packet.data] * 4
    assert times(blocks) == [START_NS, START_NS, NO_TIME, START_NS]
    assert links(blocks) == [101] * 4
    assert capture.problems == []


def test_sections_forget_interfaces_and_may_change_byte_order() -> None:
    packet = Packet(b"x" * 20, START_NS)
    data = b"".join(
        [
            section("<"),
            interface(link=1),
            interface(link=113),
            enhanced(packet, 1, 1),
            enhanced(packet, 2, 0),
            section(">"),
            interface(link=276, order=">"),
            enhanced(packet, 3, 0, ">"),
        ]
    )
    blocks, _ = read(data)
    assert links(blocks) == [113, 1, 276]
    assert times(blocks) == [1000, 2000, 3000]


@pytest.mark.parametrize(
    ("resolution", "units", "expected"),
    [
        (6, 1_700_000_000_123_456, 1_700_000_000_123_456_000),
        (9, 1_700_000_000_123_456_789, 1_700_000_000_123_456_789),
        (3, 1_700_000_000_123, 1_700_000_000_123_000_000),
        (0, 1_700_000_000, 1_700_000_000_000_000_000),
        (12, 1_700_000_123_456_789_012, 1_700_000_123_456_789),
        (0x80 | 10, (1_700_000_000 << 10) + 512, 1_700_000_000_500_000_000),
        (0x80 | 30, (1_700_000_000 << 30) + (1 << 28), 1_700_000_000_250_000_000),
        (0x80 | 32, (1_700_000_000 << 32) + (3 << 30), 1_700_000_000_750_000_000),
    ],
)
def test_time_resolution(resolution: int, units: int, expected: int) -> None:
    described = interface(options=option(9, bytes([resolution])) + option(0, b""))
    blocks, _ = read(section() + described + enhanced(Packet(b"x" * 20), units))
    assert times(blocks) == [expected]


def test_time_offset_and_options_around_it() -> None:
    options = option(2, b"eth0") + option(14, struct.pack("<q", 1_600_000_000)) + option(9, b"\x09")
    blocks, _ = read(section() + interface(options=options) + enhanced(Packet(b"x" * 20), 5))
    assert times(blocks) == [1_600_000_000_000_000_005]


def test_simple_packets_are_cut_at_the_snaplen_of_the_first_interface() -> None:
    data = section() + interface(snaplen=6) + simple(Packet(b"abcdef", original=400))
    blocks, _ = read(data)
    assert packets_of(blocks) == [b"abcdef"]
    assert blocks[0].original.tolist() == [400]


def test_an_interface_that_is_described_nowhere() -> None:
    packet = Packet(b"x" * 20)
    blocks, capture = read(
        section() + interface() + enhanced(packet, 1, 7) + enhanced(packet, 1, 7)
    )
    assert links(blocks) == [-1, -1]
    assert [type(problem) for problem in capture.problems] == [UnsupportedLinkType]


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_file_whose_blocks_have_no_packets_says_so(order: str) -> None:
    """As sysdig and Falco write it: system calls in blocks of their own."""
    others = block(0x204, b"read", order) * 3 + block(0x209, b"more", order)
    blocks, capture = read(section(order) + others)
    assert blocks == []
    (problem,) = capture.problems
    assert type(problem) is UnsupportedBlockType
    assert "4 blocks" in problem.reason
    assert "sysdig" in problem.reason
    assert problem.offset == len(section(order))


def test_a_file_without_packets_and_other_blocks_is_just_empty() -> None:
    _, capture = read(section() + interface() + block(5, bytes(12)) + block(4, bytes(4)))
    assert capture.problems == []


@given(st.integers(4, len(pcapng(PACKETS))))
def test_a_cut_anywhere_keeps_what_is_whole(at: int) -> None:
    blocks, capture = read(pcapng(PACKETS)[:at])
    found = packets_of(blocks)
    assert found == [packet.data for packet in PACKETS][: len(found)]
    used = len(pcapng(PACKETS[: len(found)]))
    assert len(found) == len(PACKETS) or at < len(pcapng(PACKETS[: len(found) + 1]))
    edges = {28, 48, used}
    assert [type(problem) for problem in capture.problems] == (
        [] if at in edges else [TruncatedCapture]
    )


@pytest.mark.parametrize("step", [1 << 23, 4096])
def test_damage_is_skipped_and_reported(step: int) -> None:
    many = [Packet(bytes([i % 251]) * 200, START_NS + i * 10**6) for i in range(9000)]
    data = bytearray(pcapng(many))
    at = len(pcapng(many[:100]))
    data[at + 4 : at + 8] = b"\xff\xff\xff\xff"
    blocks, capture = read(bytes(data), step)
    assert packets_of(blocks) == [p.data for i, p in enumerate(many) if i != 100]
    assert [type(problem) for problem in capture.problems] == [CorruptCapture]
    assert capture.problems[0].offset == at

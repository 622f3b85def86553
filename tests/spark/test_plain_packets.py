"""Connections found by headers are those of the parsed segments; C finds what Python does."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire.capture.files.blocks import Block, PacketBlock
from kafkawire.capture.files.packet_headers import PcapBlock
from kafkawire.capture.files.pcap import PcapDecoder
from kafkawire.capture.packets.parser import PacketParser
from kafkawire.capture.packets.segment_rows import SYN, SegmentRows
from kafkawire.spark import splitting
from kafkawire.spark.plan.opening import as_one
from kafkawire.spark.plan.split_index import index_split
from kafkawire.spark.plan.visited import header_places, visited_rows
from kafkawire.spark.shuffle import plain_packets
from kafkawire.spark.shuffle.packets import Hashes, hashes, is_among, take
from kafkawire.spark.splitting import inputs
from tests.capture.wire import Packet, ethernet, ipv4, ipv6, pcap, tcp, udp
from tests.conftest import FIXTURES
from tests.twins import twin

TWIN: Final = twin(plain_packets)
MAGICS: Final = (0xA1B2C3D4, 0xA1B23C4D, 0xA1B2CD34)


def block_of(data: bytes) -> PcapBlock:
    """Return the only block of a pcap."""
    (found,) = PcapDecoder().feed(data)
    return found


def summed(made: bytes) -> dict[int, tuple[int, int, int]]:
    """Add the sums of each connection."""
    found: dict[int, tuple[int, int, int]] = {}
    for id, size, first, syns in np.frombuffer(made, np.int64).reshape(-1, 4).tolist():
        before = found.get(id, (0, first, 0))
        found[id] = before[0] + size, min(before[1], first), before[2] + syns
    return found


def compare(places: tuple[bytes, bytes, int, bool], set: int) -> dict[int, tuple[int, int, int]]:
    """Hold the law for packets; returns the sums of connections."""
    made, others = plain_packets.sum_connections(*places, set)
    expected, left = TWIN.sum_connections(*places, set)
    found = summed(made)
    assert (found, others) == (summed(expected), left)
    ids = np.sort(np.array([*found], np.int64).view(np.uint64))
    for some in (ids, ids[::2], ids[:1], ids[:0]):
        given = (*places, set, some.tobytes())
        assert plain_packets.select_packets(*given) == TWIN.select_packets(*given)
    return found


def segment(number: int, rng: random.Random) -> Packet:
    """Return a packet of one of a few connections, mostly plain."""
    address = f"10.0.{number % 3}.{number % 5}"
    body = rng.randbytes(rng.choice([0, 5, 300]))
    flags = rng.choice([16, 2, 18, 24])
    sent = tcp(9092, 5000 + number % 4, number, body, flags=flags)
    whole = rng.choice(
        [
            *[ethernet(ipv4(sent, source=address))] * 9,
            ethernet(ipv4(sent, source=address, options=bytes(4))),
            ethernet(ipv4(sent, source=address, fragment=rng.choice([0x2000, 7]))),
            ethernet(ipv6(sent), 0x86DD),
            ethernet(ipv4(udp(53, body), protocol=17)),
            rng.randbytes(50),
        ]
    )
    return Packet(whole[: rng.choice([None, None, None, 47, 48, 60])], original=len(whole))


@given(st.integers(0, 1 << 32).map(random.Random), st.sampled_from(MAGICS), st.booleans())
def test_both_versions(rng: random.Random, magic: int, big: bool) -> None:
    packets = [segment(number, rng) for number in range(rng.choice([1, 10, 200]))]
    data = pcap(packets, magic=magic, order=">" if big else "<")
    block = block_of(data)
    assert len(block) == len(packets)
    found = compare(header_places(block), rng.choice([0, 3]))
    assert len(found) <= 2 * 3 * 5 * 4


def test_connections_with_similar_hashes() -> None:
    """They share places of the table, which is looked at a few times only."""
    low, ports, packets = None, iter(range(1, 1 << 16)), []
    for port in ports:
        packet = Packet(ethernet(ipv4(tcp(9092, port, 1))))
        ((id, _),) = summed(
            plain_packets.sum_connections(*header_places(block_of(pcap([packet]))), 0)[0]
        ).items()
        low = id & 255 if low is None else low
        packets += [packet, packet] * (id & 255 == low)
        if len(packets) == 128:
            break
    found = compare(header_places(block_of(pcap(packets))), 0)
    assert len(found) == 64
    assert {first for _, first, _ in found.values()} == {2 * row + 1 for row in range(0, 128, 2)}


@pytest.mark.parametrize("cut", [-1, 0, 47])
def test_nothing_outside_the_data_is_read(cut: int) -> None:
    data = pcap([Packet(ethernet(ipv4(tcp(1, 2, 3))))])
    offsets = np.array([24, len(data), 1 << 40, -5, cut + len(data)], np.int64).tobytes()
    with pytest.raises(IndexError):
        TWIN.sum_connections(data, offsets, 16, False, 0)
    if plain_packets.__file__ == TWIN.__file__:  # nothing is compiled
        return
    for size in (len(data), len(data) - 1, 24 + 16 + 48, 24 + 16 + 47, 24, 0):
        made, others = plain_packets.sum_connections(data[:size], offsets, 16, False, 0)
        assert len(made) // 32 + len(others) // 8 == 5
        chosen, rows, left = plain_packets.select_packets(
            data[:size], offsets, 16, False, 0, made[:8]
        )
        assert len(chosen) == len(rows)
        assert left == others


def blocks() -> Iterator[Block]:
    for path in sorted((FIXTURES / "captures").glob("*.pcap*")):
        (file,) = inputs([str(path)])
        yield from splitting.read(as_one(file)).blocks()


def expected_rows(block: PacketBlock, ids: Hashes) -> SegmentRows:
    found = PacketParser().parse(block)
    return take(found, is_among(ids, hashes(found, 3))).rows()


def test_visited_segments_are_those_of_the_parser() -> None:
    rng = random.Random(5)
    count = 0
    for block in blocks():
        found = np.unique(hashes(PacketParser().parse(block.columns()), 3))
        ids = np.sort(found[[rng.random() < 0.5 for _ in found]])
        rows = visited_rows(block, ids, 3)
        expected = expected_rows(block.columns(), ids)
        assert (rows.keys, rows.numbers) == (expected.keys, expected.numbers)
        count += len(rows)
    assert count > 1000


@pytest.mark.parametrize("others", [0, 1, 50])
def test_visited_connections_among_others(others: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packets that are plain are not decoded by columns; the others are, and are in their place."""
    plain = [Packet(ethernet(ipv4(tcp(9092, 7 + i % 2, i, b"x")))) for i in range(100)]
    more = [Packet(ethernet(ipv6(tcp(9092, 7, i, b"y")), 0x86DD)) for i in range(others)]
    block = block_of(pcap([*plain[:50], *more, *plain[50:]]))
    found = PacketParser().parse(block.columns())
    ids = np.unique(hashes(found, 3)[: 51 if others else 1])
    decoded: list[int] = []
    parse = PacketParser.parse

    def counted(self: PacketParser, packets: Block) -> Any:
        decoded.append(len(packets))
        return parse(self, packets)

    expected = expected_rows(block.columns(), ids)
    monkeypatch.setattr(PacketParser, "parse", counted)
    rows = visited_rows(block, ids, 3)
    assert (rows.keys, rows.numbers) == (expected.keys, expected.numbers)
    assert len(rows) == (100 + others if others else 50)
    assert sum(decoded) == {0: 0, 1: 1 + 101, 50: 150}[others]


@pytest.mark.parametrize("times", [1, 10])
def test_packets_of_a_pcap_are_indexed_undecoded(
    times: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither planning nor a visit makes columns of plain packets, however many there are."""
    path = tmp_path / "plain.pcap"
    sent = [Packet(ethernet(ipv4(tcp(9092, 7, i, b"x", flags=SYN)))) for i in range(100 * times)]
    path.write_bytes(pcap(sent))
    (file,) = inputs([str(path)])
    monkeypatch.setattr(PcapBlock, "columns", None)
    index = index_split((as_one(file), 3))
    assert (len(index.hashes), index.proof.packets) == (1, 100 * times)
    assert index.reopened
    (block,) = splitting.read(as_one(file)).blocks()
    assert len(visited_rows(block, index.hashes, 3)) == 100 * times


def test_a_range_of_a_block() -> None:
    data = pcap([Packet(bytes(size), original=size + 1) for size in (3, 5, 0, 70)])
    block = replace(block_of(data), first=7)
    for rows in (slice(None, 2), slice(1, 3), slice(3, None), slice(2, 2)):
        found, expected = block[rows], block.columns()[rows]
        assert found.first == expected.first
        assert found.columns().captured.tolist() == expected.captured.tolist()
        assert found.columns().start.tolist() == expected.start.tolist()

"""Damaged files of every format: no foreign exception, and no more output than input."""

from __future__ import annotations

import gzip
import random
import sys
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkawire.capture.files.source import Capture
from kafkawire.capture.packets.parser import PacketParser
from kafkawire.capture.tcp.reassembly import Reassembler
from kafkawire.errors import CaptureError
from tests.capture.dialogue import Sent, goodbye, hello, packets
from tests.capture.packets.test_layers import IN_ETHERNET, fragments
from tests.capture.wire import Packet, pcap, pcapng, tcp

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

STORY = packets(
    [
        *hello(),
        *(Sent(i % 2, i // 2 * 50, bytes([i]) * 50, acked=(i + 1) // 2 * 50) for i in range(20)),
        *goodbye(500, 500),
    ]
)
PACKETS = [
    *STORY,
    *(Packet(data, STORY[-1].time_ns) for data in IN_ETHERNET.values()),
    *fragments(tcp(1, 2, 3, bytes(3000)), [1000, 2000]),
]
FILES: dict[str, bytes] = {
    "pcap": pcap(PACKETS),
    "pcap big-endian nanoseconds": pcap(PACKETS, order=">", magic=0xA1B23C4D),
    "pcap patched": pcap(PACKETS, magic=0xA1B2CD34),
    "pcapng": pcapng(PACKETS),
    "pcapng big-endian": pcapng(PACKETS, order=">"),
    "gzip": gzip.compress(pcap(PACKETS)),
    "gzip pcapng": gzip.compress(pcapng(PACKETS)),
    "zstd": zstd.compress(pcap(PACKETS)),
    "zstd pcapng": zstd.compress(pcapng(PACKETS)),
}


def survive(data: bytes, step: int) -> None:
    """Read a file to its end; what it says stays within what it holds."""
    capture = Capture(data[at : at + step] for at in range(0, len(data), step))
    parser, reassembler = PacketParser(), Reassembler()
    count, payload, delivered, pieces = 0, 0, 0, 0
    try:
        for block in capture:
            assert block.first == count + 1
            count += len(block)
            assert (block.start + block.captured <= len(block.data)).all()
            assert (block.captured >= 0).all()
            found = parser.parse(block)
            assert (found.at + found.captured <= len(found.data))[found.captured > 0].all()
            assert (found.captured <= found.original).all()
            payload += int(found.captured.sum())
            events = reassembler.handle(found)
            pieces += len(events)
    except CaptureError:
        assert count == 0
        return
    events = reassembler.handle(None)
    connections = {event.connection for event in events}
    delivered = sum(side.delivered for each in connections for side in each.totals)
    assert delivered <= payload
    assert pieces <= 20 * count + 20
    assert all(isinstance(problem, CaptureError) for problem in capture.problems)
    assert len(capture.problems) < 1000


def flip(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice([1, 2, 10, 200])):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def overwrite(data: bytes, rng: random.Random) -> bytes:
    at, size = rng.randrange(len(data)), rng.choice([1, 4, 100])
    filling = rng.choice([b"\0", b"\xff", b"\x7f"]) * size
    return data[:at] + rng.choice([filling, rng.randbytes(size)]) + data[at + size :]


def cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def remove(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.choice([1, 3, 16, 500]) :]


def noise(data: bytes, rng: random.Random) -> bytes:
    keep = rng.choice([4, 24, 40, 200])
    return data[:keep] + rng.randbytes(rng.choice([0, 10, 5000]))


DAMAGES: list[Callable[[bytes, random.Random], bytes]] = [flip, overwrite, cut, remove, noise]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 1 << 32).map(random.Random),
    st.sampled_from(DAMAGES),
    st.sampled_from([1 << 23, 1000, 77]),
)
@pytest.mark.parametrize("name", FILES)
def test_damage(
    name: str,
    rng: random.Random,
    damage: Callable[[bytes, random.Random], bytes],
    step: int,
) -> None:
    survive(damage(FILES[name], rng), step)


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=300),
    st.sampled_from([bytes(data[:n]) for data in FILES.values() for n in (0, 4, 24)]),
)
def test_noise_behind_any_beginning(data: bytes, head: bytes) -> None:
    survive(head + data, 1 << 23)


@pytest.mark.parametrize("length", [0xFFFFFFFF, 0x7FFFFFFF, 0x10000000])
@pytest.mark.parametrize("name", ["pcap", "pcapng"])
def test_lengths_that_ask_for_everything(name: str, length: int) -> None:
    data = FILES[name]
    at = 24 + 8 if name == "pcap" else data.index(b"\x06\0\0\0", 40) + 4
    survive(data[:at] + length.to_bytes(4, "little") + data[at + 4 :], 1 << 23)


@pytest.mark.parametrize("name", FILES)
def test_the_files_themselves(name: str) -> None:
    capture = Capture([FILES[name]])
    parser, reassembler = PacketParser(), Reassembler()
    for block in capture:
        reassembler.handle(parser.parse(block))
    reassembler.handle(None)
    assert capture.problems == parser.problems == []
    assert reassembler.opened >= 1

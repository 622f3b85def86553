"""Splits give what one reader gives: every recording, container, size and damage."""

from __future__ import annotations

import gzip
import random
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafkawire.capture.files.pcap import VARIANTS
from kafkawire.spark.splitting import inputs, plan, read
from kafkawire.spark.splitting.stores import LocalReader
from tests.recordings import ANY_CAPTURE, own, third_party

from ...capture.files.test_damaged_files import DAMAGES
from ...capture.wire import (
    START_NS,
    Packet,
    block,
    enhanced,
    interface,
    old,
    option,
    pcap,
    pcapng,
    section,
    simple,
)
from ...conftest import missing
from .containers import bgzf, pieces_of, seekable_zstd, zstd_frames
from .law import obeys, obeys_in_one_pass, serially, small

LOTS = random.Random(11)
PACKETS = [
    Packet(LOTS.randbytes(size), START_NS + i * 10**6, size + 5)
    for i, size in enumerate([60, 1500, 61, 14, 0, 333, 4000, 70] * 12)
]


def captures() -> list[Path]:
    return [*own(ANY_CAPTURE), *third_party("public", ANY_CAPTURE)]


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


@pytest.mark.parametrize("path", captures(), ids=name_of)
def test_every_recording(path: Path) -> None:
    size = path.stat().st_size
    obeys(path, max(300, size // 60), walk=True)
    obeys(path, max(300, size // 100), walk=False)
    obeys_in_one_pass(path, size // 3 + 1)


def _sections() -> bytes:
    """Sections of both byte orders, interfaces described late and nowhere, every kind of block."""
    out = []
    for order, link in (("<", 1), (">", 113), ("<", 276)):
        out += [section(order), interface(link, order=order), block(5, bytes(16), order)]
        for i, packet in enumerate(PACKETS[:40]):
            if i == 20:
                out.append(interface(101, option(9, b"\x09", order), order))
            index = (0, 1, 7)[i % 3] if i > 20 else 0
            write = (enhanced, old)[i % 2]
            out.append(write(packet, packet.time_ns // 1000, index, order))
            if i % 9 == 0:
                out += [simple(packet, order), block(0x80000001, bytes(400), order)]
    return b"".join(out)


PLAIN: dict[str, bytes] = {
    **{
        f"pcap {magic:x} {order}": pcap(PACKETS, order=order, magic=magic)
        for magic in VARIANTS
        for order in "<>"
    },
    "pcapng": pcapng(PACKETS),
    "pcapng big-endian": pcapng(PACKETS, order=">"),
    "pcapng sections": _sections(),
    "one packet": pcap(PACKETS[:1]),
    "no packet": pcap([]),
    "half a header": pcap([])[:11],
    "two bytes": b"\xd4\xc3",
    "nothing": b"",
    "no capture": b"GET / HTTP/1.1\r\n" * 100,
}
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "gzip members": lambda data: b"".join(map(gzip.compress, pieces_of(data, [5000]))),
    "bgzf": lambda data: bgzf(pieces_of(data, [900, 1, 3000])),
    "zstd": lambda data: zstd_frames([data]),
    "zstd frames": lambda data: zstd_frames(pieces_of(data, [900, 1, 3000])),
    "seekable zstd": lambda data: seekable_zstd(pieces_of(data, [900, 1, 3000])),
    "zstd in gzip": lambda data: gzip.compress(zstd_frames(pieces_of(data, [900]))),
    "gzip in bgzf": lambda data: bgzf(pieces_of(gzip.compress(data), [900])),
    "bgzf and padding": lambda data: bgzf(pieces_of(data, [900])) + bytes(512),
    "bgzf and more": lambda data: bgzf(pieces_of(data, [900])) + b"more",
}
SPLIT = {"bgzf", "zstd frames", "seekable zstd", "bgzf and padding", "bgzf and more"}
"""What is cut at its members."""


@pytest.mark.parametrize("split_bytes", [1, 700, 7000])
@pytest.mark.parametrize("name", PLAIN)
def test_every_format(name: str, split_bytes: int, tmp_path: Path) -> None:
    data = PLAIN[name]
    path = tmp_path / "capture"
    path.write_bytes(data[:400] if split_bytes == 1 else data)
    obeys(path, split_bytes, walk=True)
    obeys(path, split_bytes, walk=False)


@pytest.mark.parametrize("kind", ["pcap a1b2c3d4 <", "pcapng sections", "no capture", "nothing"])
@pytest.mark.parametrize("pack", PACK)
def test_every_container(kind: str, pack: str, tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(PACK[pack](PLAIN[kind]))
    for split_bytes in (500, 4000):
        obeys(path, split_bytes)
    (file,) = inputs([path])
    splits = plan(file, 2000)
    assert len(splits) > 1 if pack in SPLIT and kind.startswith("pcap") else splits[0].whole


def test_frames_as_pzstd_writes_them(tmp_path: Path) -> None:
    if shutil.which("pzstd") is None:
        missing("pzstd")
    path = tmp_path / "capture.pcap"
    path.write_bytes(pcap([Packet(LOTS.randbytes(1000), START_NS + i) for i in range(10_000)]))
    subprocess.run(["pzstd", "-q", "-1", "-p", "2", str(path)], check=True, timeout=60)
    stitched = obeys(path.with_suffix(".pcap.zst"), 1 << 20)
    assert len(stitched.proven) > 1


def test_a_packet_longer_than_many_splits(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    long = [Packet(LOTS.randbytes(size), START_NS) for size in (60, 200_000, 70, 100_000, 80)]
    path.write_bytes(pcap(long))
    for walk in (True, False):
        stitched = obeys(path, 5000, walk)
        assert sum(proof.packets for proof in stitched.proven) == 5
        assert len(stitched.proven) <= 4


def test_packets_of_a_plain_file_are_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "capture"
    path.write_bytes(pcap([Packet(LOTS.randbytes(1000), START_NS + i) for i in range(9000)]))
    (file,) = inputs([str(path)])
    pieces: list[bytes] = []
    read_piece = LocalReader.read

    def noted(reader: LocalReader, offset: int, size: int) -> bytes:
        pieces.append(read_piece(reader, offset, size))
        return pieces[-1]

    (split,) = plan(file, 1 << 30)
    monkeypatch.setattr(LocalReader, "read", noted)
    for found in read(replace(split, high=path.stat().st_size)):
        assert found.data is pieces[-1]
    assert len(pieces) > 4


def test_a_capture_of_many_months(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    month = 31 * 86400 * 10**9
    path.write_bytes(
        pcap([Packet(bytes([i]) * 90, START_NS + i // 20 * month) for i in range(200)])
    )
    obeys(path, 1000, walk=False)


# -- damage

SIZES = st.sampled_from([1, 30, 300, 1000, 4000, 20_000])
SMALL = st.fixed_dictionaries(
    {
        "chunk": st.sampled_from([300, 1500, 4096, 1 << 23]),
        "search": st.sampled_from([100, 600, 2000, 1 << 20]),
        "step": st.sampled_from([100, 3000, 1 << 22]),
        "window": st.sampled_from([100, 1000, 1 << 20]),
        "beyond": st.sampled_from([10, 500, 1 << 16]),
        "piece": st.sampled_from([200, 1700, 1 << 21]),
    }
)
CONTAINERS = st.sampled_from([None, None, "bgzf", "zstd frames", "seekable zstd", "gzip"])


@settings(max_examples=25)
@given(
    rng=st.integers(0, 1 << 32).map(random.Random),
    damages=st.lists(st.sampled_from(DAMAGES), min_size=1, max_size=4),
    split_bytes=SIZES,
    sizes=SMALL,
    pack=CONTAINERS,
    inside=st.booleans(),
)
@pytest.mark.parametrize("name", ["pcap a1b2c3d4 <", "pcap a1b2cd34 >", "pcapng sections"])
def test_damage(
    name: str,
    rng: random.Random,
    damages: list[Callable[[bytes, random.Random], bytes]],
    split_bytes: int,
    sizes: dict[str, int],
    pack: str | None,
    inside: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Damage to the capture or to its container."""
    data = PLAIN[name]
    packed = pack is not None and not inside
    if packed:
        data = PACK[str(pack)](data)
    for damage in damages:
        data = damage(data, rng) if len(data) > 600 else data
    if pack is not None and not packed:
        data = PACK[pack](data)
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(data)
    with small(**sizes):
        obeys(path, max(split_bytes, len(data) // 30), walk=None if pack else inside)


@settings(max_examples=25)
@given(
    rng=st.integers(0, 1 << 32).map(random.Random),
    split_bytes=SIZES,
    sizes=SMALL,
    pack=st.sampled_from([None, "bgzf", "zstd frames"]),
    walk=st.booleans(),
)
@example(
    rng=random.Random(756),
    split_bytes=1,
    sizes={"chunk": 300, "search": 600},
    pack=None,
    walk=True,
)
@pytest.mark.parametrize("write", [pcap, pcapng])
def test_damage_among_packets_that_carry_captures(
    write: Callable[[list[Packet]], bytes],
    rng: random.Random,
    split_bytes: int,
    sizes: dict[str, int],
    pack: str | None,
    walk: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """What is found could depend on how far one has read: here it nearly always would."""
    data = _damaged(write, rng)
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(PACK[pack](data) if pack else data)
    with small(**sizes):
        obeys(path, max(split_bytes, len(data) // 25), walk=None if pack else walk)


@pytest.mark.parametrize("write", [pcap, pcapng])
def test_what_is_found_behind_damage_does_not_depend_on_chunks(
    write: Callable[[list[Packet]], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "damaged"
    found = 0
    for seed in range(30):
        path.write_bytes(_damaged(write, random.Random(seed)))
        with small(search=600):
            expected = serially(path)
            for chunk in (50, 300, 1500):
                with small(search=600, chunk=chunk):
                    assert serially(path) == expected
        found += len(expected.problems)
    assert found > 30


def _damaged(write: Callable[[list[Packet]], bytes], rng: random.Random) -> bytes:
    """Write a damaged capture whose packets carry captures, too."""
    packets: list[Packet] = []
    places = []
    for i in range(40):
        places.append(len(write(packets)))
        inner = write([Packet(bytes(rng.choice([20, 60])), START_NS)] * rng.choice([5, 20]))
        plain = bytes(rng.choice([20, 60, 600]))
        packets.append(Packet(rng.choice([inner[24:], plain]), START_NS + i * 10**9))
    data = bytearray(write(packets))
    for _ in range(rng.choice([1, 2, 4, 8])):
        at = rng.choice(places[1:]) + rng.choice([4, 8])
        data[at : at + 4] = rng.choice([b"\xff" * 4, bytes(4), b"\x40\x01\0\0"])
    return bytes(data)


def _chain(count: int, size: int, start_ns: int = START_NS) -> bytes:
    return pcap([Packet(bytes(size), start_ns)] * count)[24:]


def test_a_search_sees_as_far_as_the_serial_one(tmp_path: Path) -> None:
    """The packet behind the damage is found only by who sees the three that follow it; nearer lies
    a capture that it carries.
    """
    packets = [Packet(bytes(60), START_NS)] * 6
    packets += [Packet(_chain(10, 20) + bytes(300), START_NS)] * 12
    data = bytearray(pcap(packets))
    at = 24 + 5 * 76
    data[at + 8 : at + 12] = b"\xff" * 4
    path = tmp_path / "capture"
    path.write_bytes(data)
    for split_bytes in range(450, 2000, 50):
        with small(chunk=4096, search=100, beyond=10, window=1000):
            obeys(path, split_bytes, walk=True)
            obeys(path, split_bytes, walk=False)


def test_a_search_at_the_start_of_a_split_knows_the_time(tmp_path: Path) -> None:
    """The damaged packet carries a capture of another year, which the serial reader passes by."""
    packets = [Packet(bytes(60), START_NS)] * 10
    damaged = Packet(_chain(6, 30, START_NS - 400 * 86400 * 10**9), START_NS)
    data = bytearray(pcap([*packets, damaged, *packets]))
    at = 24 + 10 * 76
    data[at + 8 : at + 12] = b"\xff" * 4
    path = tmp_path / "capture"
    path.write_bytes(data)
    for split_bytes in range(380, 800, 20):
        obeys(path, split_bytes, walk=True)
        obeys(path, split_bytes, walk=False)

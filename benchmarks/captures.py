"""Makes large captures of real recordings: `python -m benchmarks.captures OUT MB FILE ...`.

Every copy of a recording has other connections, later in time; payload bytes are not changed.

    recording 1, copies 1 to 8, packet by packet in turn | recording 2, copies 9 to 16 | ...
"""

from __future__ import annotations

import argparse
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kafkawire.capture.files.source import read_capture

ETHERNET: Final = 1
RAW_IP: Final = 101
IPV4: Final = b"\x08\x00"
FRAME: Final = bytes(12) + IPV4
"""An Ethernet header for packets without one."""

IP: Final = 14
TCP: Final = 6
NUMBERS: Final = struct.Struct(">II")
"""The sequence and the acknowledgment number of a segment."""

STRIDE: Final = 0x01000193
"""Between the sequence numbers of two copies."""

TURNS: Final = 8
"""Copies whose packets alternate."""

HEADER: Final = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, ETHERNET)
SECOND: Final = 10**9


class Recorded(NamedTuple):
    """A packet: nanoseconds since the recording's first one, its length on the wire, its bytes."""

    after_ns: int
    original: int
    data: bytes


def recorded(path: Path) -> list[Recorded]:
    """Read the IPv4 packets of an Ethernet capture, or of one without a link layer."""
    recordings: list[Recorded] = []
    first: int | None = None
    for block in read_capture(path):
        columns = (block.ts, block.original, block.start, block.captured, block.link)
        for ts, original, start, size, link in zip(*(c.tolist() for c in columns), strict=True):
            data = block.data[start : start + size]
            if link == RAW_IP and data[:1] == b"\x45":
                link, data, original = ETHERNET, FRAME + data, len(FRAME) + original
            if link == ETHERNET and data[12:14] == IPV4:
                first = ts if first is None else first
                recordings.append(Recorded(ts - first, original, data))
    return recordings


def shifted(packet: Recorded, copy: int) -> bytes:
    """Return the bytes of a packet with the addresses of a copy: x and y in 10.x.y.z.

    Its sequence numbers are others, too: connections with the same ones are one that was captured
    twice.
    """
    data = packet.data
    network = bytes([10, copy >> 8 & 0xFF, copy & 0xFF])
    data = data[:26] + network + data[29:30] + network + data[33:]
    tcp = IP + (data[IP] & 15) * 4
    if data[IP + 9] != TCP or len(data) < tcp + 12:
        return data
    numbers = (number + copy * STRIDE & 0xFFFFFFFF for number in NUMBERS.unpack_from(data, tcp + 4))
    return data[: tcp + 4] + NUMBERS.pack(*numbers) + data[tcp + 12 :]


def grown(recordings: Sequence[list[Recorded]], size: int) -> Iterator[bytes]:
    """Make a pcap of at least `size` bytes, piece by piece."""
    yield HEADER
    written, copy, now = len(HEADER), 0, 1_700_000_000 * SECOND
    while written < size:
        for recording in recordings:
            for packet in recording:
                seconds, fraction = divmod(now + packet.after_ns, SECOND)
                head = struct.pack(
                    "<IIII", seconds, fraction // 1000, len(packet.data), packet.original
                )
                for turn in range(TURNS):
                    yield head + shifted(packet, copy + turn)
            now += recording[-1].after_ns + SECOND
            written += TURNS * sum(16 + len(packet.data) for packet in recording)
            copy += TURNS
            if written >= size:
                return


def main() -> None:
    """Write a capture."""
    parser = argparse.ArgumentParser(prog="benchmarks.captures", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("megabytes", type=int, help="of 10^6 bytes")
    parser.add_argument("files", type=Path, nargs="+", help="recordings to copy from")
    chosen = parser.parse_args()
    with chosen.out.open("wb", buffering=1 << 20) as out:
        for piece in grown([recorded(path) for path in chosen.files], chosen.megabytes * 10**6):
            out.write(piece)


if __name__ == "__main__":
    main()

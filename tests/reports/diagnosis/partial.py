"""Makes of a recorded capture what other ways to capture would have had of it."""

from __future__ import annotations

import gzip
import random
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

FILE_HEADER: Final = 24
PACKET_HEADER: Final = struct.Struct("<IIII")
ETHERNET: Final = 14
MACS: Final = 12
VLAN_TAG: Final = b"\x81\x00\x00\x64"
PORTS: Final = struct.Struct(">HH")
FLAGS: Final = 13
SYN: Final = 0x02
SYN_ACK: Final = 0x12
SNAPLEN: Final = 200


class Packet(NamedTuple):
    """A packet of a pcap file on Ethernet: its time, its length on the wire, its bytes."""

    seconds: int
    microseconds: int
    length: int
    data: bytes

    @property
    def tcp(self) -> bytes:
        """The segment of TCP over IPv4."""
        return self.data[ETHERNET + (self.data[ETHERNET] & 15) * 4 :]


class Recorded(NamedTuple):
    """A capture: the header of its file, and its packets."""

    header: bytes
    packets: list[Packet]

    @classmethod
    def read(cls, path: Path) -> Recorded:
        """Read a compressed pcap file."""
        data, position, packets = gzip.decompress(path.read_bytes()), FILE_HEADER, []
        while position < len(data):
            seconds, microseconds, size, length = PACKET_HEADER.unpack_from(data, position)
            position += PACKET_HEADER.size
            packets.append(Packet(seconds, microseconds, length, data[position : position + size]))
            position += size
        return cls(data[:FILE_HEADER], packets)

    def write(self, path: Path, packets: Iterable[Packet]) -> Path:
        """Write packets as a file."""
        parts = [self.header]
        for seconds, microseconds, length, data in packets:
            parts += PACKET_HEADER.pack(seconds, microseconds, len(data), length), data
        path.write_bytes(b"".join(parts))
        return path

    @property
    def broker_ports(self) -> set[int]:
        """The ports to which clients connect."""
        return {
            PORTS.unpack_from(one.tcp)[1] for one in self.packets if one.tcp[FLAGS] & SYN_ACK == SYN
        }


Parts = list[list[Packet]]


def _from_brokers(recorded: Recorded, packet: Packet) -> bool:
    return PORTS.unpack_from(packet.tcp)[0] in recorded.broker_ports


def begun_late(recorded: Recorded) -> Parts:
    """Begin in the middle of connections."""
    return [recorded.packets[len(recorded.packets) // 6 :]]


def requests_only(recorded: Recorded) -> Parts:
    """Filter with `dst port`."""
    return [[one for one in recorded.packets if not _from_brokers(recorded, one)]]


def responses_only(recorded: Recorded) -> Parts:
    """Filter with `src port`."""
    return [[one for one in recorded.packets if _from_brokers(recorded, one)]]


def cut_off(recorded: Recorded) -> Parts:
    """Capture with a small snaplen."""
    return [[one._replace(data=one.data[:SNAPLEN]) for one in recorded.packets]]


def tagged(recorded: Recorded) -> Parts:
    """Capture in a VLAN (IEEE 802.1Q)."""
    size = len(VLAN_TAG)
    return [
        [
            Packet(*one[:2], one.length + size, one.data[:MACS] + VLAN_TAG + one.data[MACS:])
            for one in recorded.packets
        ]
    ]


def rotated(recorded: Recorded) -> Parts:
    """Write two files, one after the other."""
    half = len(recorded.packets) // 2
    return [recorded.packets[:half], recorded.packets[half:]]


def lossy(recorded: Recorded) -> Parts:
    """Lose one packet in a hundred."""
    rng = random.Random(1)
    return [[one for one in recorded.packets if rng.random() > 0.01]]


def doubled(recorded: Recorded) -> Parts:
    """Capture each packet on two interfaces."""
    return [[one for one in recorded.packets for _ in range(2)]]


WHOLE: Final[tuple[Callable[[Recorded], Parts], ...]] = (begun_late, tagged, rotated, doubled)
"""Captures that show the trouble as the recorded one."""
PARTIAL: Final = (requests_only, responses_only, cut_off, lossy)
"""Captures that may lack it."""

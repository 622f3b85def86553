"""Packets and capture files made by hand, by a writer that shares nothing with the reader."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from typing import NamedTuple

from kafkawire.capture.files.blocks import PacketBlock
from kafkawire.capture.files.source import Capture
from kafkawire.capture.packets.parser import PacketParser
from kafkawire.capture.packets.segments import Segments

FIN, SYN, RST, PSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10
CLIENT, BROKER = "10.0.0.1", "10.0.0.2"
START_NS = 1_700_000_000_000_000_000
MILLISECOND = 1_000_000


class Packet(NamedTuple):
    """A packet of a capture; original: its length on the wire, if the snaplen cut it."""

    data: bytes
    time_ns: int = START_NS
    original: int | None = None

    @property
    def length(self) -> int:
        return len(self.data) if self.original is None else self.original


# -- layers


def tcp(
    sport: int,
    dport: int,
    seq: int,
    payload: bytes = b"",
    *,
    ack: int = 0,
    flags: int = ACK,
    options: bytes = b"",
    window: int = 65535,
) -> bytes:
    offset = (20 + len(options)) // 4 << 4
    head = struct.pack(">HHIIBBHHH", sport, dport, seq, ack, offset, flags, window, 0xBAD, 0)
    return head + options + payload


def udp(dport: int, payload: bytes) -> bytes:
    return struct.pack(">HHHH", 40000, dport, 8 + len(payload), 0) + payload


def ipv4(
    payload: bytes,
    *,
    source: str = CLIENT,
    destination: str = BROKER,
    protocol: int = 6,
    options: bytes = b"",
    identification: int = 0,
    fragment: int = 0,
    length: int | None = None,
) -> bytes:
    """fragment: the 16 bits of flags and offset. length: what the header says, if not the truth."""
    size = 20 + len(options) + len(payload)
    return (
        struct.pack(
            ">BBHHHBBH4s4s",
            0x40 | (20 + len(options)) // 4,
            0,
            size if length is None else length,
            identification,
            fragment,
            64,
            protocol,
            0xBAD,
            ip_address(source).packed,
            ip_address(destination).packed,
        )
        + options
        + payload
    )


def ipv6(
    payload: bytes, *, source: str = "fd00::1", destination: str = "fd00::2", following: int = 6
) -> bytes:
    head = struct.pack(">IHBB", 6 << 28, len(payload), following, 64)
    return head + ip_address(source).packed + ip_address(destination).packed + payload


def ethernet(payload: bytes, ethertype: int = 0x0800) -> bytes:
    return bytes(12) + struct.pack(">H", ethertype) + payload


# -- files


def pcap(
    packets: Iterable[Packet],
    *,
    link: int = 1,
    order: str = "<",
    magic: int = 0xA1B2C3D4,
    snaplen: int = 262144,
) -> bytes:
    unit = 1000 if magic in (0xA1B2C3D4, 0xA1B2CD34) else 1
    out = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snaplen, link)]
    out += [bytes(4)] * (magic in (0x1C0001AB, 0x1C0001AC))
    for packet in packets:
        seconds, fraction = divmod(packet.time_ns, 10**9)
        lengths = len(packet.data), packet.length
        out.append(struct.pack(order + "IIII", seconds, fraction // unit, *lengths))
        out += [bytes(8)] * (magic == 0xA1B2CD34)
        out.append(packet.data)
    return b"".join(out)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def option(code: int, value: bytes, order: str = "<") -> bytes:
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(link: int = 1, options: bytes = b"", order: str = "<", snaplen: int = 0) -> bytes:
    return block(1, struct.pack(order + "HHI", link, 0, snaplen) + options, order)


def enhanced(packet: Packet, units: int, index: int = 0, order: str = "<") -> bytes:
    lengths = len(packet.data), packet.length
    head = struct.pack(order + "IIIII", index, units >> 32, units & 0xFFFFFFFF, *lengths)
    return block(6, head + packet.data + bytes(-len(packet.data) % 4), order)


def old(packet: Packet, units: int, index: int = 0, order: str = "<") -> bytes:
    lengths = len(packet.data), packet.length
    head = struct.pack(order + "HHIIII", index, 0, units >> 32, units & 0xFFFFFFFF, *lengths)
    return block(2, head + packet.data, order)


def simple(packet: Packet, order: str = "<") -> bytes:
    return block(3, struct.pack(order + "I", packet.length) + packet.data, order)


def pcapng(packets: Iterable[Packet], *, order: str = "<") -> bytes:
    """A section with one Ethernet interface in microseconds."""
    blocks = [enhanced(packet, packet.time_ns // 1000, order=order) for packet in packets]
    return b"".join([section(order), interface(order=order), *blocks])


# -- reading


def read(data: bytes, step: int = 1 << 23) -> tuple[list[PacketBlock], Capture]:
    """Read a capture file that comes in chunks of `step` bytes."""
    capture = Capture(data[at : at + step] for at in range(0, len(data), step))
    return list(capture), capture


def packets_of(blocks: Sequence[PacketBlock]) -> list[bytes]:
    return [
        found.data[at : at + size]
        for found in blocks
        for at, size in zip(found.start.tolist(), found.captured.tolist(), strict=True)
    ]


def segments(
    packets: Iterable[Packet], parser: PacketParser | None = None, link: int = 1
) -> Segments:
    """Parse packets that fit in one block."""
    blocks, _ = read(pcap(packets, link=link, magic=0xA1B23C4D))
    assert len(blocks) == 1
    return (parser or PacketParser()).parse(blocks[0])


def payloads(found: Segments) -> list[bytes]:
    return [
        found.data[at : at + size]
        for at, size in zip(found.at.tolist(), found.captured.tolist(), strict=True)
    ]

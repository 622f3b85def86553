"""Prints packets as text, as tcpdump and tshark do."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from tests.capture.wire import Packet, packets_of, read
from tests.conftest import FIXTURES

KCAT = FIXTURES / "captures" / "kcat-kf.pcap"
LINE = 16
DATED = "%Y-%m-%d "
BROKER_PORT = 19092
ETHERNET = 14


def recorded(path: Path = KCAT) -> list[Packet]:
    blocks, _ = read(path.read_bytes())
    times = [time_ns for block in blocks for time_ns in block.ts.tolist()]
    return list(map(Packet, packets_of(blocks), times))


def text_of(data: bytes) -> str:
    return "".join(chr(byte) if 0x20 < byte < 0x7F else "." for byte in data)


def tcpdump(packet: Packet, skipped: int, date: str = "", shows_text: bool = True) -> str:
    """Print a packet without its first bytes, as `tcpdump -X` and `-x` do."""
    moment = datetime.fromtimestamp(packet.time_ns // 10**9, UTC)
    fraction = packet.time_ns % 10**9 // 1000
    lines = [f"{moment:{date}%H:%M:%S}.{fraction:06} IP 10.0.0.1.50000 > 10.0.0.2.9092: Flags [.]"]
    data = packet.data[skipped:]
    for at in range(0, len(data), LINE):
        row = data[at : at + LINE]
        groups = " ".join(row[i : i + 2].hex() for i in range(0, len(row), 2))
        text = f"  {text_of(row)}" if shows_text else ""
        lines.append(f"\t0x{at:04x}:  {groups:39}{text}".rstrip())
    return "\n".join(lines) + "\n"


def tshark(packet: Packet) -> str:
    """Print a packet as `tshark -x` does: every other one with more bytes than its own."""
    has_more = len(packet.data) % 2
    lines = [f"Frame ({len(packet.data)} bytes):"] * has_more
    for data in (packet.data, b"E" * 40)[: 1 + has_more]:
        for at in range(0, len(data), LINE):
            row = data[at : at + LINE]
            lines.append(f"{at:04x}  {row.hex(' '):47}   {text_of(row)}")
        lines += ["Reassembled TCP (40 bytes):"] * (has_more and data is packet.data)
    return "\n".join(lines) + "\n\n"


def tshark_line(packet: Packet) -> str:
    """Return the line of `tshark -P`: the number of the packet, and its time since the first."""
    since_ns = packet.time_ns - recorded()[0].time_ns
    return f"{since_ns % 1000:5} {since_ns / 1e9:10.6f}    10.0.0.1 → 10.0.0.2    TCP 74"


def tshark_details(packet: Packet) -> str:
    """Return what `tshark -V` prints about a packet, as long as it is."""
    moment = datetime.fromtimestamp(packet.time_ns // 10**9, UTC)
    seconds, fraction = divmod(packet.time_ns, 10**9)
    lines = [
        f"Frame 1: {len(packet.data)} bytes on wire (592 bits), {len(packet.data)} bytes captured",
        f"    Arrival Time: {moment:%b %d, %Y %H:%M:%S}.{fraction:09} UTC",
        f"    Epoch Time: {seconds}.{fraction:09} seconds",
        "    [Time since reference or first frame: 0.000000000 seconds]",
        "    0100 .... = Version: 4",
        "    0000 00.. = Differentiated Services Codepoint: Default (0)",
        *["    Window: 64 (scaled)"] * 200,
    ]
    return "\n".join(lines)


def printed(packets: list[Packet]) -> bytes:
    return "".join(tcpdump(packet, 0, DATED) for packet in packets).encode()


# -- streams


class Sent(NamedTuple):
    """What a packet of a side carried; at: its position among the bytes of the side."""

    side: int
    data: bytes
    at: int
    time_ns: int


def streams() -> dict[int, list[Sent]]:
    """Return the port of each client -> what was sent, in a recording without loss."""
    found: dict[int, list[Sent]] = {}
    for packet in recorded():
        tcp = ETHERNET + (packet.data[ETHERNET] & 15) * 4
        end = ETHERNET + struct.unpack_from(">H", packet.data, ETHERNET + 2)[0]
        source, destination, _, _, offset = struct.unpack_from(">HHIIB", packet.data, tcp)
        side = int(source == BROKER_PORT)
        payload = packet.data[tcp + (offset >> 4) * 4 : end]
        sent = found.setdefault(destination if side else source, [])
        at = sum(len(each.data) for each in sent if each.side == side)
        if payload:
            sent.append(Sent(side, payload, at, packet.time_ns))
    return found

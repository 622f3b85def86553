"""Records the traffic of a server as a pcap file with synthesized TCP packets.

Every byte received or sent is recorded once, in order; addresses and ports are those of the
sockets; names, and nodes without sockets, are at loopback. The bytes may contain passwords, so only
the owner may read the file. Sequence numbers start where a clock of 4 microseconds is (RFC 9293,
3.4.1), so that a connection that reuses a port is another one; nothing is lost or sent
again.

    pcap header │ (packet header │ IPv4 │ TCP │ payload)*         link type 101: raw IP
"""

from __future__ import annotations

import os
import stat
import struct
import time
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import BinaryIO, Final

from ...magic_numbers import PCAP_NANOSECONDS
from ...node.links import HOST, LinkCarried, LinkClosed, LinkEffect, LinkOpened

FILE_HEADER: Final = struct.Struct("<IHHiIII")
PACKET_HEADER: Final = struct.Struct("<IIII")
IPV4: Final = struct.Struct(">BBHHHBBH4s4s")
IPV6: Final = struct.Struct(">IHBB16s16s")
TCP: Final = struct.Struct(">HHIIBBHHH")
RAW_IP: Final = 101
SNAPLEN: Final = 1 << 18
CLOCK_NS: Final = 4_000
"""Nanoseconds per tick of the clock of initial sequence numbers."""
MSS: Final = 32_768
FIN, SYN, PSH, ACK = 0x01, 0x02, 0x08, 0x10
CLIENT, BROKER = 0, 1
EPHEMERAL_PORTS: Final = range(32_768, 61_000)
"""Ports of clients without sockets."""
Address = tuple[str, int]


@dataclass(slots=True)
class _Stream:
    """A connection: its endpoints, client first, and the next sequence number of each."""

    ends: tuple[Address, Address]
    next: list[int]


def private(path: str, flags: int) -> int:
    """Open a file that only its owner may read; an opener for `open`.

    An existing file gets that mode first.
    """
    descriptor = os.open(path, flags, 0o600)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.fchmod(descriptor, 0o600)
    return descriptor


class Recording:
    """Writes a capture file while a server runs."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = open(path, "wb", opener=private)  # noqa: SIM115  # closed by `close`
        self._file.write(FILE_HEADER.pack(PCAP_NANOSECONDS, 2, 4, 0, 0, SNAPLEN, RAW_IP))
        self._streams: dict[int, _Stream] = {}
        self._links: dict[int, int] = {}
        """Connection between two nodes in this process -> its stream."""
        self._count = 0

    def open(self, client: Address, broker: Address) -> int:
        """Record the start of a connection; return its number."""
        self._count += 1
        first = time.time_ns() // CLOCK_NS & 0xFFFFFFFF
        self._streams[self._count] = stream = _Stream((client, broker), [first, first])
        self._packet(stream, CLIENT, SYN, b"")
        self._packet(stream, BROKER, SYN | ACK, b"")
        self._packet(stream, CLIENT, ACK, b"")
        return self._count

    def received(self, number: int, data: bytes) -> None:
        """Record bytes from a client."""
        self._data(number, CLIENT, data)

    def sent(self, number: int, data: bytes) -> None:
        """Record bytes from the broker."""
        self._data(number, BROKER, data)

    def closed(self, number: int) -> None:
        """Record the end of a connection."""
        stream = self._streams.pop(number)
        self._packet(stream, CLIENT, FIN | ACK, b"")
        self._packet(stream, BROKER, FIN | ACK, b"")

    def record_link(self, effect: LinkEffect) -> None:
        """Record what happens on a connection between two nodes in this process."""
        match effect:
            case LinkOpened():
                port = EPHEMERAL_PORTS[effect.number % len(EPHEMERAL_PORTS)]
                self._links[effect.number] = self.open((HOST, port), effect.address)
            case LinkCarried():
                side = CLIENT if effect.to_server else BROKER
                self._data(self._links[effect.number], side, effect.data)
            case LinkClosed():
                self.closed(self._links.pop(effect.number))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _data(self, number: int, side: int, data: bytes) -> None:
        stream = self._streams[number]
        for at in range(0, len(data), MSS):
            self._packet(stream, side, PSH | ACK, data[at : at + MSS])
        self._file.flush()  # the file may be read while it grows

    def _packet(self, stream: _Stream, side: int, flags: int, payload: bytes) -> None:
        if self._file.closed:
            return
        source, target = stream.ends[side], stream.ends[1 - side]
        at, ack = stream.next[side], stream.next[1 - side] if flags & ACK else 0
        stream.next[side] = (at + len(payload) + (1 if flags & (SYN | FIN) else 0)) & 0xFFFFFFFF
        # checksums are left at 0, as captures of a machine's own traffic often have them
        segment = TCP.pack(source[1], target[1], at, ack, 5 << 4, flags, 0xFFFF, 0, 0) + payload
        packet = _ip(source[0], target[0], len(segment)) + segment
        seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
        self._file.write(PACKET_HEADER.pack(seconds, nanoseconds, len(packet), len(packet)))
        self._file.write(packet)


def _address(host: str) -> IPv4Address | IPv6Address:
    """Return an IP address; loopback for a name."""
    try:
        return ip_address(host)
    except ValueError:
        return ip_address(HOST)


def _ip(source: str, target: str, length: int) -> bytes:
    ends = _address(source), _address(target)
    if ends[0].version == 6 or ends[1].version == 6:
        return IPV6.pack(6 << 28, length, 6, 64, ends[0].packed, ends[1].packed)
    return IPV4.pack(0x45, 0, IPV4.size + length, 0, 0, 64, 6, 0, ends[0].packed, ends[1].packed)

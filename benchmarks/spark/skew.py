"""Makes captures in which one connection has half of the bytes or more, of real recordings.

The connection repeats the messages of a recorded one: sequence numbers continue after each
round, so that reassembly sees one connection.

    SYN, SYN | round 1: packets that carry data | round 2: the same, numbered on | ...
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ..captures import HEADER, STRIDE, Recorded, grown

IP_AT: Final = 14
TCP: Final = 6
SYN, FIN, RST = 2, 1, 4
NETWORK: Final = b"\xac\x10"
"""Of the addresses of connections that do not end; their number follows."""


class Sent(NamedTuple):
    """A packet of a connection. low: whether the lower end sent it; at: the start of TCP."""

    low: bool
    data: bytes
    at: int
    size: int
    flags: int


def sent(packet: Recorded) -> tuple[bytes, Sent] | None:
    """Read a packet's connection and its position; None if it is not TCP, or truncated."""
    data = packet.data
    if len(data) != packet.original or data[IP_AT + 9] != TCP:
        return None
    at = IP_AT + 4 * (data[IP_AT] & 15)
    end = IP_AT + int.from_bytes(data[IP_AT + 2 : IP_AT + 4], "big")
    size = end - at - 4 * (data[at + 12] >> 4)
    ends = data[26:30] + data[at : at + 2], data[30:34] + data[at + 2 : at + 4]
    return b"".join(sorted(ends)), Sent(ends[0] < ends[1], data, at, size, data[at + 13])


def busiest(recordings: Sequence[list[Recorded]]) -> list[Sent]:
    """Find the connection with the most bytes that was recorded from its beginning."""
    best: list[Sent] = []
    for recording in recordings:
        by_key: dict[bytes, list[Sent]] = defaultdict(list)
        for packet in recording:
            if (one := sent(packet)) is not None:
                by_key[one[0]].append(one[1])
        whole = [each for each in by_key.values() if each[0].flags & SYN]
        best = max([best, *whole], key=lambda each: sum(one.size for one in each))
    return best


def endless(connection: Sequence[Sent], number: int = 0) -> Iterator[bytes]:
    """Yield the connection's packets, round after round; number: its id."""
    opening = [one for one in connection if one.flags & SYN]
    sending = [one for one in connection if one.size > 0 and not one.flags & (SYN | FIN | RST)]
    grows = {low: sum(one.size for one in sending if one.low == low) for low in (True, False)}
    for one in opening:
        yield numbered_on(one, 0, 0, number)
    rounds = 0
    while True:
        for one in sending:
            yield numbered_on(one, rounds * grows[one.low], rounds * grows[not one.low], number)
        rounds += 1


def numbered_on(packet: Sent, seq_on: int, ack_on: int, number: int = 0) -> bytes:
    """Return a packet's bytes with later sequence numbers, between unique addresses."""
    data, at = bytearray(packet.data), packet.at
    data[26:29] = data[30:33] = NETWORK + bytes([number])
    seq, ack = struct.unpack_from(">II", data, at + 4)
    other = number * STRIDE
    if packet.flags & 16:
        ack += ack_on + other
    struct.pack_into(">II", data, at + 4, (seq + seq_on + other) % 2**32, ack % 2**32)
    return bytes(data)


def hot(recordings: Sequence[list[Recorded]], size: int, others: int = 2) -> Iterator[bytes]:
    """Make a pcap of at least `size` bytes, piece by piece, most of it on one connection.

    One of every `others` bytes is on other connections.
    """
    pieces = grown(recordings, size // others)
    yield next(pieces)
    connection = endless(busiest(recordings))
    ahead = 0
    for piece in pieces:
        yield piece
        ahead += (others - 1) * len(piece)
        while ahead > 0:
            data = next(connection)
            yield piece[:8] + struct.pack("<II", len(data), len(data)) + data
            ahead -= 16 + len(data)


def long(recordings: Sequence[list[Recorded]], size: int, count: int = 8) -> Iterator[bytes]:
    """Make a pcap of at least `size` bytes, piece by piece, of `count` connections.

    Each of them lasts as long as the capture.
    """
    yield HEADER
    recording = busiest(recordings)
    connections = [endless(recording, number) for number in range(1, count + 1)]
    written = at_us = 0
    while written < size:
        for connection in connections:
            data = next(connection)
            at_us += 100
            yield struct.pack("<IIII", *divmod(at_us, 1_000_000), len(data), len(data)) + data
            written += 16 + len(data)

"""Writes the packets of simulated TCP connections as a pcap.

Packets leave in the order of their simulated times; the same seed gives the same bytes.

    actors (generators of pauses) ─▶ Connection.send ─▶ segments ─▶ loss, reordering ─▶ pcap
"""

from __future__ import annotations

import heapq
import random
import struct
from collections.abc import Generator, Iterator
from itertools import count
from typing import Final, NamedTuple

ETHERNET: Final = 1
PCAP_HEADER: Final = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, ETHERNET)
PACKET: Final = struct.Struct("<IIII")
IPV4: Final = struct.Struct("!BBHHHBBHII")
TCP: Final = struct.Struct("!HHIIBBHHH")
MACS: Final = bytes.fromhex("020000000001020000000002") + b"\x08\x00"
MSS: Final = 1448
"""Bytes of payload in a segment."""
ACKED_SEGMENTS: Final = 2
"""Segments of one direction after which the receiver sends an acknowledgment."""
FIN, SYN, PSH, ACK = 1, 2, 8, 16
START_S: Final = 1_700_000_000

Actor = Generator[float, None, None]
"""A program: yields how long it pauses, in seconds of simulated time."""


class Damage(NamedTuple):
    """What the capture suffers: shares of packets that it lost, or has after the next one."""

    loss: float = 0.0
    reordering: float = 0.0


class Endpoint(NamedTuple):
    """An IPv4 address, as a number, and a port."""

    address: int
    port: int


class Simulation:
    """The clock, the programs that run, and the packets that were captured so far."""

    def __init__(self, rng: random.Random, damage: Damage = Damage()) -> None:  # noqa: B008 - frozen
        self.now = 0.0
        self.rng = rng
        self._damage = damage
        self._running: list[tuple[float, int, Actor]] = []
        self._serial = count()
        self._captured: list[bytes] = []
        self._held: bytes | None = None

    def start(self, actor: Actor, after: float = 0.0) -> None:
        """Start a program after some seconds."""
        heapq.heappush(self._running, (self.now + after, next(self._serial), actor))

    def run(self, size: int) -> Iterator[bytes]:
        """Run until the capture has `size` bytes, or no program is left; give it in pieces."""
        yield PCAP_HEADER
        written = len(PCAP_HEADER)
        while self._running and written < size:
            self.now, _, actor = heapq.heappop(self._running)
            pause = next(actor, None)
            if pause is not None:
                self.start(actor, pause)
            piece = b"".join(self._captured)
            self._captured.clear()
            written += len(piece)
            yield piece

    def capture(self, packet: bytes) -> None:
        """Capture a packet now, or not."""
        if self._damage.loss and self.rng.random() < self._damage.loss:
            return
        seconds, fraction = divmod(round(self.now * 1e6), 1_000_000)
        head = PACKET.pack(START_S + seconds, fraction, len(packet), len(packet))
        data = head + packet
        if self._held is not None:
            self._captured += (data, self._held)
            self._held = None
        elif self._damage.reordering and self.rng.random() < self._damage.reordering:
            self._held = data
        else:
            self._captured.append(data)


class Connection:
    """A TCP connection from a client to a broker."""

    def __init__(self, simulation: Simulation, client: Endpoint, broker: Endpoint) -> None:
        self._simulation = simulation
        self._ends = (client, broker)
        rng = simulation.rng
        self._next = [rng.randrange(1 << 32), rng.randrange(1 << 32)]
        self._unacked = [0, 0]
        self._packet(0, SYN)
        self._packet(1, SYN | ACK)
        self._packet(0, ACK)

    def send(self, side: int, data: bytes) -> None:
        """Send bytes. side: 0 is the client, 1 the broker."""
        for at in range(0, len(data), MSS):
            payload = data[at : at + MSS]
            last = at + MSS >= len(data)
            self._packet(side, PSH | ACK if last else ACK, payload)
            self._unacked[side] += 1
            if self._unacked[side] > ACKED_SEGMENTS:
                self._packet(1 - side, ACK)
                self._unacked[side] = 0

    def close(self) -> None:
        """Close both directions."""
        self._packet(0, FIN | ACK)
        self._packet(1, FIN | ACK)
        self._packet(0, ACK)

    def _packet(self, side: int, flags: int, payload: bytes = b"") -> None:
        source, destination = self._ends[side], self._ends[1 - side]
        sequence = self._next[side]
        acked = self._next[1 - side] if flags & ACK else 0
        segment = TCP.pack(
            source.port, destination.port, sequence, acked, 5 << 4, flags, 0xFFFF, 0, 0
        )
        size = IPV4.size + TCP.size + len(payload)
        header = IPV4.pack(0x45, 0, size, 0, 0x4000, 64, 6, 0, source.address, destination.address)
        self._next[side] = (sequence + len(payload) + bool(flags & (SYN | FIN))) % (1 << 32)
        self._simulation.capture(MACS + header + segment + payload)

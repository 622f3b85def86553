"""Captures written for a test: a few connections, a packet a line of the story."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, Self

import kafkawire
from kafkawire.primitives import Message

from . import wire
from .wire import ACK, FIN, MILLISECOND, PSH, RST, START_NS, SYN, Packet

CLIENT, BROKER = 0, 1
HOSTS = wire.CLIENT, wire.BROKER


def message(name: str, version: int, **fields: Any) -> Message:
    return kafkawire.from_json(name, version, fields)


def request(
    name: str, version: int, correlation_id: int, client_id: str = "tester", **fields: Any
) -> bytes:
    made = message(f"{name}Request", version, **fields)
    return kafkawire.encode_frame(made, version, correlation_id, client_id=client_id)


def response(name: str, version: int, correlation_id: int, **fields: Any) -> bytes:
    made = message(f"{name}Response", version, **fields)
    return kafkawire.encode_frame(made, version, correlation_id)


class Scenario:
    """Writes a capture; each call is one packet, a millisecond after the last.

    Connection n goes from port 50000 + n to 9092, or its port in `broker_ports`, and opens with a
    SYN where `opened`; handshake: seconds from it to the SYN of the broker, and to the first ACK.
    window, mss: in the headers of TCP.
    """

    def __init__(self, opened: bool = True) -> None:
        self.opened = opened
        self.packets: list[Packet] = []
        self.broker_ports: dict[int, int] = {}
        self.handshake: tuple[float, float] | None = None
        self.window, self.mss = 65535, 1460
        self._waited_ns = 0
        self._next: dict[tuple[int, int], int] = {}

    def wait(self, seconds: float) -> Self:
        """Let time pass before the next packet."""
        self._waited_ns += int(seconds * 1e9)
        return self

    @property
    def next_ns(self) -> int:
        """The time of the next packet."""
        return START_NS + len(self.packets) * MILLISECOND + self._waited_ns

    def send(self, side: int, data: bytes, connection: int = 0) -> Scenario:
        """Send bytes on a connection, which opens with its first ones."""
        if (connection, CLIENT) not in self._next:
            self.start(connection)
            if self.opened:
                self._open(connection)
        return self.segment(connection, side, PSH | ACK, data)

    def start(self, connection: int) -> None:
        """Choose the first sequence numbers of a connection, before its first segment."""
        self._next[connection, CLIENT], self._next[connection, BROKER] = 1000, 5000

    def _open(self, connection: int) -> None:
        """Open a connection; only `handshake` adds the ACK at the end."""
        self.segment(connection, CLIENT, SYN, b"")
        if self.handshake is None:
            self.segment(connection, BROKER, SYN | ACK, b"")
            return
        there, back = self.handshake
        self.wait(there - 0.001).segment(connection, BROKER, SYN | ACK, b"")
        self.wait(back - 0.001).segment(connection, CLIENT, ACK, b"")

    def close(self, connection: int = 0) -> Scenario:
        """Close a connection from both sides."""
        self.segment(connection, CLIENT, FIN | ACK, b"")
        return self.segment(connection, BROKER, FIN | ACK, b"")

    def reset(self, connection: int = 0, side: int = BROKER) -> Scenario:
        """Reset a connection from one side."""
        return self.segment(connection, side, RST | ACK, b"")

    def request(self, name: str, version: int, connection: int = 0, **fields: Any) -> Scenario:
        """Send a request; its correlation id is the number of packets before it.

        `last_request` is that id then; `respond` is to the request that it names.
        """
        made = request(name, version, len(self.packets), **fields)
        self.last_request = len(self.packets)
        return self.send(CLIENT, made, connection)

    def respond(self, name: str, version: int, connection: int = 0, **fields: Any) -> Scenario:
        """Send the response to the last request."""
        return self.send(BROKER, response(name, version, self.last_request, **fields), connection)

    def segment(self, connection: int, side: int, flags: int, data: bytes) -> Scenario:
        """Send a segment with these flags."""
        at, back = self._next[connection, side], self._next[connection, 1 - side]
        self._next[connection, side] = at + len(data) + (1 if flags & (SYN | FIN) else 0)
        ports = 50000 + connection, self.broker_ports.get(connection, 9092)
        options = struct.pack(">BBH", 2, 4, self.mss) if flags & SYN else b""
        segment = wire.tcp(
            ports[side],
            ports[1 - side],
            at,
            data,
            ack=back,
            flags=flags,
            options=options,
            window=self.window,
        )
        packet = wire.ipv4(segment, source=HOSTS[side], destination=HOSTS[1 - side])
        self.packets.append(Packet(wire.ethernet(packet), self.next_ns))
        return self

    def save(self, path: Path, first: int = 0, last: int | None = None) -> Path:
        """Write packets as a capture."""
        path.write_bytes(wire.pcap(self.packets[first:last]))
        return path

"""TCP connections as lists of sent packets, and the events of their reassembly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafkawire.capture.packets.parser import PacketParser
from kafkawire.capture.tcp.connection import Connection, Run
from kafkawire.capture.tcp.events import Closed, CloseReason, Conflict, Discarded, Event, Gap
from kafkawire.capture.tcp.limits import DEFAULT_REASSEMBLY, ReassemblyLimits
from kafkawire.capture.tcp.reassembly import Reassembler

from .wire import (
    ACK,
    BROKER,
    CLIENT,
    FIN,
    MILLISECOND,
    PSH,
    RST,
    START_NS,
    SYN,
    Packet,
    ethernet,
    ipv4,
    pcap,
    read,
    tcp,
)

ISNS = (1_000_000, 4_294_967_000)
"""The second one wraps after 295 bytes."""


class Sent(NamedTuple):
    """A packet of side 0 (the client) or 1.

    at: stream position of the payload. acked: up to where the peer's stream was received, None
    for no ACK at all. after_ms: how long after the packet before it.
    """

    side: int
    at: int
    payload: bytes = b""
    acked: int | None = 0
    flags: int = 0
    after_ms: float = 1
    captured: int | None = None
    isns: tuple[int, int] = ISNS
    ports: tuple[int, int] = (50000, 9092)


def hello(acked: bool = True, **fields: object) -> list[Sent]:
    """The three packets that open a connection."""
    return [
        Sent(0, -1, flags=SYN, acked=None, **fields),  # type: ignore[arg-type]
        Sent(1, -1, flags=SYN, **fields),  # type: ignore[arg-type]
        Sent(0, 0, **fields),  # type: ignore[arg-type]
    ][: 3 if acked else 2]


def packets(scenario: Sequence[Sent]) -> list[Packet]:
    """Build the packets of a list of sent segments."""
    now = START_NS
    out = []
    for sent in scenario:
        now += int(sent.after_ms * MILLISECOND)
        mine, theirs = sent.isns[sent.side], sent.isns[1 - sent.side]
        flags = sent.flags
        ack = 0
        if sent.acked is not None:
            flags |= ACK
            ack = (theirs + 1 + sent.acked) & 0xFFFFFFFF
        if sent.payload and not flags & (SYN | RST):
            flags |= PSH
        ports = sent.ports if sent.side == 0 else sent.ports[::-1]
        seq = (mine + 1 + sent.at) & 0xFFFFFFFF
        ends = (CLIENT, BROKER) if sent.side == 0 else (BROKER, CLIENT)
        segment = tcp(*ports, seq, sent.payload, ack=ack, flags=flags)
        data = ethernet(ipv4(segment, source=ends[0], destination=ends[1]))
        if sent.captured is not None:
            cut = data[: len(data) - len(sent.payload) + sent.captured]
            out.append(Packet(cut, now, len(data)))
        else:
            out.append(Packet(data, now))
    return out


def known(event: Event) -> int:
    """Return the packet after which an event was reported."""
    return event.known if isinstance(event, Run) else event.packet


class ReassembledEvents:
    """Events by connection and side; checks that runs and gaps are contiguous, and that events
    reported together are in the order in which they became known.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.connections: list[Connection] = []
        self._ends: dict[tuple[Connection, int], int] = {}

    def add(self, events: Sequence[Event]) -> None:
        latest = 0
        for event in events:
            if event.connection not in self.connections:
                self.connections.append(event.connection)
            if isinstance(event, Run | Gap):
                side = event.connection, event.side
                assert event.position == self._ends.get(side, 0)
                assert event.end > event.position
                self._ends[side] = event.end
                assert known(event) >= event.packet
            assert known(event) >= latest
            latest = known(event)
        self.events += events

    def runs(self, side: int, connection: int = 0) -> list[Run]:
        return [
            event
            for event in self.events
            if isinstance(event, Run) and (event.connection.id, event.side) == (connection, side)
        ]

    def gaps(self, side: int, connection: int = 0) -> list[Gap]:
        return [
            event
            for event in self.events
            if isinstance(event, Gap) and (event.connection.id, event.side) == (connection, side)
        ]

    def data(self, side: int, connection: int = 0) -> dict[int, int]:
        """Stream position -> byte."""
        return {
            run.position + i: byte
            for run in self.runs(side, connection)
            for i, byte in enumerate(run.data)
        }

    def joined(self, side: int, connection: int = 0) -> bytes:
        return b"".join(run.data for run in self.runs(side, connection))

    def missing(self, side: int, connection: int = 0) -> set[int]:
        return {at for gap in self.gaps(side, connection) for at in range(gap.position, gap.end)}

    def arrivals(self, side: int, connection: int = 0) -> dict[int, int]:
        """Stream position -> packet that made the byte contiguous."""
        return {
            at: run.packet
            for run in self.runs(side, connection)
            for at in range(run.position, run.end)
        }

    @property
    def conflicts(self) -> list[Conflict]:
        return [event for event in self.events if isinstance(event, Conflict)]

    @property
    def discarded(self) -> list[Discarded]:
        return [event for event in self.events if isinstance(event, Discarded)]

    @property
    def closed(self) -> list[tuple[int, CloseReason]]:
        return [(e.connection.id, e.reason) for e in self.events if isinstance(e, Closed)]


def reassemble(
    packets_in: Sequence[Packet],
    limits: ReassemblyLimits = DEFAULT_REASSEMBLY,
    step: int = 1 << 15,
    link: int = 1,
) -> ReassembledEvents:
    """Reassemble packets, `step` of them in a block."""
    (block,) = read(pcap(packets_in, link=link, magic=0xA1B23C4D))[0] if packets_in else (None,)
    result = ReassembledEvents()
    parser, reassembler = PacketParser(), Reassembler(limits)
    if block is not None:
        for at in range(0, len(block), step):
            result.add(reassembler.handle(parser.parse(block[at : at + step])))
    result.add(reassembler.handle(None))
    return result


def goodbye(*at: int) -> list[Sent]:
    """Both sides close; `at`: how much each of them has sent."""
    return [
        Sent(0, at[0], acked=at[1], flags=FIN),
        Sent(1, at[1], acked=at[0] + 1, flags=FIN),
        Sent(0, at[0] + 1, acked=at[1] + 1),
    ]

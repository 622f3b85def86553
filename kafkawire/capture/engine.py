"""A capture in, located rows out: packets, flows and conversations put together.

Law: content never raises and never stops the rest; a file that is cut or corrupt is a row that says
where, and what was read before it stands.

    file --> packet blocks --> segments --> connections --> conversations --> located rows
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ..errors import CaptureError
from ..primitives import DEFAULT_LIMITS, Limits
from .bounds import DEFAULT_REASSEMBLY, ReassemblyLimits
from .connections import Connection, Endpoint
from .conversation import DIRECTIONS, Conversation
from .events import Closed, Conflict, Discarded, Event, Gap, Piece, in_order
from .flows import UNKNOWN
from .packets import PacketParser, Segments
from .reassembly import Reassembler
from .rows import Row, Status
from .source import Watch, read_capture


class Located(NamedTuple):
    """A row and the connection it belongs to.

    connection: number of the TCP connection in the capture, from 0 in order of appearance (as
    tshark's tcp.stream); None for a row about the capture itself. client, broker: `address:port`;
    where it is not known which is which, the end that was seen first is called the client.
    """

    connection: int | None
    client: str | None
    broker: str | None
    row: Row


def endpoint(text: str) -> Endpoint:
    """Read `address:port` as rows show it, an IPv6 address in brackets. Raises ValueError."""
    address, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
        raise ValueError(f"{text!r} is no address:port")
    if address[:1] + address[-1:] == "[]":
        return Endpoint(int(IPv6Address(address[1:-1])), int(port))
    number = ip_address(address)
    return Endpoint(int(number) | (0xFFFF << 32 if number.version == 4 else 0), int(port))


class Engine:
    """Decodes a capture: feed it segments, take its rows.

    ports, brokers: ports of brokers, and brokers as `address:port`, where they are known; otherwise
    Kafka is recognised on any port. Raises ValueError for a broker that is no `address:port`.
    on_end: told of each connection behind its last row, with the side that was the client.
    """

    def __init__(
        self,
        ports: Collection[int] = (),
        limits: Limits = DEFAULT_LIMITS,
        reassembly: ReassemblyLimits = DEFAULT_REASSEMBLY,
        on_end: Callable[[Connection, int], None] | None = None,
        brokers: Collection[str] = (),
    ) -> None:
        self.ports = frozenset(ports)
        self.brokers = frozenset(map(endpoint, brokers))
        self.on_end = on_end
        self.limits = limits
        self._reassembler = Reassembler(reassembly)
        self._conversations: dict[int, Conversation] = {}

    def feed(self, segments: Segments) -> Iterator[Located]:
        """Take the next segments of the capture, in packet order."""
        return self._rows(self._reassembler.feed(segments))

    def finish(self) -> Iterator[Located]:
        """Close the capture: what is still held goes out as what it is."""
        return self._rows(self._reassembler.finish())

    def _rows(self, events: list[Event]) -> Iterator[Located]:
        for event in in_order(events):
            connection = event.connection
            conversation = self._conversations.get(connection.id)
            if conversation is None:
                conversation = self._conversations[connection.id] = self._open(connection)
            rows = _tell(conversation, event)
            if isinstance(event, Closed):
                del self._conversations[connection.id]
            client = conversation.client or 0
            for row in rows:
                yield Located(
                    connection.id,
                    str(connection.endpoints[client]),
                    str(connection.endpoints[1 - client]),
                    row,
                )
            if self.on_end is not None and isinstance(event, Closed):
                self.on_end(connection, client)

    def _open(self, connection: Connection) -> Conversation:
        broker = self._broker(connection)
        return Conversation(
            client=connection.client if broker is None else 1 - broker,
            in_step=tuple(flow.initial != UNKNOWN for flow in connection.flows),
            known_kafka=broker is not None,
            limits=self.limits,
        )

    def _broker(self, connection: Connection) -> int | None:
        """Say which side is known to be a broker, if exactly one is."""
        at = [
            side
            for side, end in enumerate(connection.endpoints)
            if end.port in self.ports or end in self.brokers
        ]
        return at[0] if len(at) == 1 else None


def _tell(
    conversation: Conversation, event: Piece | Gap | Conflict | Discarded | Closed
) -> list[Row]:
    match event:
        case Piece(side=side, data=data, packet=packet, time_ns=time_ns):
            return conversation.feed(side, data, packet, time_ns)
        case Gap(side=side, length=length, packet=packet, time_ns=time_ns):
            return conversation.gap(side, length, packet, time_ns, event.reason)
        case Conflict(length=length, packet=packet, time_ns=time_ns):
            reason = "sent again with other bytes; the first ones stand"
            status = Status.CONFLICT
        case Discarded(length=length, packet=packet, time_ns=time_ns):
            reason, status = event.reason.value, Status.DISCARDED
        case _:
            return conversation.finish()
    direction = DIRECTIONS[0 if event.side == (conversation.client or 0) else 1]
    return [Row(packet, time_ns, direction, length, status, reason)]


def decode_capture(
    source: str | Path | BinaryIO,
    *,
    ports: Collection[int] = (),
    limits: Limits = DEFAULT_LIMITS,
    reassembly: ReassemblyLimits = DEFAULT_REASSEMBLY,
    brokers: Collection[str] = (),
    watch: Watch | None = None,
) -> Iterator[Located]:
    """Decode a capture file, or a stream that is still being written; rows come as they complete.

    ports, brokers: as in `Engine`. watch: told how far reading is. Raises BadMagic,
    TruncatedCapture where the source is no capture at all; ValueError as Engine does.
    """
    capture = read_capture(source, watch)
    parser = PacketParser()
    engine = Engine(ports, limits, reassembly, brokers=brokers)
    packets = 0
    for block in capture:
        packets = block.first + len(block) - 1
        yield from engine.feed(parser.parse(block))
    yield from engine.finish()
    for problem in [*capture.problems, *parser.problems]:
        yield _about(problem, packets)


def _about(problem: CaptureError, packets: int) -> Located:
    return Located(None, None, None, Row(packets, 0, "", 0, Status.UNREADABLE, str(problem)))

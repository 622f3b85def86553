"""A capture in, located rows out: packets, flows and conversations put together.

Law: content never raises and never stops the rest; a file that is cut or corrupt is a row that says
where, and what was read before it stands.

    file --> packet blocks --> segments --> connections --> conversations --> located rows
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, final

from mypy_extensions import i64, mypyc_attr

from ..errors import CaptureError
from ..primitives import DEFAULT_LIMITS, Limits
from .bounds import DEFAULT_REASSEMBLY, ReassemblyLimits
from .connections import Connection, Endpoint
from .conversation import DIRECTIONS, Conversation
from .events import Closed, Conflict, Discarded, Gap
from .flows import UNKNOWN
from .packets import PacketParser, Segments
from .pairing import Item
from .parcels import Told
from .reading import Sealed
from .reassembly import Reassembler
from .rows import Row, Status
from .runs import Run
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


BATCH_ROWS: Final = 512
BATCH_BYTES: Final = 1 << 19
"""Rows, or bytes of payload, that are given at a time at most."""


def endpoint(text: str) -> Endpoint:
    """Read `address:port` as rows show it, an IPv6 address in brackets. Raises ValueError."""
    address, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
        raise ValueError(f"{text!r} is no address:port")
    if address[:1] + address[-1:] == "[]":
        return Endpoint(int(IPv6Address(address[1:-1])), int(port))
    number = ip_address(address)
    return Endpoint(int(number) | (0xFFFF << 32 if number.version == 4 else 0), int(port))


@mypyc_attr(allow_interpreted_subclasses=True)
class Engine:
    """Decodes a capture: feed it segments, take its rows.

    ports, brokers: ports of brokers, and brokers as `address:port`, where they are known; otherwise
    Kafka is recognised on any port. Raises ValueError for a broker that is no `address:port`.
    on_end: told of each connection behind its last row, with the side that was the client.
    known_at: the packet that made known what is being told.
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
        self._talks: dict[Connection, _Talk] = {}
        self.known_at = 0

    def feed(self, segments: Segments) -> Iterator[Located]:
        """Take the next segments of the capture, in packet order."""
        return self._opened(self.take(segments))

    def finish(self) -> Iterator[Located]:
        """Close the capture: what is still held goes out as what it is."""
        return self._opened(self.end())

    def _opened(self, told: Iterator[Told]) -> Iterator[Located]:
        limits = self.limits
        for one in told:
            yield located(one, limits)

    # -- the same, and frames stay sealed: whoever asks for their rows may do that elsewhere

    def take(self, segments: Segments) -> Iterator[Told]:
        """Take the next segments of the capture, in packet order."""
        return self._one_by_one(self.batches(segments))

    def end(self) -> Iterator[Told]:
        """Close the capture: what is still held goes out as what it is."""
        return self._one_by_one(self.batches(None))

    def _one_by_one(self, batches: Iterator[list[Told]]) -> Iterator[Told]:
        for batch in batches:
            for told in batch:
                self.known_at = told.known_at
                yield told

    def batches(self, segments: Segments | None) -> Iterator[list[Told]]:
        """Do as `take`, or with None as `end`, and give some rows at a time."""
        reassembler, talks = self._reassembler, self._talks
        events = reassembler.finish() if segments is None else reassembler.feed(segments)
        batch: list[Told] = []
        held: i64 = 0
        for event in events:
            connection = event.connection
            talk = talks.get(connection)
            if talk is None:
                talk = talks[connection] = _Talk(connection, self._open(connection))
            conversation = talk.conversation
            if isinstance(event, Run):
                data, side, packet, time_ns = event.data, event.side, event.packet, event.time_ns
                held += len(data)
                sealed = conversation.whole(side, data, packet, time_ns)
                if sealed is None:
                    for item in conversation.take(side, data, packet, time_ns):
                        batch.append(talk.tells(item, event.known))
                else:
                    batch.append(talk.tells(sealed, event.known))
            else:
                for item in _tell(conversation, event):
                    batch.append(talk.tells(item, event.packet))
            if isinstance(event, Closed):
                del talks[connection]
                if self.on_end is not None:
                    if batch:
                        yield batch
                        batch = []
                        held = 0
                    self.on_end(connection, conversation.client or 0)
            if len(batch) >= BATCH_ROWS or held >= BATCH_BYTES:
                yield batch
                batch = []
                held = 0
        if segments is None:
            reassembler.part()
        if batch:
            yield batch

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
        if not self.ports and not self.brokers:
            return None
        at = [
            side
            for side, end in enumerate(connection.endpoints)
            if end.port in self.ports or end in self.brokers
        ]
        return at[0] if len(at) == 1 else None


@final
class _Talk:
    """A connection, its conversation, and who they are in words."""

    def __init__(self, connection: Connection, conversation: Conversation) -> None:
        self.connection: Connection = connection
        self.conversation: Conversation = conversation
        self._side: i64 = -1
        self._client: str = ""
        self._broker: str = ""

    def tells(self, item: Item, known_at: i64) -> Told:
        """Say whose item that is; the ends are written anew only where they turn out to be the
        other way.
        """
        client = self.conversation.client
        side: i64 = 0 if client is None else client
        connection = self.connection
        if side != self._side:
            self._side = side
            self._client, self._broker = connection.name(side), connection.name(1 - side)
        told: Told = _make(Told, (connection.id, self._client, self._broker, item, known_at))
        return told


_make: Final[Any] = tuple.__new__


def located(told: Told, limits: Limits = DEFAULT_LIMITS) -> Located:
    """Open what is sealed."""
    connection, client, broker, item, _ = told
    row = item.open(limits) if isinstance(item, Sealed) else item
    made: Located = _make(Located, (connection, client, broker, row))
    return made


def _tell(conversation: Conversation, event: Gap | Conflict | Discarded | Closed) -> list[Item]:
    match event:
        case Gap(side=side, length=length, packet=packet, time_ns=time_ns):
            return conversation.lose(side, length, packet, time_ns, event.reason)
        case Conflict(length=length, packet=packet, time_ns=time_ns):
            reason = "sent again with other bytes; the first ones stand"
            status = Status.CONFLICT
        case Discarded(length=length, packet=packet, time_ns=time_ns):
            reason, status = event.reason.value, Status.DISCARDED
        case _:
            return conversation.end()
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
    told = read_sealed(
        source,
        ports=ports,
        limits=limits,
        reassembly=reassembly,
        brokers=brokers,
        watch=watch,
    )
    for one in told:
        yield located(one, limits)


def read_sealed(
    source: str | Path | BinaryIO,
    *,
    ports: Collection[int] = (),
    limits: Limits = DEFAULT_LIMITS,
    reassembly: ReassemblyLimits = DEFAULT_REASSEMBLY,
    brokers: Collection[str] = (),
    watch: Watch | None = None,
) -> Iterator[Told]:
    """Read a capture as `decode_capture` does, and leave the bodies of messages unread: `located`
    opens them, also in another process (see `parcels`).
    """
    for batch in read_batches(
        source, ports=ports, limits=limits, reassembly=reassembly, brokers=brokers, watch=watch
    ):
        yield from batch


def read_batches(
    source: str | Path | BinaryIO,
    *,
    ports: Collection[int] = (),
    limits: Limits = DEFAULT_LIMITS,
    reassembly: ReassemblyLimits = DEFAULT_REASSEMBLY,
    brokers: Collection[str] = (),
    watch: Watch | None = None,
) -> Iterator[list[Told]]:
    """Do as `read_sealed`, some rows at a time."""
    capture = read_capture(source, watch)
    parser = PacketParser()
    engine = Engine(ports, limits, reassembly, brokers=brokers)
    packets = 0
    for block in capture:
        packets = block.first + len(block) - 1
        yield from engine.batches(parser.parse(block))
    yield from engine.batches(None)
    problems = [*capture.problems, *parser.problems]
    if problems:
        yield [_about(problem, packets) for problem in problems]


def _about(problem: CaptureError, packets: int) -> Told:
    return Told(None, None, None, Row(packets, 0, "", 0, Status.UNREADABLE, str(problem)))

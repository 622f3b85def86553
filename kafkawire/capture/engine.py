"""A capture in, located rows out: packets, flows and conversations put together.

Law: content never raises and never stops the rest; a file that is cut or corrupt is a row that says
where, and what was read before it stands.

    file --> packet blocks --> segments --> connections --> conversations --> located rows
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from mypy_extensions import mypyc_attr

from ..errors import CaptureError
from ..primitives import DEFAULT_LIMITS, Limits
from .bounds import DEFAULT_REASSEMBLY, ReassemblyLimits
from .connections import Connection, Endpoint
from .conversation import DIRECTIONS, Conversation
from .events import Closed, Conflict, Discarded, Event, Gap, Run
from .flows import UNKNOWN
from .packets import PacketParser, Segments
from .pairing import Item
from .parcels import Told
from .reading import Sealed
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
        self._talks: dict[int, _Talk] = {}
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
        reassembler = self._reassembler
        events = reassembler.finish() if segments is None else reassembler.feed(segments)
        batch: list[Told] = []
        held = 0
        for event, at, known in in_turn(events):
            connection = event.connection
            talk = self._talks.get(connection.id)
            if talk is None:
                talk = self._talks[connection.id] = _Talk(connection, self._open(connection))
            conversation = talk.conversation
            if isinstance(event, Run):
                _, side, position, data, ends, packets, times, _ = event
                if len(ends) > 1:
                    start = ends[at - 1] - position if at else 0
                    data = data[start : ends[at] - position]
                held += len(data)
                items = conversation.take(side, data, packets[at], times[at])
            else:
                items = _tell(conversation, event)
            if items:
                client, broker = talk.ends()
                for item in items:
                    batch.append(_make(Told, (connection.id, client, broker, item, known)))
            if isinstance(event, Closed):
                del self._talks[connection.id]
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
        at = [
            side
            for side, end in enumerate(connection.endpoints)
            if end.port in self.ports or end in self.brokers
        ]
        return at[0] if len(at) == 1 else None


@mypyc_attr(allow_interpreted_subclasses=True)
class _Talk:
    """A connection, its conversation, and who they are in words."""

    def __init__(self, connection: Connection, conversation: Conversation) -> None:
        self.connection: Connection = connection
        self.conversation: Conversation = conversation
        self._client: int = -1
        self._ends: tuple[str, str] = "", ""

    def ends(self) -> tuple[str, str]:
        """Name client and broker; written anew only where they turn out to be the other way."""
        client = self.conversation.client or 0
        if client != self._client:
            self._client = client
            ends = self.connection.endpoints
            self._ends = str(ends[client]), str(ends[1 - client])
        return self._ends


_make: Final[Any] = tuple.__new__


def located(told: Told, limits: Limits = DEFAULT_LIMITS) -> Located:
    """Open what is sealed."""
    connection, client, broker, item, _ = told
    row = item.open(limits) if isinstance(item, Sealed) else item
    made: Located = _make(Located, (connection, client, broker, row))
    return made


INDEX_BITS: Final = 28
"""Enough for every event there can be at once, and few enough for a key to stay a machine word."""


def in_turn(events: list[Event]) -> list[tuple[Event, int, int]]:
    """Put events in the order in which they became known, both sides of a connection interleaved; a
    run comes once for each packet of it, with that packet's index. Last: the packet that made it
    known.

    The events are those of one `feed` or `finish`: within a batch a run may hold many packets of
    one side, while the other side's answers lie between them.
    """
    turns: list[tuple[Event, int, int]] = []
    keys: list[int] = []
    for event in events:
        if isinstance(event, Run):
            released = event.released
            for at, packet in enumerate(event.packets):
                known = released or packet
                keys.append(known << INDEX_BITS | len(turns))
                turns.append((event, at, known))
        else:
            keys.append(event.packet << INDEX_BITS | len(turns))
            turns.append((event, 0, event.packet))
    keys.sort()
    return [turns[key & ((1 << INDEX_BITS) - 1)] for key in keys]


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

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
from .exchanges.conversation import DIRECTIONS, Conversation
from .exchanges.pairing import Item
from .files.source import Watch, read_capture
from .frames.decoding import RawFrame
from .frames.serialised import LocatedItem
from .packets.parser import PacketParser, Segments
from .rows import Row, Status
from .tcp.connection import Connection, Endpoint
from .tcp.events import Closed, Conflict, Discarded, Event, Gap
from .tcp.limits import DEFAULT_REASSEMBLY, ReassemblyLimits
from .tcp.reassembly import Reassembler
from .tcp.run import Run


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
BATCH_BYTES: Final = 1 << 17
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
    by_packet: rows name connections by their first packets, not by number.
    known_at: the packet that made known what is being told.
    """

    def __init__(
        self,
        ports: Collection[int] = (),
        limits: Limits = DEFAULT_LIMITS,
        reassembly: ReassemblyLimits = DEFAULT_REASSEMBLY,
        on_end: Callable[[Connection, int], None] | None = None,
        brokers: Collection[str] = (),
        by_packet: bool = False,
    ) -> None:
        self.ports = frozenset(ports)
        self.brokers = frozenset(map(endpoint, brokers))
        self.on_end = on_end
        self.by_packet = by_packet
        self.limits = limits
        self._reassembler = Reassembler(reassembly)
        self._talks: dict[Connection, _ConversationState] = {}
        self.known_at = 0

    def feed(self, segments: Segments) -> Iterator[Located]:
        """Take the next segments of the capture, in packet order."""
        return self._opened(self.take(segments))

    def finish(self) -> Iterator[Located]:
        """Close the capture: what is still held goes out as what it is."""
        return self._opened(self.end())

    def _opened(self, told: Iterator[LocatedItem]) -> Iterator[Located]:
        limits = self.limits
        for one in told:
            yield located(one, limits)

    # -- the same, and frames stay sealed: whoever asks for their rows may do that elsewhere

    def take(self, segments: Segments) -> Iterator[LocatedItem]:
        """Take the next segments of the capture, in packet order."""
        return self._one_by_one(self.batches(segments))

    def end(self) -> Iterator[LocatedItem]:
        """Close the capture: what is still held goes out as what it is."""
        return self._one_by_one(self.batches(None))

    def _one_by_one(self, batches: Iterator[list[LocatedItem]]) -> Iterator[LocatedItem]:
        for batch in batches:
            for told in batch:
                self.known_at = told.known_at
                yield told

    def batches(self, segments: Segments | None) -> Iterator[list[LocatedItem]]:
        """Do as `take`, or with None as `end`, and give some rows at a time."""
        reassembler = self._reassembler
        events = reassembler.finish() if segments is None else reassembler.feed(segments)
        at = 0
        while at < len(events):
            batch: list[LocatedItem] = []
            at = self._hear(events, at, batch)
            if batch:
                yield batch
            ended = events[at - 1]
            if self.on_end is not None and isinstance(ended, Closed):
                conversation = self._talks.pop(ended.connection).conversation
                self.on_end(ended.connection, conversation.client or 0)
        if segments is None:
            reassembler.release()

    def _hear(self, events: list[Event], start: i64, batch: list[LocatedItem]) -> i64:
        """Take events from an index on, to the end or until that makes a batch, or to the end of a
        connection, if somebody has to be told. Returns the index reached.
        """
        tells_end = self.on_end is not None
        held: i64 = 0
        at = start
        end: i64 = len(events)
        talk: _ConversationState | None = None
        while at < end and held < BATCH_BYTES and len(batch) < BATCH_ROWS:
            event = events[at]
            at += 1
            if talk is None or talk.connection is not event.connection:
                talk = self._talk(event.connection)
            if isinstance(event, Run):
                held += len(event.data)
                talk.hear(event, batch)
                continue
            for item in _tell(talk.conversation, event):
                batch.append(talk.tells(item, event.packet))
            if isinstance(event, Closed):
                if tells_end:
                    break
                del self._talks[event.connection]
                talk = None
        return at

    def _talk(self, connection: Connection) -> _ConversationState:
        talk = self._talks.get(connection)
        if talk is None:
            number = connection.first_packet if self.by_packet else connection.id
            talk = self._talks[connection] = _ConversationState(
                connection, number, self._open(connection)
            )
        return talk

    def _open(self, connection: Connection) -> Conversation:
        broker = self._broker(connection)
        return Conversation(
            client=connection.client if broker is None else 1 - broker,
            in_step=tuple(connection.syn_seen),
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
class _ConversationState:
    """A connection, what it is called, its conversation, and who they are in words."""

    def __init__(self, connection: Connection, number: int, conversation: Conversation) -> None:
        self.connection: Connection = connection
        self._number: int | None = number
        self.conversation: Conversation = conversation
        self._side: i64 = -1
        self._client: str = ""
        self._broker: str = ""

    def hear(self, run: Run, batch: list[LocatedItem]) -> None:
        """Take bytes of a side; what they tell goes into the batch."""
        conversation, known = self.conversation, run.known
        data, side, packet, time_ns = run.data, run.side, run.packet, run.time_ns
        sealed = conversation.whole(side, data, packet, time_ns)
        if sealed is not None:
            batch.append(self.tells(sealed, known))
            return
        for item in conversation.take(side, data, packet, time_ns):
            batch.append(self.tells(item, known))

    def tells(self, item: Item, known_at: i64) -> LocatedItem:
        """Say whose item that is; the ends are written anew only where they turn out to be the
        other way.
        """
        client = self.conversation.client
        side: i64 = 0 if client is None else client
        if side != self._side:
            connection = self.connection
            self._side = side
            self._client, self._broker = connection.name(side), connection.name(1 - side)
        return LocatedItem(self._number, self._client, self._broker, item, known_at)


_make: Final[Any] = tuple.__new__


def located(told: LocatedItem, limits: Limits = DEFAULT_LIMITS) -> Located:
    """Open what is sealed."""
    item = told.item
    row = item.open(limits) if isinstance(item, RawFrame) else item
    made: Located = _make(Located, (told.connection, told.client, told.broker, row))
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
    told = read_raw_frames(
        source,
        ports=ports,
        limits=limits,
        reassembly=reassembly,
        brokers=brokers,
        watch=watch,
    )
    for one in told:
        yield located(one, limits)


def read_raw_frames(
    source: str | Path | BinaryIO,
    *,
    ports: Collection[int] = (),
    limits: Limits = DEFAULT_LIMITS,
    reassembly: ReassemblyLimits = DEFAULT_REASSEMBLY,
    brokers: Collection[str] = (),
    watch: Watch | None = None,
) -> Iterator[LocatedItem]:
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
) -> Iterator[list[LocatedItem]]:
    """Do as `read_raw_frames`, some rows at a time."""
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


def _about(problem: CaptureError, packets: int) -> LocatedItem:
    return LocatedItem(None, None, None, Row(packets, 0, "", 0, Status.UNREADABLE, str(problem)))

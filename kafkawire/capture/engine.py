"""Decodes a capture into located rows: combines packets, TCP flows and conversations.

Law: content never raises and never stops the rest; a truncated or corrupt file is reported as a
row, after the rows before the damage.

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
    if the roles are not known, the endpoint that was seen first is called the client.
    """

    connection: int | None
    client: str | None
    broker: str | None
    row: Row


BATCH_ROWS: Final = 512
BATCH_BYTES: Final = 1 << 17
"""Rows, or bytes of payload, in a batch at most."""


def endpoint(text: str) -> Endpoint:
    """Parse `address:port` as rows show it, an IPv6 address in brackets. Raises ValueError."""
    address, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
        raise ValueError(f"invalid address {text!r}: expected address:port")
    if address[:1] + address[-1:] == "[]":
        return Endpoint(int(IPv6Address(address[1:-1])), int(port))
    number = ip_address(address)
    return Endpoint(int(number) | (0xFFFF << 32 if number.version == 4 else 0), int(port))


@mypyc_attr(allow_interpreted_subclasses=True)
class Engine:
    """Decodes a capture: segments in, rows out.

    ports, brokers: known ports of brokers, and brokers as `address:port`; otherwise Kafka is
    detected on any port. Raises ValueError for an invalid `address:port`.
    on_end: called for each closed connection after its last row, with the side that was the client.
    by_packet: rows identify connections by their first packets, not by number.
    known_at: the packet after which the current row was reported.
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
        self._conversations: dict[Connection, _ConversationState] = {}
        self.known_at = 0

    def feed(self, segments: Segments) -> Iterator[Located]:
        """Handle the next segments of the capture, in packet order."""
        return self._decoded(self.take(segments))

    def finish(self) -> Iterator[Located]:
        """Handle the end of the capture: buffered data is flushed as rows."""
        return self._decoded(self.end())

    def _decoded(self, items: Iterator[LocatedItem]) -> Iterator[Located]:
        limits = self.limits
        for item in items:
            yield located(item, limits)

    # -- the same with raw frames: bodies stay undecoded

    def take(self, segments: Segments) -> Iterator[LocatedItem]:
        """Handle the next segments of the capture, in packet order."""
        return self._flat(self.batches(segments))

    def end(self) -> Iterator[LocatedItem]:
        """Handle the end of the capture: buffered data is flushed as rows."""
        return self._flat(self.batches(None))

    def _flat(self, batches: Iterator[list[LocatedItem]]) -> Iterator[LocatedItem]:
        for batch in batches:
            for item in batch:
                self.known_at = item.known_at
                yield item

    def batches(self, segments: Segments | None) -> Iterator[list[LocatedItem]]:
        """Do as `take`, or with None as `end`, in batches."""
        reassembler = self._reassembler
        events = reassembler.finish() if segments is None else reassembler.feed(segments)
        at = 0
        while at < len(events):
            batch: list[LocatedItem] = []
            at = self._handle(events, at, batch)
            if batch:
                yield batch
            ended = events[at - 1]
            if self.on_end is not None and isinstance(ended, Closed):
                conversation = self._conversations.pop(ended.connection).conversation
                self.on_end(ended.connection, conversation.client or 0)
        if segments is None:
            reassembler.release()

    def _handle(self, events: list[Event], start: i64, batch: list[LocatedItem]) -> i64:
        """Handle events from an index on, until the batch is full, or until a connection closes if
        there is an `on_end`. Returns the index of the next event.
        """
        has_callback = self.on_end is not None
        held: i64 = 0
        at = start
        end: i64 = len(events)
        state: _ConversationState | None = None
        while at < end and held < BATCH_BYTES and len(batch) < BATCH_ROWS:
            event = events[at]
            at += 1
            if state is None or state.connection is not event.connection:
                state = self._state_of(event.connection)
            if isinstance(event, Run):
                held += len(event.data)
                state.handle_run(event, batch)
                continue
            for item in _handle_event(state.conversation, event):
                batch.append(state.locate(item, event.packet))
            if isinstance(event, Closed):
                if has_callback:
                    break
                del self._conversations[event.connection]
                state = None
        return at

    def _state_of(self, connection: Connection) -> _ConversationState:
        state = self._conversations.get(connection)
        if state is None:
            number = connection.first_packet if self.by_packet else connection.id
            state = self._conversations[connection] = _ConversationState(
                connection, number, self._new_conversation(connection)
            )
        return state

    def _new_conversation(self, connection: Connection) -> Conversation:
        broker = self._broker(connection)
        return Conversation(
            client=connection.client if broker is None else 1 - broker,
            in_sync=tuple(connection.syn_seen),
            known_kafka=broker is not None,
            limits=self.limits,
        )

    def _broker(self, connection: Connection) -> int | None:
        """Return the side that is known to be a broker, if exactly one is."""
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
    """A connection, its number, its conversation, and its endpoints as text."""

    def __init__(self, connection: Connection, number: int, conversation: Conversation) -> None:
        self.connection: Connection = connection
        self._number: int | None = number
        self.conversation: Conversation = conversation
        self._side: i64 = -1
        self._client: str = ""
        self._broker: str = ""

    def handle_run(self, run: Run, batch: list[LocatedItem]) -> None:
        """Handle bytes of a side; append the items to the batch."""
        conversation, known = self.conversation, run.known
        data, side, packet, time_ns = run.data, run.side, run.packet, run.time_ns
        raw_frame = conversation.take_single_frame(side, data, packet, time_ns)
        if raw_frame is not None:
            batch.append(self.locate(raw_frame, known))
            return
        for item in conversation.take(side, data, packet, time_ns):
            batch.append(self.locate(item, known))

    def locate(self, item: Item, known_at: i64) -> LocatedItem:
        """Add the connection to an item; the endpoints are formatted again only if client and
        broker turn out to be swapped.
        """
        client = self.conversation.client
        side: i64 = 0 if client is None else client
        if side != self._side:
            connection = self.connection
            self._side = side
            self._client, self._broker = connection.name(side), connection.name(1 - side)
        return LocatedItem(self._number, self._client, self._broker, item, known_at)


_make: Final[Any] = tuple.__new__


def located(entry: LocatedItem, limits: Limits = DEFAULT_LIMITS) -> Located:
    """Decode the body of an item that is a raw frame."""
    item = entry.item
    row = item.decode(limits) if isinstance(item, RawFrame) else item
    result: Located = _make(Located, (entry.connection, entry.client, entry.broker, row))
    return result


def _handle_event(
    conversation: Conversation, event: Gap | Conflict | Discarded | Closed
) -> list[Item]:
    match event:
        case Gap(side=side, length=length, packet=packet, time_ns=time_ns):
            return conversation.take_gap(side, length, packet, time_ns, event.reason)
        case Conflict(length=length, packet=packet, time_ns=time_ns):
            reason = "retransmission with different bytes; the first ones are kept"
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
    """Decode a capture file, or a stream that is still being written; rows are yielded as soon as
    they are complete.

    ports, brokers: as in `Engine`. watch: called with the progress. Raises BadMagic or
    TruncatedCapture if the source is not a capture; ValueError as Engine does.
    """
    items = read_raw_frames(
        source,
        ports=ports,
        limits=limits,
        reassembly=reassembly,
        brokers=brokers,
        watch=watch,
    )
    for item in items:
        yield located(item, limits)


def read_raw_frames(
    source: str | Path | BinaryIO,
    *,
    ports: Collection[int] = (),
    limits: Limits = DEFAULT_LIMITS,
    reassembly: ReassemblyLimits = DEFAULT_REASSEMBLY,
    brokers: Collection[str] = (),
    watch: Watch | None = None,
) -> Iterator[LocatedItem]:
    """Read a capture as `decode_capture` does, but leave bodies undecoded: `located` decodes them,
    also in another process (see `frames.serialised`).
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
    """Do as `read_raw_frames`, in batches."""
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
        yield [_problem(problem, packets) for problem in problems]


def _problem(problem: CaptureError, packets: int) -> LocatedItem:
    return LocatedItem(None, None, None, Row(packets, 0, "", 0, Status.UNREADABLE, str(problem)))

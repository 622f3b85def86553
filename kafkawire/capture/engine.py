"""Decodes the segments of a capture into located items: combines TCP flows and conversations.

Content never raises and never stops the rest. An engine that continues from a snapshot makes
the items that the other one would have made.

    segments --> Reassembler --> events --> Conversation, one per connection --> located items
                  `-- ProxyLayer: what is behind proxies --^
                                 `-- TlsLayer: plaintext --^
"""

# over 300 lines: two native classes on the way of every frame

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Final, final

from librt.strings import read_i64_le
from mypy_extensions import i64

from ..primitives import DEFAULT_LIMITS, Limits
from .copies import Beginning, Copies, Copy
from .exchanges.conversation import Conversation, Frame
from .exchanges.in_flight import Total
from .frames.apis import KAFKA_APIS, apis_of
from .frames.decoding import InFlightRequest, Item, LocatedItem
from .frames.in_order import AVAILABLE, FULL, UNTRACKED, InOrderFrames
from .packets.segment_rows import SegmentRows
from .proxy.layer import ProxyLayer
from .proxy.messages import FIRST
from .rows import Row
from .snapshot import dump, load
from .tcp.connection import Connection, Run, endpoint
from .tcp.events import Closed, Event, Gap
from .tcp.limits import DEFAULT_REASSEMBLY, ReassemblyLimits
from .tcp.reassembly import Reassembler
from .tls.keylog import KeyLog
from .tls.layer import TlsLayer
from .tls.outputs import Negotiated, Unsynchronised
from .tls.record_types import CONTENT_TYPES
from .tracking import track, untrack

if TYPE_CHECKING:
    from .packets.segments import Segments

FRAME_BYTES: Final = 32
"""Bytes of the numbers of a frame in order: slot, side, packet, time."""

BATCH_ROWS: Final = 512
BATCH_BYTES: Final = 1 << 17
"""Rows, or bytes of payload, in a batch at most."""


@final
class Engine:
    """Decodes a capture: segments in, located items out.

    ports, brokers: known ports of brokers, and brokers as `address:port`; otherwise Kafka is
    detected on any port. Raises ValueError for an invalid `address:port`.
    on_end: called for each closed connection after its last item, with the side that was the
    client. by_packet: items identify connections by their first packets, not by number.
    key_log: the secrets of TLS connections; keys may be added to it before their connections.
    package: the import name of the messages' package; None for Kafka's.
    copies: finds connections that were captured twice, and their messages are left out; None: they
    are as any other.
    """

    def __init__(  # noqa: PLR0913 - options of a reader, by name
        self,
        ports: Collection[int] = (),
        limits: Limits = DEFAULT_LIMITS,
        reassembly: ReassemblyLimits = DEFAULT_REASSEMBLY,
        on_end: Callable[[Connection, int], None] | None = None,
        brokers: Collection[str] = (),
        by_packet: bool = False,
        key_log: KeyLog | None = None,
        package: str | None = None,
        copies: Copies | None = None,
    ) -> None:
        self.ports = frozenset(ports)
        self.brokers = frozenset(map(endpoint, brokers))
        self.on_end = on_end
        self.by_packet = by_packet
        self.limits = limits
        self._apis = KAFKA_APIS if package is None else apis_of(package)
        self._copies = copies
        self.key_log = KeyLog() if key_log is None else key_log
        self._reassembler = Reassembler(reassembly)
        self._total: Total[InFlightRequest] = Total()
        self._conversations: dict[Connection, LocatedConversation] = {}
        self._rows: SegmentRows | None = None
        self._next: i64 = 0
        self._events: list[Event] = []
        self._handled: i64 = 0
        self._ended: Connection | None = None
        self._in_order: InOrderFrames | None = None
        if AVAILABLE:
            self._in_order = InOrderFrames(
                limits.max_frame_bytes, reassembly.remembered_bytes, reassembly.max_window_bytes
            )
        self._tracked: dict[int, LocatedConversation] = {}  # by slot
        self._candidates: list[LocatedConversation] = []

    @property
    def connections(self) -> list[Connection]:
        """The connections that may still get items: open ones, and closed ones with late packets.

        A closed connection is dropped when another one begins between the same endpoints.
        """
        self._untrack_all()
        return self._reassembler.connections

    def handle(self, segments: Segments | SegmentRows | None) -> Iterator[list[LocatedItem]]:
        """Handle the next segments of the capture, or with None its end; yield items in batches.

        Segments are in packet order. At the end, buffered data is flushed as rows. The bodies of
        messages stay undecoded: `frames.decoding.located` decodes them.
        """
        if segments is None:
            self._untrack_all()
            self._rows, self._next = None, 0
            self._events, self._handled = self._reassembler.handle(None), 0
        else:
            rows = segments if isinstance(segments, SegmentRows) else segments.rows()
            self._rows, self._next = rows, 0
        while True:
            batch: list[LocatedItem] = []
            ended = self._fill(batch)
            if batch:
                yield batch
            if ended is not None and self.on_end is not None:
                conversation = self._conversations.pop(ended).conversation
                self.on_end(ended, conversation.client or 0)
            elif self._rows is None and self._handled == len(self._events):
                return

    def snapshot(self) -> bytes:
        """Return the state of all connections, for `restore` in this or another process.

        The state has a version (`snapshot.STATE_VERSION`); it has neither `on_end` nor the ports
        and brokers, nor the key log or keys, nor copies. Take it when the items of the last
        segments have been read.
        """
        self._untrack_all()
        states = [
            (each.connection, each.conversation, each.proxy, each.tls)
            for each in self._conversations.values()
        ]
        return dump((self._reassembler, self._total, states), key_log=self.key_log)

    def restore(self, state: bytes) -> None:
        """Continue from the state of another engine. Raises StateVersionError, a ValueError."""
        self._untrack_all()
        reassembler, total, states = load(state, key_log=self.key_log)
        self._reassembler = reassembler
        self._total = total
        self._conversations.clear()
        for connection, conversation, proxy, tls in states:
            added = self._add(connection, conversation)
            added.proxy, added.tls = proxy, tls

    def _fill(self, batch: list[LocatedItem]) -> Connection | None:
        """Handle events and segments until the batch is full or all are handled.

        If there is an `on_end`, a batch also ends where a connection closes, which is returned.
        """
        held: i64 = 0
        while held < BATCH_BYTES and len(batch) < BATCH_ROWS:
            if self._handled < len(self._events):
                held += self._handle(batch, BATCH_BYTES - held)
                ended, self._ended = self._ended, None
                if ended is not None:
                    return ended
                if self._in_order is not None and self._handled == len(self._events):
                    self._track(self._in_order)
                continue
            rows = self._rows
            if rows is None:
                break
            end: i64 = len(rows)
            if self._next == end:  # the limits of all connections
                if self._reassembler.table.exceeds_limits():
                    self._untrack_all()
                self._rows = None
                self._events, self._handled = self._reassembler.handle(rows, end, end), 0
            elif self._in_order is None:
                self._rows, self._next = None, end
                self._events, self._handled = self._reassembler.handle(rows), 0
            else:
                held += self._cut(self._in_order, rows, held, batch)
        return None

    def _handle(self, batch: list[LocatedItem], room: i64) -> i64:
        """Handle events until the batch is full; return the bytes of their runs.

        If there is an `on_end`, it ends also where a connection closes.
        """
        has_callback, tracks = self.on_end is not None, self._in_order is not None
        events, index = self._events, self._handled
        held: i64 = 0
        end: i64 = len(events)
        state: LocatedConversation | None = None
        while index < end and held < room and len(batch) < BATCH_ROWS:
            event = events[index]
            index += 1
            if state is None or state.connection is not event.connection:
                state = self._state_of(event.connection)
            if isinstance(event, Run):
                held += len(event.data)
                if not state.has_begun:
                    state.begin(self._copies)
                state.handle_run(event, batch)
                if tracks and not state.is_candidate:
                    state.is_candidate = True
                    self._candidates.append(state)
                continue
            if isinstance(event, Closed) and state.defers(event):
                continue
            state.handle_other(event, batch)
            if isinstance(event, Closed):
                deferred = state.deferred()
                if deferred:
                    events[index:index] = deferred
                    end = len(events)
                if has_callback:
                    self._ended = event.connection
                    break
                del self._conversations[event.connection]
                state = None
        self._handled = index
        return held

    # -- connections in order: their segments become frames without events

    def _cut(
        self, in_order: InOrderFrames, rows: SegmentRows, held: i64, batch: list[LocatedItem]
    ) -> i64:
        """Handle segments in order, and those that are not until the next one that may be.

        Returns the bytes of frames.
        """
        table, tracked = self._reassembler.table, self._tracked
        left = table.bytes_left()
        next_row, behind, slot, frames, numbers, rest = in_order.cut(
            rows.data,
            rows.keys,
            rows.numbers,
            self._next,
            BATCH_ROWS - len(batch),
            BATCH_BYTES - held,
            left,
        )
        table.add_delivered(left - rest)
        cut: i64 = 0
        row: i64 = 0
        for frame in frames:
            state = tracked[read_i64_le(numbers, row)]
            side, packet = read_i64_le(numbers, row + 8), read_i64_le(numbers, row + 16)
            event = Frame(side, frame, packet, read_i64_le(numbers, row + 24))
            for item in state.conversation.handle(event):
                if state.is_plain:
                    batch.append(state.locate(item, packet))
                else:
                    state.pass_on(item, packet, batch)
            cut += len(frame)
            row += FRAME_BYTES
        self._next = next_row
        if slot != FULL:
            if slot != UNTRACKED:
                self._untrack(in_order, slot)
            if rows.payload_bytes(next_row, behind) > rest:
                self._untrack_all()
            self._next = behind
            self._events, self._handled = self._reassembler.handle(rows, next_row, behind), 0
        return cut

    def _track(self, in_order: InOrderFrames) -> None:
        """Track the connections whose events were handled, if they are in order."""
        table = self._reassembler.table
        for state in self._candidates:
            state.is_candidate = False
            proxy = state.proxy
            is_plain = state.tls is None and (proxy is None or proxy.is_done)
            if state.slot == UNTRACKED and is_plain:
                slot = track(in_order, table, state.connection, state.conversation)
                if slot != UNTRACKED:
                    state.slot = slot
                    self._tracked[slot] = state
        self._candidates.clear()

    def _untrack(self, in_order: InOrderFrames, slot: i64) -> None:
        state, table = self._tracked.pop(slot), self._reassembler.table
        untrack(in_order, slot, table, state.connection, state.conversation)
        state.slot = UNTRACKED

    def _untrack_all(self) -> None:
        if self._in_order is not None:
            for slot in [*self._tracked]:
                self._untrack(self._in_order, slot)

    # -- conversations

    def _state_of(self, connection: Connection) -> LocatedConversation:
        state = self._conversations.get(connection)
        if state is None:
            state = self._add(connection, self._new_conversation(connection))
        return state

    def _add(self, connection: Connection, conversation: Conversation) -> LocatedConversation:
        number = connection.first_packet if self.by_packet else connection.id
        located = self._conversations[connection] = LocatedConversation(
            connection, number, conversation, self.key_log
        )
        return located

    def _new_conversation(self, connection: Connection) -> Conversation:
        broker = self._broker(connection)
        return Conversation(
            client=connection.client if broker is None else 1 - broker,
            in_sync=tuple(connection.syn_seen),
            known_kafka=broker is not None,
            limits=self.limits,
            apis=self._apis,
            total=self._total,
        )

    def _broker(self, connection: Connection) -> int | None:
        """Return the side that is known to be a broker, if exactly one is."""
        if not self.ports and not self.brokers:
            return None
        matching = [
            side
            for side, end in enumerate(connection.endpoints)
            if end.port in self.ports or end in self.brokers
        ]
        return matching[0] if len(matching) == 1 else None


@final
class LocatedConversation:
    """The conversation of a connection, whose items get its number and its endpoints as text."""

    def __init__(
        self, connection: Connection, number: int, conversation: Conversation, key_log: KeyLog
    ) -> None:
        self.connection: Connection = connection
        self._number: int | None = number
        self.conversation: Conversation = conversation
        self.proxy: ProxyLayer | None = None
        self.tls: TlsLayer | None = None
        self.slot: int = UNTRACKED
        self.is_candidate: bool = False
        self.has_begun: bool = False
        self.is_plain: bool = True
        self._copy: Copy | None = None
        self._beginning: Beginning | None = None
        self._key_log: KeyLog = key_log
        self._side: i64 = -1
        self._client: str = ""
        self._broker: str = ""

    def handle_run(self, run: Run, batch: list[LocatedItem]) -> None:
        """Handle bytes of a side; append the items to the batch."""
        if self.tls is not None:
            self._through_tls(run, batch)
            return
        proxy, conversation = self.proxy, self.conversation
        if proxy is not None and not proxy.is_done:
            self._through_proxy(proxy, run, run.known, batch)
            return
        if run.position <= (0 if proxy is None else proxy.start) and conversation.is_fresh:
            first = run.data[0]
            if proxy is None and first in FIRST:
                self.proxy = ProxyLayer()
                self._through_proxy(self.proxy, run, run.known, batch)
                return
            if first in CONTENT_TYPES:
                self.tls = TlsLayer(self._key_log)
                self._through_tls(run, batch)
                return
        for item in conversation.handle(run):
            self.pass_on(item, run.known, batch)

    def handle_other(self, event: Event, batch: list[LocatedItem]) -> None:
        """Handle an event that is not bytes of a side; append the items to the batch."""
        proxy = self.proxy
        if proxy is not None and not proxy.is_done and isinstance(event, Gap | Closed):
            self._through_proxy(proxy, event, event.packet, batch)
            if isinstance(event, Gap):
                return
        self._handle_other(event, batch)

    def _handle_other(self, event: Event, batch: list[LocatedItem]) -> None:
        tls, packet = self.tls, event.packet
        if tls is not None and isinstance(event, Gap):
            self._through_tls(event, batch)
            return
        if tls is not None and isinstance(event, Closed):
            self._pass(tls.close(event), packet, batch)
        for item in self.conversation.handle(event):
            self.pass_on(item, packet, batch)
        if tls is not None and isinstance(event, Closed):
            self._pass([*tls.closed(event)], packet, batch)
        if self._copy is not None and isinstance(event, Closed):
            self._end_copy(self._copy, event, batch)

    def _through_proxy(
        self, proxy: ProxyLayer, event: Run | Gap | Closed, known_at: i64, batch: list[LocatedItem]
    ) -> None:
        """Pass on what is behind the messages of proxies."""
        for each in proxy.handle(event):
            self._side = -1  # the client may have got its real address
            if isinstance(each, Run):
                self.handle_run(each, batch)
            elif isinstance(each, Gap):
                self._handle_other(each, batch)
            elif isinstance(each, Row):
                batch.append(self.locate(each, known_at))
            else:
                self.conversation.handle(each)

    def _through_tls(self, event: Run | Gap, batch: list[LocatedItem]) -> None:
        tls, conversation = self.tls, self.conversation
        assert tls is not None
        fed = tls.handle(event)
        if tls.is_tls and conversation.is_fresh and tls.client is not None:
            conversation.handle(Negotiated(tls.client))
        if tls.is_tls is False:
            self.tls = None
        self._pass(fed, event.known if isinstance(event, Run) else event.packet, batch)

    def _pass(
        self,
        passed: list[Run | Row | Unsynchronised | Gap],
        known_at: i64,
        batch: list[LocatedItem],
    ) -> None:
        """Pass on what came out of TLS: plaintext to the conversation, rows to the batch."""
        conversation = self.conversation
        for each in passed:
            if isinstance(each, Row):
                self.pass_on(each, known_at, batch)
                continue
            for item in conversation.handle(each):
                self.pass_on(item, known_at, batch)

    # -- connections that were captured twice

    def begin(self, copies: Copies | None) -> None:
        """Begin as a copy of another connection, or as one that may have copies."""
        self.has_begun = True
        if copies is None:
            return
        self.is_plain = False
        begun = copies.begin(self.connection)
        if isinstance(begun, Copy):
            self._copy = begun
        else:
            self._beginning = begun

    def pass_on(self, item: Item, known_at: i64, batch: list[LocatedItem]) -> None:
        """Append an item to the batch, unless the connection is a copy and the original has it."""
        if self._copy is not None:
            for passed in self._copy.handle_copy(item):
                batch.append(self.locate(passed, known_at))
            return
        if self._beginning is not None:
            self._beginning.handle(item)
            if self._beginning.is_over and not self._beginning.copies:
                self._beginning = None
                self.is_plain = True
        batch.append(self.locate(item, known_at))

    def defers(self, closed: Closed) -> bool:
        """Whether the connection ends only with its original, for whose messages its own wait."""
        return self._copy is not None and self._copy.defers(closed)

    def deferred(self) -> list[Closed]:
        """Return the ends of copies that waited for this one."""
        return [] if self._beginning is None else self._beginning.close()

    def _end_copy(self, copy: Copy, closed: Closed, batch: list[LocatedItem]) -> None:
        for item in copy.finish():
            batch.append(self.locate(item, closed.packet))
        self.connection.repeated_bytes += copy.bytes
        row = copy.row(closed.packet, closed.time_ns)
        if row is not None:
            batch.append(self.locate(row, closed.packet))

    def locate(self, item: Item, known_at: i64) -> LocatedItem:
        """Add the connection to an item.

        The endpoints are formatted again only if client and broker turn out to be swapped.
        """
        client = self.conversation.client
        side: i64 = 0 if client is None else client
        if side != self._side:
            connection = self.connection
            self._side = side
            self._client, self._broker = connection.name(side), connection.name(1 - side)
        return LocatedItem(self._number, self._client, self._broker, item, known_at)

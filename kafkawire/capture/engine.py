"""Decodes the segments of a capture into located items: combines TCP flows and conversations.

Law: content never raises and never stops the rest. An engine that continues from a snapshot makes
the items that the other one would have made.

    segments --> Reassembler --> events --> Conversation, one per connection --> located items
                                   `-- TlsLayer: plaintext --^
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from ..primitives import DEFAULT_LIMITS, Limits
from .exchanges.conversation import Conversation
from .frames.apis import KAFKA_APIS, apis_of
from .frames.decoding import Item, LocatedItem
from .packets.segment_rows import SegmentRows
from .rows import Row
from .snapshot import dump, load
from .tcp.connection import Connection, Endpoint, Run
from .tcp.events import Closed, Event, Gap
from .tcp.limits import DEFAULT_REASSEMBLY, ReassemblyLimits
from .tcp.reassembly import Reassembler
from .tls.keylog import KeyLog
from .tls.layer import TlsLayer
from .tls.outputs import Negotiated, Unsynchronised
from .tls.record_types import CONTENT_TYPES

if TYPE_CHECKING:
    from .packets.segments import Segments

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


@final
class Engine:
    """Decodes a capture: segments in, located items out.

    ports, brokers: known ports of brokers, and brokers as `address:port`; otherwise Kafka is
    detected on any port. Raises ValueError for an invalid `address:port`.
    on_end: called for each closed connection after its last item, with the side that was the
    client. by_packet: items identify connections by their first packets, not by number.
    key_log: the secrets of TLS connections; keys may be added to it before their connections.
    package: the import name of the messages' package; None for Kafka's.
    """

    def __init__(
        self,
        ports: Collection[int] = (),
        limits: Limits = DEFAULT_LIMITS,
        reassembly: ReassemblyLimits = DEFAULT_REASSEMBLY,
        on_end: Callable[[Connection, int], None] | None = None,
        brokers: Collection[str] = (),
        by_packet: bool = False,
        key_log: KeyLog | None = None,
        package: str | None = None,
    ) -> None:
        self.ports = frozenset(ports)
        self.brokers = frozenset(map(endpoint, brokers))
        self.on_end = on_end
        self.by_packet = by_packet
        self.limits = limits
        self._apis = KAFKA_APIS if package is None else apis_of(package)
        self.key_log = KeyLog() if key_log is None else key_log
        self._reassembler = Reassembler(reassembly)
        self._conversations: dict[Connection, LocatedConversation] = {}

    @property
    def connections(self) -> list[Connection]:
        """The connections that may still get items: open ones, and closed ones with late packets.

        A closed connection is dropped when another one begins between the same endpoints.
        """
        return self._reassembler.connections

    def handle(self, segments: Segments | SegmentRows | None) -> Iterator[list[LocatedItem]]:
        """Handle the next segments of the capture, or with None its end; yield items in batches.

        Segments are in packet order. At the end, buffered data is flushed as rows. The bodies of
        messages stay undecoded: `frames.decoding.located` decodes them.
        """
        events = self._reassembler.handle(segments)
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

    def snapshot(self) -> bytes:
        """Return the state of all connections, for `restore` in this or another process.

        The state has a version (`snapshot.STATE_VERSION`); it has neither `on_end` nor the ports
        and brokers, nor the key log or keys. Take it when the items of the last segments have been
        read.
        """
        states = [
            (each.connection, each.conversation, each.tls) for each in self._conversations.values()
        ]
        return dump((self._reassembler, states), key_log=self.key_log)

    def restore(self, state: bytes) -> None:
        """Continue from the state of another engine. Raises StateVersionError, a ValueError."""
        reassembler, states = load(state, key_log=self.key_log)
        self._reassembler = reassembler
        self._conversations.clear()
        for connection, conversation, tls in states:
            self._add(connection, conversation).tls = tls

    def _handle(self, events: list[Event], start: i64, batch: list[LocatedItem]) -> i64:
        """Handle events from an index on until the batch is full; return the index of the next one.

        If there is an `on_end`, a batch also ends where a connection closes.
        """
        has_callback = self.on_end is not None
        held: i64 = 0
        at = start
        end: i64 = len(events)
        state: LocatedConversation | None = None
        while at < end and held < BATCH_BYTES and len(batch) < BATCH_ROWS:
            event = events[at]
            at += 1
            if state is None or state.connection is not event.connection:
                state = self._state_of(event.connection)
            if isinstance(event, Run):
                held += len(event.data)
                state.handle_run(event, batch)
                continue
            state.handle_other(event, batch)
            if isinstance(event, Closed):
                if has_callback:
                    break
                del self._conversations[event.connection]
                state = None
        return at

    def _state_of(self, connection: Connection) -> LocatedConversation:
        state = self._conversations.get(connection)
        if state is None:
            state = self._add(connection, self._new_conversation(connection))
        return state

    def _add(self, connection: Connection, conversation: Conversation) -> LocatedConversation:
        number = connection.first_packet if self.by_packet else connection.id
        made = self._conversations[connection] = LocatedConversation(
            connection, number, conversation, self.key_log
        )
        return made

    def _new_conversation(self, connection: Connection) -> Conversation:
        broker = self._broker(connection)
        return Conversation(
            client=connection.client if broker is None else 1 - broker,
            in_sync=tuple(connection.syn_seen),
            known_kafka=broker is not None,
            limits=self.limits,
            apis=self._apis,
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
class LocatedConversation:
    """The conversation of a connection, whose items get its number and its endpoints as text."""

    def __init__(
        self, connection: Connection, number: int, conversation: Conversation, key_log: KeyLog
    ) -> None:
        self.connection: Connection = connection
        self._number: int | None = number
        self.conversation: Conversation = conversation
        self.tls: TlsLayer | None = None
        self._key_log: KeyLog = key_log
        self._side: i64 = -1
        self._client: str = ""
        self._broker: str = ""

    def handle_run(self, run: Run, batch: list[LocatedItem]) -> None:
        """Handle bytes of a side; append the items to the batch."""
        if self.tls is not None:
            self._through_tls(run, batch)
            return
        conversation = self.conversation
        if run.position == 0 and run.data[0] in CONTENT_TYPES and conversation.is_fresh:
            self.tls = TlsLayer(self._key_log)
            self._through_tls(run, batch)
            return
        for item in conversation.handle(run):
            batch.append(self.locate(item, run.known))

    def handle_other(self, event: Event, batch: list[LocatedItem]) -> None:
        """Handle an event that is not bytes of a side; append the items to the batch."""
        tls, packet = self.tls, event.packet
        if tls is not None and isinstance(event, Gap):
            self._through_tls(event, batch)
            return
        if tls is not None and isinstance(event, Closed):
            self._pass(tls.close(event), packet, batch)
        for item in self.conversation.handle(event):
            batch.append(self.locate(item, packet))
        if tls is not None and isinstance(event, Closed):
            self._pass([*tls.closed(event)], packet, batch)

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
        self, passed: list[Run | Row | Unsynchronised | Gap], known: i64, batch: list[LocatedItem]
    ) -> None:
        """Pass on what came out of TLS: plaintext to the conversation, rows to the batch."""
        conversation = self.conversation
        for each in passed:
            if isinstance(each, Row):
                batch.append(self.locate(each, known))
                continue
            for item in conversation.handle(each):
                batch.append(self.locate(item, known))

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

"""Finds the messages that end in a packet, and the packets that carried their bytes.

The messages are those that `decode` shows with that packet. The packets of a message are those
that made its bytes contiguous, as TCP reassembly has them: bytes that arrived too early belong to
the packet that filled the gap before them, and retransmissions carry nothing. Bytes inside TLS
belong to the packet that completed their record.

    file --engine--> messages of packet N --TCP reassembly, again--> packets of each message
"""

# over 300 lines: one walk over the packets of one connection

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from .files.source import read_capture
from .frames.decoding import LocatedItem, RawFrame
from .multifile import PacketReader, Traffic
from .proxy.layer import ProxyLayer
from .proxy.messages import FIRST
from .rows import Row
from .tcp.connection import Run
from .tcp.events import Event, Gap
from .tcp.limits import DEFAULT_REASSEMBLY
from .tcp.reassembly import Reassembler
from .tls.keylog import KeyLog, KeySource, as_key_log
from .tls.layer import TlsLayer
from .tls.record_types import CONTENT_TYPES

SIZE: Final = 4


class Boundary(NamedTuple):
    """The first byte of a message that a packet carried. offset: in the message with its size."""

    offset: int
    packet: int


class PacketMessage(NamedTuple):
    """A message of a capture. data: its bytes with the size; b"" if they are not known."""

    located: LocatedItem
    data: bytes
    boundaries: tuple[Boundary, ...]


class Known(NamedTuple):
    """What is known of the brokers and messages, as in `Engine`.

    keylog, tunnels: as in `Traffic`.
    """

    ports: Collection[int] = ()
    brokers: Collection[str] = ()
    keylog: KeySource = None
    package: str | None = None
    tunnels: Sequence[str] = ()


class Search:
    """Searches a capture file for messages by packet.

    packets: the number of packets read. before, after: the packets nearest to the one that was
    searched for in which a message ends; 0 for none.
    """

    def __init__(self, path: str, known: Known = Known()) -> None:  # noqa: B008 - immutable
        self._path = path
        self._known = known
        self._key_log = as_key_log(known.keylog)
        self.packets = 0
        self.before = self.after = 0

    def packet(self, number: int) -> list[PacketMessage]:
        """Return the messages that end in a packet. Raises CaptureError, OSError."""
        messages: list[LocatedItem] = []
        for batch in self._batches():
            here = [one for one in batch if one.item.packet == number]
            if messages and not here:
                break
            messages += here
            for one in batch:
                self._note(one.item.packet, number)
        return self._with_bytes(messages)

    def exchange(self, number: int) -> list[PacketMessage]:
        """Return both messages of each exchange of which a message ends in a packet."""
        messages: list[LocatedItem] = []
        for batch in self._batches():
            for one in batch:
                self._note(one.item.packet, number)
                if number in (one.item.packet, _request_packet(one)):
                    messages.append(one)
        wanted = {
            (one.connection, request, _correlation_id(one))
            for one in messages
            if (request := _request_packet(one)) not in (None, number)
        }
        if wanted:
            messages = [
                one
                for batch in self._batches()
                for one in batch
                if _request_packet(one) is None
                and (one.connection, one.item.packet, _correlation_id(one)) in wanted
            ] + messages
        return self._with_bytes(messages)

    def _note(self, packet: int, number: int) -> None:
        if self.before < packet < number:
            self.before = packet
        if packet > number and not 0 < self.after <= packet:
            self.after = packet

    def _batches(self) -> Iterator[list[LocatedItem]]:
        """Read the messages of the capture."""
        self.packets = self.before = self.after = 0
        traffic = Traffic(
            [self._path],
            self._known.ports,
            brokers=self._known.brokers,
            watch=self._watch,
            keylog=self._key_log,
            package=self._known.package,
            tunnels=self._known.tunnels,
            leave_out_copies=False,
        )
        for batch in traffic.item_batches():
            yield [one for one in batch if one.connection is not None and _is_message(one)]

    def _watch(self, _: int, packets: int) -> None:
        self.packets += packets

    def _with_bytes(self, items: list[LocatedItem]) -> list[PacketMessage]:
        by_side: dict[Side, list[LocatedItem]] = {}
        for one in items:
            side = Side(one.connection, _sender(one), one.item.packet)
            by_side.setdefault(side, []).append(one)
        wanted = {
            side: _Runs(side.sender, side.packet, sum(len(_data(one)) for one in each))
            for side, each in by_side.items()
        }
        if items:
            _read_runs(self._path, wanted, self._key_log, self._known.tunnels)
        by_packet: dict[int, tuple[Boundary, ...]] = {}
        for side, each in by_side.items():
            boundaries = _boundaries(each, wanted[side].runs)
            by_packet |= {id(one): boundary for one, boundary in zip(each, boundaries, strict=True)}
        return [PacketMessage(one, _data(one), by_packet[id(one)]) for one in items]


class Side(NamedTuple):
    """Messages that end in one packet: the number of their connection, and who sent them."""

    connection: int | None
    sender: str
    packet: int


def _is_message(one: LocatedItem) -> bool:
    item = one.item
    return isinstance(item, RawFrame) or item.is_message or item.status == "truncated"


def _request_packet(one: LocatedItem) -> int | None:
    item = one.item
    if isinstance(item, Row):
        return item.request_packet
    return None if item.is_request or item.request is None else item.request.packet


def _correlation_id(one: LocatedItem) -> int | None:
    item = one.item
    if isinstance(item, Row):
        return item.correlation_id
    return None if item.request is None else item.request.correlation_id


def _sender(one: LocatedItem) -> str:
    item = one.item
    request = item.direction == "request" if isinstance(item, Row) else item.is_request
    return (one.client if request else one.broker) or ""


def _data(one: LocatedItem) -> bytes:
    """Return the bytes of a message as far as they are known, with the size in front."""
    item = one.item
    if isinstance(item, RawFrame):
        return len(item.frame).to_bytes(SIZE, "big") + item.frame
    if item.status == "truncated":
        return item.length.to_bytes(SIZE, "big", signed=True) + item.raw
    return b""


# -- packets


class _Runs:
    """Keeps the last runs of a side of a connection, up to a packet: at least `size` bytes."""

    def __init__(self, sender: str, packet: int, size: int) -> None:
        self._sender = sender
        self._packet = packet
        self._size = size
        self._kept = 0
        self.runs: deque[Run] = deque()

    def add(self, run: Run) -> None:
        """Handle the next run of the connection."""
        if run.packet > self._packet or run.connection.name(run.side) != self._sender:
            return
        self.runs.append(run)
        self._kept += len(run.data)
        while self._kept - len(self.runs[0].data) - len(run.data) >= self._size:
            self._kept -= len(self.runs.popleft().data)


def _read_runs(
    path: str, wanted: dict[Side, _Runs], key_log: KeyLog, tunnels: Sequence[str]
) -> None:
    """Read the runs of some sides; decrypted where they are TLS."""
    by_connection: dict[int | None, list[_Runs]] = {}
    for side, runs in wanted.items():
        by_connection.setdefault(side.connection, []).append(runs)
    reassembler, packets = Reassembler(DEFAULT_REASSEMBLY), PacketReader(tunnels)
    decryption = {connection: _Decryption(key_log) for connection in by_connection}
    for segments in chain(map(packets.read, read_capture(path).blocks()), [None]):
        for event in reassembler.handle(segments):
            number = event.connection.id
            if number not in by_connection:
                continue
            for run in decryption[number].runs(event):
                for runs in by_connection[number]:
                    runs.add(run)


class _Decryption:
    """Turns the bytes of a connection into its plaintext, as `Engine` does; others stay.

    What proxies send in front of it is left out.
    """

    def __init__(self, key_log: KeyLog) -> None:
        self._key_log = key_log
        self._proxy: ProxyLayer | None = None
        self._tls: TlsLayer | None = None
        self._is_fresh = True

    def runs(self, event: Event) -> list[Run]:
        """Return the plaintext that is known after an event of the connection."""
        if not isinstance(event, Run | Gap):
            return []
        if self._proxy is None and isinstance(event, Run):
            first = event.position == 0 and event.data[0] in FIRST
            if first and self._tls is None and self._is_fresh:
                self._proxy = ProxyLayer()
        self._is_fresh = False
        if self._proxy is None:
            return self._decrypted(event)
        passed = (each for each in self._proxy.handle(event) if isinstance(each, Run | Gap))
        return [run for each in passed for run in self._decrypted(each)]

    def _decrypted(self, event: Run | Gap) -> list[Run]:
        start = 0 if self._proxy is None else self._proxy.start
        if isinstance(event, Run) and event.position <= start and event.data[0] in CONTENT_TYPES:
            self._tls = self._tls or TlsLayer(self._key_log)
        if self._tls is None:
            return [event] if isinstance(event, Run) else []
        passed = self._tls.handle(event)
        if self._tls.is_tls is False:
            self._tls = None
        return [each for each in passed if isinstance(each, Run)]


def _boundaries(messages: list[LocatedItem], runs: Iterable[Run]) -> list[tuple[Boundary, ...]]:
    """Find the packets of consecutive messages of one side in the runs up to their last packet."""
    starts: list[Boundary] = []
    parts: list[bytes] = []
    offset = 0
    for run in runs:
        starts.append(Boundary(offset, run.packet))
        parts.append(run.data)
        offset += len(run.data)
    stream = b"".join(parts)
    end = len(stream)
    all_boundaries: list[tuple[Boundary, ...]] = []
    for one in reversed(messages):
        data = _data(one)
        start = stream.rfind(data, 0, end) if data else -1
        if start < 0:
            all_boundaries.append((Boundary(0, one.item.packet),))
            continue
        end = start
        all_boundaries.append(tuple(_inside(starts, start, start + len(data))))
    return all_boundaries[::-1]


def _inside(starts: list[Boundary], first: int, end: int) -> Iterator[Boundary]:
    """Yield the packets of the bytes from `first` to `end`."""
    for index, (start, packet) in enumerate(starts):
        stop = starts[index + 1].offset if index + 1 < len(starts) else 1 << 62
        if start < end and stop > first and stop > start:
            yield Boundary(max(start - first, 0), packet)

"""Finds the messages that end in a packet, and the packets that carried their bytes.

Law: the messages are those that `decode` shows with that packet. The packets of a message are those
that made its bytes contiguous, as TCP reassembly has them: bytes that arrived too early belong to
the packet that filled the gap before them, and retransmissions carry nothing.

    file --engine--> messages of packet N --TCP reassembly, again--> where each packet begins in them
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from .files.source import read_capture
from .frames.decoding import LocatedItem, RawFrame
from .multifile import Traffic
from .packets.parser import PacketParser
from .rows import Row
from .tcp.connection import Run
from .tcp.limits import DEFAULT_REASSEMBLY
from .tcp.reassembly import Reassembler

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
    """What is known of the brokers, as in `Engine`."""

    ports: Collection[int] = ()
    brokers: Collection[str] = ()


class Search:
    """Searches a capture file for messages by packet.

    packets: the number of packets read. before, after: the packets nearest to the one that was
    searched for in which a message ends; 0 for none.
    """

    def __init__(self, path: str, known: Known = Known()) -> None:  # noqa: B008 - immutable
        self._path = path
        self._known = known
        self.packets = 0
        self.before = self.after = 0

    def packet(self, number: int) -> list[PacketMessage]:
        """Return the messages that end in a packet. Raises CaptureError, OSError."""
        found: list[LocatedItem] = []
        for batch in self._batches():
            here = [one for one in batch if one.item.packet == number]
            if found and not here:
                break
            found += here
            for one in batch:
                self._note(one.item.packet, number)
        return self._with_bytes(found)

    def exchange(self, number: int) -> list[PacketMessage]:
        """Return both messages of each exchange of which a message ends in a packet."""
        found: list[LocatedItem] = []
        for batch in self._batches():
            for one in batch:
                self._note(one.item.packet, number)
                if number in (one.item.packet, _request_packet(one)):
                    found.append(one)
        wanted = {
            (one.connection, request, _correlation_id(one))
            for one in found
            if (request := _request_packet(one)) not in (None, number)
        }
        if wanted:
            found = [
                one
                for batch in self._batches()
                for one in batch
                if _request_packet(one) is None
                and (one.connection, one.item.packet, _correlation_id(one)) in wanted
            ] + found
        return self._with_bytes(found)

    def _note(self, packet: int, number: int) -> None:
        if self.before < packet < number:
            self.before = packet
        if packet > number and not 0 < self.after <= packet:
            self.after = packet

    def _batches(self) -> Iterator[list[LocatedItem]]:
        """Read the messages of the capture."""
        self.packets = self.before = self.after = 0
        traffic = Traffic(
            [self._path], self._known.ports, brokers=self._known.brokers, watch=self._watch
        )
        for batch in traffic.item_batches():
            yield [one for one in batch if one.connection is not None and _is_message(one)]

    def _watch(self, _: int, packets: int) -> None:
        self.packets += packets

    def _with_bytes(self, found: list[LocatedItem]) -> list[PacketMessage]:
        by_side: dict[tuple[int | None, str, int], list[LocatedItem]] = {}
        for one in found:
            by_side.setdefault((one.connection, _sender(one), one.item.packet), []).append(one)
        sides = {key: sum(len(_data(one)) for one in each) for key, each in by_side.items()}
        runs = _runs(self._path, sides)
        made: dict[int, tuple[Boundary, ...]] = {}
        for key, each in by_side.items():
            for one, boundaries in zip(each, _boundaries(each, runs[key]), strict=True):
                made[id(one)] = boundaries
        return [PacketMessage(one, _data(one), made[id(one)]) for one in found]


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


def _runs(
    path: str, wanted: dict[tuple[int | None, str, int], int]
) -> dict[tuple[int | None, str, int], list[Run]]:
    """Return the last runs of some sides of connections, up to a packet.

    wanted: connection, sender and packet -> how many bytes the runs must have at least.
    """
    reassembler, parser = Reassembler(DEFAULT_REASSEMBLY), PacketParser()
    kept: dict[tuple[int | None, str, int], deque[Run]] = {key: deque() for key in wanted}
    sizes = dict.fromkeys(wanted, 0)
    by_connection: dict[int | None, list[tuple[int | None, str, int]]] = {}
    for key in wanted:
        by_connection.setdefault(key[0], []).append(key)

    def keep(run: Run) -> None:
        for key in by_connection.get(run.connection.id, ()):
            if run.packet > key[2] or run.connection.name(run.side) != key[1]:
                continue
            runs = kept[key]
            runs.append(run)
            sizes[key] += len(run.data)
            while sizes[key] - len(runs[0].data) - len(runs[-1].data) >= wanted[key]:
                sizes[key] -= len(runs.popleft().data)

    for block in read_capture(path):
        for event in reassembler.handle(parser.parse(block)):
            if isinstance(event, Run):
                keep(event)
    for event in reassembler.handle(None):
        if isinstance(event, Run):
            keep(event)
    return {key: list(runs) for key, runs in kept.items()}


def _boundaries(messages: list[LocatedItem], runs: list[Run]) -> list[tuple[Boundary, ...]]:
    """Find the packets of consecutive messages of one side in the runs up to their last packet."""
    stream = b"".join(run.data for run in runs)
    starts: list[Boundary] = []
    at = 0
    for run in runs:
        starts.append(Boundary(at, run.packet))
        at += len(run.data)
    end = len(stream)
    found: list[tuple[Boundary, ...]] = []
    for one in reversed(messages):
        data = _data(one)
        start = stream.rfind(data, 0, end) if data else -1
        if start < 0:
            found.append((Boundary(0, one.item.packet),))
            continue
        end = start
        found.append(tuple(_inside(starts, start, start + len(data))))
    return found[::-1]


def _inside(starts: list[Boundary], first: int, end: int) -> Iterator[Boundary]:
    """Yield the packets of the bytes from `first` to `end`."""
    for at, (start, packet) in enumerate(starts):
        stop = starts[at + 1].offset if at + 1 < len(starts) else 1 << 62
        if start < end and stop > first and stop > start:
            yield Boundary(max(start - first, 0), packet)

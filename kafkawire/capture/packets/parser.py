"""Parses packet blocks into TCP segments, as columns; reassembles IP fragments.

Law: every packet of a block becomes a segment, or is counted by the reason why it does not. Of
fragments, the first with a byte wins; incomplete datagrams are bounded in bytes and number, and
dropped fragments are counted.

    PacketBlock --link types--> [Layer] --decode_header, repeatedly--> TCP --> Segments
                                             `--> fragments --reassembled--> TCP

Source of fragments: RFC 791, RFC 8200 section 4.5.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from ...errors import CaptureError, UnsupportedLinkType
from ..files.blocks import Block, PacketBlock
from ..files.columns import Ints, kinds, take_rows
from .headers import ENDS, HEADERS, LINKS, PROTOCOLS4, PROTOCOLS6, Kind
from .layers import Addresses, Layer, complete_headers, decode_header
from .segments import Segments

MAX_WAITING: Final = 1024
MAX_BYTES: Final = 1 << 23
MAX_DATAGRAM: Final = 1 << 16


class Fragment(NamedTuple):
    """A fragment of the datagram `key`; offset: in bytes; last: whether it is the last one."""

    key: tuple[int, ...]
    offset: int
    last: bool
    payload: bytes


@dataclass(slots=True)
class _Datagram:
    fragments: dict[int, bytes] = field(default_factory=dict)
    size: int = -1

    def payload(self) -> bytes | None:
        if self.size < 0:
            return None
        out = bytearray()
        for offset in sorted(self.fragments):
            if offset > len(out):
                return None
            out += self.fragments[offset][len(out) - offset :]
        return bytes(out[: self.size]) if len(out) >= self.size else None


class Defragmenter:
    """Reassembles datagrams. dropped: fragments dropped because of the limits."""

    def __init__(self, max_waiting: int = MAX_WAITING, max_bytes: int = MAX_BYTES) -> None:
        self.dropped = 0
        self._max_waiting = max_waiting
        self._max_bytes = max_bytes
        self._bytes = 0
        self._waiting: dict[tuple[int, ...], _Datagram] = {}

    def add(self, fragment: Fragment) -> bytes | None:
        """Add a fragment; return the datagram's payload when it is complete."""
        if fragment.offset + len(fragment.payload) > MAX_DATAGRAM:
            self.dropped += 1
            return None
        datagram = self._waiting.setdefault(fragment.key, _Datagram())
        if len(datagram.fragments.get(fragment.offset, b"")) < len(fragment.payload):
            self._bytes += len(fragment.payload) - len(datagram.fragments.get(fragment.offset, b""))
            datagram.fragments[fragment.offset] = fragment.payload
        if fragment.last:
            datagram.size = fragment.offset + len(fragment.payload)
        payload = datagram.payload()
        if payload is not None:
            self._remove(fragment.key)
        while len(self._waiting) > self._max_waiting or self._bytes > self._max_bytes:
            oldest = next(iter(self._waiting))
            self.dropped += len(self._waiting[oldest].fragments)
            self._remove(oldest)
        return payload

    def _remove(self, key: tuple[int, ...]) -> None:
        datagram = self._waiting.pop(key)
        self._bytes -= sum(map(len, datagram.fragments.values()))


class PacketParser:
    """Parses the TCP segments of packet blocks; stores only IP fragments between blocks.

    skipped: packets without a segment, by kind. problems: unsupported link types, once each.
    """

    def __init__(self) -> None:
        self.skipped: Counter[Kind] = Counter()
        self.problems: list[CaptureError] = []
        self.defragmenter = Defragmenter()
        self._unread: set[int] = set()

    def parse(self, packets: Block) -> Segments:
        """Parse the segments of a block."""
        block = packets.columns()
        addresses = Addresses(len(block))
        ends = self._descend(block.data, self._links(block), addresses)
        data = block.data
        pieces = ends.pop(Kind.FRAGMENT4, []) + ends.pop(Kind.FRAGMENT6, [])
        tcp = ends.pop(Kind.TCP, [])
        if pieces:
            whole, data = self._reassemble(data, pieces, addresses)
            inner = self._descend(data, whole, addresses)
            tcp += inner.pop(Kind.TCP, [])
            self._count(inner)
        self._count(ends)
        return self._segments(block, data, tcp, addresses)

    def _count(self, ends: dict[Kind, list[Layer]]) -> None:
        for kind, layers in ends.items():
            self.skipped[kind] += sum(len(layer.rows) for layer in layers)

    def _links(self, block: PacketBlock) -> list[Layer]:
        layers = []
        everything = np.arange(len(block))
        for link in kinds(block.link):
            rows = everything[block.link == link]
            if link not in LINKS and link not in self._unread:
                self._unread.add(link)
                where = block.position + int(block.start[rows[0]])
                self.problems.append(UnsupportedLinkType(f"unsupported link type {link}", where))
            start = block.start[rows]
            layers.append(
                Layer(
                    LINKS.get(link, Kind.LINK_TYPE),
                    rows,
                    start,
                    start + block.captured[rows],
                    start + block.original[rows],
                )
            )
        return layers

    def _descend(
        self, data: bytes, layers: list[Layer], addresses: Addresses
    ) -> dict[Kind, list[Layer]]:
        ends: dict[Kind, list[Layer]] = {}
        while layers:
            layer = layers.pop()
            if layer.kind <= ENDS:
                ends.setdefault(layer.kind, []).append(layer)
            else:
                layers += decode_header(data, layer, addresses)
        return ends

    def _reassemble(
        self, data: bytes, pieces: list[Layer], addresses: Addresses
    ) -> tuple[list[Layer], bytes]:
        """Reassemble fragments; append complete datagrams to the data, return them as layers."""
        order = sorted(
            ((row, layer, i) for layer in pieces for i, row in enumerate(layer.rows.tolist())),
            key=lambda item: item[0],
        )
        layers = []
        extra = [data]
        end = len(data)
        for row, layer, i in order:
            found = _fragment(data, layer, i, addresses)
            if found is None:
                self.skipped[Kind.CUT] += 1
                continue
            fragment, protocol = found
            payload = self.defragmenter.add(fragment)
            if payload is None:
                self.skipped[layer.kind] += 1
                continue
            at, end = end, end + len(payload)
            extra.append(payload)
            rows, starts, stops = np.array([row]), np.array([at]), np.array([end])
            layers.append(Layer(protocol, rows, starts, stops, stops, layer.inside, layer.depth))
        return layers, b"".join(extra)

    def _segments(
        self, block: PacketBlock, data: bytes, layers: list[Layer], addresses: Addresses
    ) -> Segments:
        found = []
        for layer in layers:
            whole, cut = complete_headers(layer)
            found.append(whole)
            self._count({Kind.CUT: cut})
        tcp = _in_packet_order(found)
        headers = take_rows(data, tcp.at, HEADERS[Kind.TCP])
        at = tcp.at + (headers["offset"] >> 4).astype(np.int64) * 4
        valid = (headers["offset"] >= 0x50) & (at <= tcp.stop)
        if not valid.all():
            self.skipped[Kind.MALFORMED] += int((~valid).sum())
            tcp, headers, at = tcp[valid], headers[valid], at[valid]
        rows = tcp.rows
        everything = len(rows) == len(block)
        ports = headers["source"].astype(np.int64) << 16 | headers["destination"]
        original = tcp.stop - at
        return Segments(
            data=data,
            packet=rows + block.first,
            ts=block.ts if everything else block.ts[rows],
            source_high=addresses.source_high[rows],
            source_low=addresses.source_low[rows],
            destination_high=addresses.destination_high[rows],
            destination_low=addresses.destination_low[rows],
            ports=ports,
            seq=headers["seq"].astype(np.int64),
            ack=headers["ack"].astype(np.int64),
            flags=headers["flags"].copy(),
            at=at,
            captured=np.minimum(np.maximum(tcp.end - at, 0), original),
            original=original,
        )


def _in_packet_order(layers: list[Layer]) -> Layer:
    if len(layers) == 1:
        return layers[0]
    none: Ints = np.empty(0, np.int64)
    parts = [Layer(Kind.TCP, none, none, none, none), *layers]
    columns = zip(*((each.rows, each.at, each.end, each.stop) for each in parts), strict=True)
    rows, at, end, stop = map(np.concatenate, columns)
    order = np.argsort(rows, kind="stable")
    return Layer(Kind.TCP, rows[order], at[order], end[order], stop[order])


def _fragment(
    data: bytes, layer: Layer, i: int, addresses: Addresses
) -> tuple[Fragment, Kind] | None:
    """Decode fragment i of a layer, and the protocol of its datagram.

    Returns None if the snaplen truncated it.
    """
    row, at, stop = int(layer.rows[i]), int(layer.at[i]), int(layer.stop[i])
    if stop > layer.end[i]:
        return None
    if layer.kind is Kind.FRAGMENT4:
        if stop - at < 20:
            return None
        word = int.from_bytes(data[at + 6 : at + 8], "big")
        identification = int.from_bytes(data[at + 4 : at + 6], "big")
        start = at + (data[at] & 15) * 4
        offset, more, protocol = (word & 0x1FFF) * 8, bool(word & 0x2000), data[at + 9]
        kind = Kind(int(PROTOCOLS4[protocol]))
    else:
        if stop - at < 8:
            return None
        word = int.from_bytes(data[at + 2 : at + 4], "big")
        identification = int.from_bytes(data[at + 4 : at + 8], "big")
        start = at + 8
        offset, more, protocol = word & 0xFFF8, bool(word & 1), data[at]
        kind = Kind(int(PROTOCOLS6[protocol]))
    key = (
        int(addresses.source_high[row]),
        int(addresses.source_low[row]),
        int(addresses.destination_high[row]),
        int(addresses.destination_low[row]),
        identification,
        protocol,
    )
    return Fragment(key, offset, not more, data[start:stop]), kind

"""Packet blocks -> TCP segments, as columns.

Law: every packet of a block becomes a segment or is counted under the reason why it is none.

    PacketBlock --link types--> [Layer] --take_off, until nothing is left--> TCP --> Segments
                                             `--> fragments --put together--> TCP
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ...errors import CaptureError, UnsupportedLinkType
from ..files.blocks import Ints, Octets, PacketBlock, kinds, take_rows
from .fragments import Defragmenter, Fragment
from .headers import ENDS, HEADERS, LINKS, PROTOCOLS4, PROTOCOLS6, Kind
from .layers import Addresses, Layer, take_off, whole_headers

FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04
ACK: Final = 0x10


@dataclass(frozen=True, slots=True)
class Segments:
    """TCP segments in packet order; row i of every column is segment i.

    data: what `at` points into. packet: 1-based number. ts: nanoseconds. The addresses are 128 bits
    in two halves, IPv4 in its IPv6-mapped form. ports: source << 16 | destination. at: where the
    payload begins. captured: payload bytes there are. original: payload bytes that were sent.
    """

    data: bytes
    packet: Ints
    ts: Ints
    source_high: npt.NDArray[np.uint64]
    source_low: npt.NDArray[np.uint64]
    destination_high: npt.NDArray[np.uint64]
    destination_low: npt.NDArray[np.uint64]
    ports: Ints
    seq: Ints
    ack: Ints
    flags: Octets
    at: Ints
    captured: Ints
    original: Ints

    def __len__(self) -> int:
        return len(self.packet)


class PacketParser:
    """Finds the TCP segments of packet blocks; keeps nothing between blocks but fragments.

    passed_over: packets that are no segments, by kind. problems: link types that are not read, once
    each.
    """

    def __init__(self) -> None:
        self.passed_over: Counter[Kind] = Counter()
        self.problems: list[CaptureError] = []
        self.defragmenter = Defragmenter()
        self._unread: set[int] = set()

    def parse(self, block: PacketBlock) -> Segments:
        """Find the segments of a block."""
        addresses = Addresses(len(block))
        ends = self._descend(block.data, self._links(block), addresses)
        data = block.data
        pieces = ends.pop(Kind.FRAGMENT4, []) + ends.pop(Kind.FRAGMENT6, [])
        tcp = ends.pop(Kind.TCP, [])
        if pieces:
            whole, data = self._put_together(data, pieces, addresses)
            inner = self._descend(data, whole, addresses)
            tcp += inner.pop(Kind.TCP, [])
            self._count(inner)
        self._count(ends)
        return self._segments(block, data, tcp, addresses)

    def _count(self, ends: dict[Kind, list[Layer]]) -> None:
        for kind, layers in ends.items():
            self.passed_over[kind] += sum(len(layer.rows) for layer in layers)

    def _links(self, block: PacketBlock) -> list[Layer]:
        layers = []
        everything = np.arange(len(block))
        for link in kinds(block.link):
            rows = everything[block.link == link]
            if link not in LINKS and link not in self._unread:
                self._unread.add(link)
                where = block.position + int(block.start[rows[0]])
                self.problems.append(UnsupportedLinkType(f"link type {link} is not read", where))
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
                layers += take_off(data, layer, addresses)
        return ends

    def _put_together(
        self, data: bytes, pieces: list[Layer], addresses: Addresses
    ) -> tuple[list[Layer], bytes]:
        """Feed the fragments to the defragmenter; whole datagrams go behind the data, and on from
        there.
        """
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
                self.passed_over[Kind.CUT] += 1
                continue
            fragment, protocol = found
            payload = self.defragmenter.add(fragment)
            if payload is None:
                self.passed_over[layer.kind] += 1
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
            whole, cut = whole_headers(layer)
            found.append(whole)
            self._count({Kind.CUT: cut})
        tcp = _in_packet_order(found)
        headers = take_rows(data, tcp.at, HEADERS[Kind.TCP])
        at = tcp.at + (headers["offset"] >> 4).astype(np.int64) * 4
        sound = (headers["offset"] >= 0x50) & (at <= tcp.stop)
        if not sound.all():
            self.passed_over[Kind.MALFORMED] += int((~sound).sum())
            tcp, headers, at = tcp[sound], headers[sound], at[sound]
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
    rows = np.concatenate([none, *(layer.rows for layer in layers)])
    order = np.argsort(rows, kind="stable")
    return Layer(
        Kind.TCP,
        rows[order],
        np.concatenate([none, *(layer.at for layer in layers)])[order],
        np.concatenate([none, *(layer.end for layer in layers)])[order],
        np.concatenate([none, *(layer.stop for layer in layers)])[order],
    )


def _fragment(
    data: bytes, layer: Layer, i: int, addresses: Addresses
) -> tuple[Fragment, Kind] | None:
    """Read the fragment at place i of a layer, and what its datagram carries; None if the snaplen
    cut it.
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

"""Parses packet blocks into TCP segments, as columns; reassembles IP fragments.

Every packet of a block becomes a segment, or is counted by the reason why it does not; of those
that may carry TCP nonetheless, `undecoded` has the protocol.

    PacketBlock --link types--> [Layer] --descend--> TCP --> Segments
                                   ^        `--> fragments
                                   `--reassembled---'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from ...errors import CaptureError, UnsupportedLinkType
from ..files.blocks import Block, PacketBlock
from ..files.columns import Ints, kinds, take_rows
from .descent import descend
from .fragments import Datagram, Defragmenter, Fragment, FragmentKey
from .headers import HEADERS, PROTOCOLS4, PROTOCOLS6, table
from .kinds import LINKS, Kind, udp_ports
from .layers import Addresses, Decoding, Layer, complete_headers, ended
from .options import mss_of
from .segment_rows import SYN, WINDOW_SHIFT
from .segments import Segments
from .undecoded import NO_NUMBER, Count, Reason, Undecoded

FRAGMENTS: Final = frozenset({Kind.FRAGMENT4, Kind.FRAGMENT6})
UNDECODED: Final = frozenset({Kind.SKIPPED, Kind.CUT, Kind.MALFORMED, Kind.NESTED})

TCP_BYTES: Final = 20
"""Bytes of a TCP header without options."""

MAX_REASSEMBLIES: Final = 8
"""How often what a packet completes may be a fragment again, of a datagram around it."""


class PacketParser:
    """Parses the TCP segments of packet blocks; stores only IP fragments between blocks.

    tunnels: tunnels on other UDP ports, `vxlan:14789`. skipped: packets without a segment, by kind.
    undecoded: those of them that may carry TCP. problems: unsupported link types, once each.
    Raises ValueError for an invalid tunnel.
    """

    def __init__(self, tunnels: Iterable[str] = ()) -> None:
        self.skipped: Counter[Kind] = Counter()
        self.undecoded = Undecoded()
        self.problems: list[CaptureError] = []
        self.defragmenter = Defragmenter(give_up=self._give_up)
        self._unread: set[int] = set()
        self._udp_ports = table(1 << 16, udp_ports(tunnels), Kind.OTHER)

    def parse(self, packets: Block) -> Segments:
        """Parse the segments of a block."""
        block = packets.columns()
        addresses = Addresses(len(block))
        layers, data = self._links(block), block.data
        tcp: list[Layer] = []
        for _ in range(MAX_REASSEMBLIES):
            ends = descend(layers, Decoding(data, addresses, self._udp_ports))
            tcp += [layer for layer in ends if layer.kind is Kind.TCP]
            pieces = [layer for layer in ends if layer.kind in FRAGMENTS]
            self._count(block, ends)
            if not pieces:
                break
            layers, data = self._reassemble(block, data, pieces, addresses)
        else:
            self._count(block, [ended(layer, Kind.NESTED) for layer in layers])
        return self._segments(block, data, tcp, addresses)

    def finish(self) -> None:
        """Count the fragments of incomplete datagrams: the file has ended."""
        self.defragmenter.finish()

    def _count(self, block: PacketBlock, ends: list[Layer]) -> None:
        for layer in ends:
            if layer.kind is not Kind.TCP and layer.kind not in FRAGMENTS:
                self.skipped[layer.kind] += len(layer.rows)
            if layer.kind in UNDECODED:
                self._count_undecoded(block, layer)

    def _count_undecoded(self, block: PacketBlock, layer: Layer) -> None:
        sizes, rows, numbers = block.captured, layer.rows, layer.numbers
        for number in [NO_NUMBER] if numbers is None else kinds(numbers):
            chosen = rows if numbers is None else rows[numbers == number]
            count = Count(len(chosen), int(sizes[chosen].sum()))
            self.undecoded.add(Reason(layer.kind, layer.header, number), count)

    def _give_up(self, key: FragmentKey, datagram: Datagram) -> None:
        """Count the fragments of an incomplete datagram that may have carried TCP."""
        version, protocol = key[0], key[-1]
        carries = Kind(int((PROTOCOLS4 if version == 4 else PROTOCOLS6)[protocol]))
        if carries is Kind.UDP:  # the first fragment has the port
            start = datagram.start
            port = int.from_bytes(start[2:4], "big")
            carries = Kind(int(self._udp_ports[port])) if len(start) >= 4 else Kind.OTHER
        if carries is not Kind.OTHER:
            kind = Kind.FRAGMENT4 if version == 4 else Kind.FRAGMENT6
            count = Count(datagram.count, datagram.bytes)
            self.undecoded.add(Reason(kind, kind, protocol), count)

    def _links(self, block: PacketBlock) -> list[Layer]:
        layers = []
        everything = np.arange(len(block))
        is_empty = (block.original == 0) & (block.captured == 0)
        for link in kinds(block.link):
            rows = everything[(block.link == link) & ~is_empty]
            if link not in LINKS and link not in self._unread:
                self._unread.add(link)
                where = block.position + int(block.start[block.link == link][0])
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

    def _reassemble(
        self, block: PacketBlock, data: bytes, pieces: list[Layer], addresses: Addresses
    ) -> tuple[list[Layer], bytes]:
        """Reassemble fragments; append complete datagrams to the data, return them as layers."""
        order = sorted(
            ((row, layer, i) for layer in pieces for i, row in enumerate(layer.rows.tolist())),
            key=lambda item: item[0],
        )
        extra = [data]
        end = len(data)
        complete: dict[tuple[Kind, Kind, int], list[tuple[int, int, int]]] = {}
        for row, layer, i in order:
            part = _fragment(data, layer, i, addresses)
            if part is None:
                self.skipped[Kind.CUT] += 1
                count = Count(1, int(block.captured[row]))
                self.undecoded.add(Reason(Kind.CUT, layer.kind), count)
                continue
            fragment, carried = part
            payload = self.defragmenter.add(fragment)
            if payload is None:
                self.skipped[layer.kind] += 1
                continue
            start, end = end, end + len(payload)
            extra.append(payload)
            what = carried, layer.header, fragment.key[-1]
            complete.setdefault(what, []).append((row, start, end))
        layers = []
        for (kind, header, protocol), datagrams in complete.items():
            rows, starts, stops = np.array(datagrams, np.int64).T
            numbers: Ints = np.full(len(rows), protocol, np.int64)
            layers.append(Layer(kind, rows, starts, stops, stops, header, numbers))
        return layers, b"".join(extra)

    def _segments(
        self, block: PacketBlock, data: bytes, layers: list[Layer], addresses: Addresses
    ) -> Segments:
        whole_layers = []
        for layer in layers:
            whole, cut = complete_headers(layer)
            whole_layers.append(whole)
            self._count(block, cut)
        tcp = _in_packet_order(whole_layers)
        headers = take_rows(data, tcp.at, HEADERS[Kind.TCP])
        payload = tcp.at + (headers["offset"] >> 4).astype(np.int64) * 4
        valid = (headers["offset"] >= 0x50) & (payload <= tcp.stop)
        if not valid.all():
            self._count(block, [ended(tcp[~valid], Kind.MALFORMED)])
            tcp, headers, payload = tcp[valid], headers[valid], payload[valid]
        rows = tcp.rows
        everything = len(rows) == len(block)
        ports = headers["source"].astype(np.int64) << 16 | headers["destination"]
        original = tcp.stop - payload
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
            flags=_flags(data, headers, tcp, payload),
            at=payload,
            captured=np.minimum(np.maximum(tcp.end - payload, 0), original),
            original=original,
        )


def _flags(data: bytes, headers: npt.NDArray[np.void], tcp: Layer, ends: Ints) -> Ints:
    """Join flags and windows, as `SegmentRows` has them. ends: of the headers."""
    windows = headers["window"].astype(np.int64)
    for row in np.flatnonzero(headers["flags"] & SYN).tolist():
        options = data[int(tcp.at[row]) + TCP_BYTES : min(int(ends[row]), int(tcp.end[row]))]
        windows[row] = mss_of(options)
    flags: Ints = headers["flags"] | windows << WINDOW_SHIFT
    return flags


def _in_packet_order(layers: list[Layer]) -> Layer:
    if len(layers) == 1 and (np.diff(layers[0].rows) > 0).all():
        return layers[0]
    none: Ints = np.empty(0, np.int64)
    parts = [Layer(Kind.TCP, none, none, none, none), *layers]
    columns = zip(*((each.rows, each.at, each.end, each.stop) for each in parts), strict=True)
    rows, starts, end, stop = map(np.concatenate, columns)
    order = np.argsort(rows, kind="stable")
    return Layer(Kind.TCP, rows[order], starts[order], end[order], stop[order])


def _fragment(
    data: bytes, layer: Layer, i: int, addresses: Addresses
) -> tuple[Fragment, Kind] | None:
    """Decode fragment i of a layer, and the protocol of its datagram.

    Returns None if the snaplen truncated it.
    """
    row, header, stop = int(layer.rows[i]), int(layer.at[i]), int(layer.stop[i])
    if stop > layer.end[i]:
        return None
    if layer.kind is Kind.FRAGMENT4:
        if stop - header < 20:
            return None
        word = int.from_bytes(data[header + 6 : header + 8], "big")
        identification = int.from_bytes(data[header + 4 : header + 6], "big")
        start = header + (data[header] & 15) * 4
        offset, more, protocol = (word & 0x1FFF) * 8, bool(word & 0x2000), data[header + 9]
        kind = Kind(int(PROTOCOLS4[protocol]))
    else:
        if stop - header < 8:
            return None
        word = int.from_bytes(data[header + 2 : header + 4], "big")
        identification = int.from_bytes(data[header + 4 : header + 8], "big")
        start = header + 8
        offset, more, protocol = word & 0xFFF8, bool(word & 1), data[header]
        kind = Kind(int(PROTOCOLS6[protocol]))
    key = (
        4 if layer.kind is Kind.FRAGMENT4 else 6,
        int(addresses.source_high[row]),
        int(addresses.source_low[row]),
        int(addresses.destination_high[row]),
        int(addresses.destination_low[row]),
        identification,
        protocol,
    )
    return Fragment(key, offset, not more, data[start:stop]), kind

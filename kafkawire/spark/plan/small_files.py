"""Opens and indexes small captures together, with one read of each.

What it finds in a file is what `open_input` and `index_split` find. Files that are not plain
(compressed, pcapng, truncated, corrupt, without packets, with IP fragments, an unsupported link
type, or packets that are not decoded) are left to them.

    files --one read each--> packets of many files as one block --> hashes, by columns
        `--not plain--> open_input, index_split                       `--> SmallFiles, as columns
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from ...capture.files.blocks import MAX_PACKETS, PacketBlock
from ...capture.files.columns import Ints, take_rows
from ...capture.files.packet_offsets import packets
from ...capture.files.pcap import FILE_HEADER, PcapHeader, read_header
from ...capture.packets.parser import PacketParser
from ...magic_numbers import is_pcap
from ..shuffle.header_hashes import header_sums, plain_headers
from ..shuffle.packets import Hashes, endpoint_sums
from ..splitting import InputFile
from ..splitting.file_list import FileList, Indexes, LazySequence
from ..splitting.stores import opened
from .parts import fragment_count
from .visited import select

SMALL_BYTES: Final = 1 << 20
"""The size of a small file, at most."""

BATCH_FILES: Final = 256
BATCH_BYTES: Final = 16 << 20
"""Files, and bytes of files, that are indexed together."""

REQUESTS: Final = 16
"""Files of a store that are read at the same time: each read waits for the network."""


class SmallFiles(NamedTuple):
    """Plain small files as columns, a row for each.

    rows: their places in the list of all files. headers: the distinct ones; header: of each file.
    first_ns: time of the first packet; packets: number of them. connections: how many the file has;
    sums and sizes: of all connections, one file after the other: the sum of their endpoints'
    hashes, and their bytes.
    """

    rows: Indexes
    headers: tuple[PcapHeader, ...]
    header: Indexes
    first_ns: Ints
    packets: Indexes
    connections: Indexes
    sums: Hashes
    sizes: Indexes


class Head(NamedTuple):
    """A plain file that was read: its place in the batch, header, bytes, offsets of packets."""

    row: int
    header: PcapHeader
    data: bytes
    offsets: Ints


@dataclass(frozen=True, eq=False)
class Batches(LazySequence[list[tuple[int, InputFile]]]):
    """Batches of files, with their places. bounds: where batches begin in `rows`, and the end."""

    files: FileList
    rows: Indexes
    bounds: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def value(self, index: int) -> list[tuple[int, InputFile]]:
        """Return a batch."""
        rows = self.rows[self.bounds[index] : self.bounds[index + 1]].tolist()
        return [(row, self.files[row]) for row in rows]


def batches(files: FileList, limit: int) -> Batches:
    """Batch the files of at most `limit` bytes."""
    rows = np.flatnonzero(files.sizes <= min(limit, SMALL_BYTES))
    ends = np.cumsum(files.sizes[rows])
    bounds = [0]
    while (start := bounds[-1]) < len(rows):
        before = int(ends[start - 1]) if start else 0
        end = int(np.searchsorted(ends, before + BATCH_BYTES, "right"))
        bounds.append(min(end, start + BATCH_FILES))
    return Batches(files, rows.astype(np.int32), (*bounds,))


def index_small(batch: Sequence[tuple[int, InputFile]]) -> SmallFiles:
    """Index the plain files of a batch."""
    by_header: dict[PcapHeader, list[Head]] = {}
    tunnels = batch[0][1].tunnels if batch else ()
    for row, data in enumerate(contents([file for _, file in batch])):
        head = _walked(row, data, batch[row][1].size)
        if head is not None:
            by_header.setdefault(head.header, []).append(head)
    return joined(
        _renumbered(_indexed(header, heads, tunnels), batch) for header, heads in by_header.items()
    )


def joined(several: Iterable[SmallFiles]) -> SmallFiles:
    """Concatenate the columns of batches."""
    every = list(several)
    codes: dict[PcapHeader, int] = {}
    header = [np.empty(0, np.int32)]
    for one in every:
        new_codes = [codes.setdefault(each, len(codes)) for each in one.headers]
        header.append(np.array(new_codes, np.int32)[one.header])
    return SmallFiles(
        np.concatenate([np.empty(0, np.int32), *(one.rows for one in every)]),
        (*codes,),
        np.concatenate(header),
        np.concatenate([np.empty(0, np.int64), *(one.first_ns for one in every)]),
        np.concatenate([np.empty(0, np.int32), *(one.packets for one in every)]),
        np.concatenate([np.empty(0, np.int32), *(one.connections for one in every)]),
        np.concatenate([np.empty(0, np.uint64), *(one.sums for one in every)]),
        np.concatenate([np.empty(0, np.int32), *(one.sizes for one in every)]),
    )


def contents(files: Sequence[InputFile]) -> Iterator[bytes | None]:
    """Read whole files; None for one that cannot be read. Files of a store are read together."""
    if all(file.store.is_local for file in files):
        return map(_content, files)
    with ThreadPoolExecutor(REQUESTS) as threads:
        return iter(list(threads.map(_content, files)))


def _content(file: InputFile) -> bytes | None:
    try:
        with opened(file) as reader:
            return reader.read(0, file.size)
    except OSError:
        return None


def _walked(row: int, data: bytes | None, size: int) -> Head | None:
    """Find the packets of a file; None if it is not plain."""
    if data is None or len(data) != size or len(data) < FILE_HEADER or not is_pcap(data):
        return None
    header = read_header(data)
    if len(data) < header.size:
        return None
    shape = header.shape
    big = shape.order == ">"
    packet_offsets, end = packets(data, header.size, shape.size, big, shape.longest, MAX_PACKETS)
    offsets = np.frombuffer(packet_offsets, "<i8")
    if end != len(data) or not 0 < len(offsets) < MAX_PACKETS:
        return None
    return Head(row, header, data, offsets)


def _indexed(header: PcapHeader, heads: Sequence[Head], tunnels: tuple[str, ...]) -> SmallFiles:
    """Index files with the same header, all packets as one block."""
    block, file = _block(header, heads)
    plain, rows = plain_headers(block)
    sums = header_sums(rows)
    files, sizes = file[plain], block.captured[plain]
    left: Ints = np.empty(0, np.int64)
    if not plain.all():
        rest = np.flatnonzero(~plain)
        parser = PacketParser(tunnels)
        segments = parser.parse(select(block, rest))
        if parser.problems or parser.undecoded.counts or fragment_count(parser):
            left = np.union1d(left, file[rest])
        else:
            files = np.concatenate([files, file[rest[segments.packet - block.first]]])
            sums = np.concatenate([sums, endpoint_sums(segments)])
            sizes = np.concatenate([sizes, segments.captured])
    kept = np.setdiff1d(np.arange(len(heads)), left)
    among = np.isin(files, kept)
    connections, sums, sizes = _grouped(files[among], sums[among], sizes[among], len(heads))
    starts = np.cumsum([0, *(len(head.offsets) for head in heads)])
    return SmallFiles(
        np.array([heads[index].row for index in kept.tolist()], np.int32),
        (header,),
        np.zeros(len(kept), np.int32),
        block.ts[starts[kept]],
        np.diff(starts)[kept].astype(np.int32),
        connections[kept].astype(np.int32),
        sums,
        sizes.astype(np.int32),
    )


def _block(header: PcapHeader, heads: Sequence[Head]) -> tuple[PacketBlock, Ints]:
    """Make a block of the packets of files, and the file of each packet."""
    shape = header.shape
    data = b"".join([head.data for head in heads])
    bases = np.cumsum([0, *(len(head.data) for head in heads)])
    offsets = np.concatenate(
        [head.offsets + base for head, base in zip(heads, bases, strict=False)]
    )
    packet_headers = take_rows(data, offsets, shape.dtype())
    scale = 10**9 // header.variant.fractions
    block = PacketBlock(
        data=data,
        position=0,
        first=1,
        ts=packet_headers["seconds"].astype(np.int64) * 10**9
        + packet_headers["fraction"].astype(np.int64) * scale,
        start=offsets + shape.size,
        captured=packet_headers["captured"].astype(np.int64),
        original=packet_headers["original"].astype(np.int64),
        link=np.full(len(offsets), header.link, np.int64),
    )
    return block, np.repeat(np.arange(len(heads)), [len(head.offsets) for head in heads])


def _grouped(files: Ints, sums: Hashes, sizes: Ints, count: int) -> tuple[Ints, Hashes, Ints]:
    """Sum the sizes of each connection of each file.

    Returns the number of connections of each file, and the connections by file.
    """
    order = np.lexsort((sums, files))
    files, sums, sizes = files[order], sums[order], sizes[order]
    new = np.ones(len(files), bool)
    new[1:] = (np.diff(files) != 0) | (sums[1:] != sums[:-1])
    starts = np.flatnonzero(new)
    totals = np.add.reduceat(sizes, starts) if len(starts) else sizes
    return np.bincount(files[starts], minlength=count), sums[starts], totals


def _renumbered(files: SmallFiles, batch: Sequence[tuple[int, InputFile]]) -> SmallFiles:
    return files._replace(rows=np.array([batch[row][0] for row in files.rows.tolist()], np.int32))

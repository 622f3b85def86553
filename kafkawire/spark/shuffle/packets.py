"""Rows of packets, many to a row, that are shuffled to the task of their connection.

The segments of a bucket, sorted by packet, are exactly those that the parser made of its
connections. Spark shuffles few large values and does not look into them.

    Segments --by bucket--> | bucket | kind | packet: the first | body: columns, then payload |

A connection (set, and unordered pair of endpoints) is in one bucket. Rows without segments:
fragments (IP fragments as captured) and problems of files; both are in the bucket of their file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...capture.files.blocks import PacketBlock
from ...capture.files.columns import Ints
from ...capture.packets.segments import KEY, Segments

SCHEMA: Final = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("kind", pa.int32()),
        pa.field("packet", pa.int64()),
        pa.field("body", pa.binary()),
    ]
)


class Kind(IntEnum):
    """The kinds of rows, in the order in which a task gets them. STATE: see `watch.state`."""

    STATE = 0
    SEGMENTS = 1
    FRAGMENTS = 2
    PROBLEMS = 3


SEGMENT_COLUMNS: Final = {
    "packet": "<i8",
    "ts": "<i8",
    "source_high": "<u8",
    "source_low": "<u8",
    "destination_high": "<u8",
    "destination_low": "<u8",
    "ports": "<i8",
    "seq": "<u4",
    "ack": "<u4",
    "flags": "<u4",
    "captured": "<u4",
    "original": "<u4",
}
"""Columns of serialised segments; the concatenated payloads follow."""

WIDENED: Final = ("seq", "ack", "flags", "original")
"""Those that are int64 in `Segments`."""

FRAGMENT_COLUMNS: Final = dict.fromkeys(("packet", "ts", "link", "captured", "original"), "<i8")
"""Columns of serialised fragments."""

COUNT: Final = 8
"""Bytes of the row count in front."""

Hashes = npt.NDArray[np.uint64]

NOT_SHUFFLED: Final = -1
"""The bucket of packets that are not shuffled."""


class Partitioner(NamedTuple):
    """Maps connections to buckets.

    hot: connections (hashes) with a bucket of their own. visited: connections (hashes, sorted) that
    are decoded in place.
    """

    total: int
    hot: tuple[int, ...] = ()
    visited: Hashes | None = None

    def of(self, hashes: Hashes) -> npt.NDArray[np.int32]:
        """Return the buckets of connections."""
        shared = self.total - len(self.hot)
        buckets = ((hashes >> np.uint64(32)) % np.uint64(shared)).astype(np.int32) + len(self.hot)
        for bucket, one in enumerate(self.hot):
            buckets[hashes == np.uint64(one)] = bucket
        if self.visited is not None:
            buckets[is_among(self.visited, hashes)] = NOT_SHUFFLED
        return buckets

    def of_file(self, file: int) -> int:
        """Return the bucket for problems and fragments of a file."""
        return len(self.hot) + file % (self.total - len(self.hot))


_K1: Final = np.uint64(0x9E3779B97F4A7C15)
_K2: Final = np.uint64(0xC2B2AE3D27D4EB4F)
_K3: Final = np.uint64(0x165667B19E3779F9)
_SHIFT: Final = np.uint64(29)


def endpoint_hashes(high: Any, low: Any, port: Any) -> Hashes:
    """Hash one endpoint of each connection."""
    word = (high * _K2) ^ (low << np.uint64(16) | port.astype(np.uint64))
    word *= _K1
    hashes: Hashes = word ^ (word >> _SHIFT)
    return hashes


def hashes(segments: Segments, set: int) -> Hashes:
    """Return a hash for each segment, equal for all segments of a connection."""
    return finish_hashes(endpoint_sums(segments), set)


def endpoint_sums(segments: Segments) -> Hashes:
    """Return the sums of the hashes of both endpoints, the same in both directions."""
    ports = segments.ports
    mixed = endpoint_hashes(segments.source_high, segments.source_low, ports >> 16)
    return mixed + endpoint_hashes(
        segments.destination_high, segments.destination_low, ports & 0xFFFF
    )


def key_hashes(keys: Sequence[bytes]) -> Hashes:
    """Return the hashes of connections by their keys, in set 0."""
    ends = np.frombuffer(b"".join(keys), KEY)
    mixed = endpoint_hashes(ends["source_high"], ends["source_low"], ends["source_port"])
    mixed = mixed + endpoint_hashes(
        ends["destination_high"], ends["destination_low"], ends["destination_port"]
    )
    return finish_hashes(mixed, 0)


def finish_hashes(connections: Hashes, set: int | Hashes) -> Hashes:
    """Mix in the set, which is part of the identity of a connection."""
    connections = (connections + np.asarray(set, np.uint64)) * _K3
    return connections ^ (connections >> _SHIFT)


def is_among(several: Hashes, hashes: Hashes) -> npt.NDArray[np.bool_]:
    """Return which hashes are among `several`, which are sorted."""
    if not len(several):
        return np.zeros(len(hashes), bool)
    among: npt.NDArray[np.bool_]
    if len(several) == 1:
        among = hashes == several[0]
    else:
        among = several[np.minimum(np.searchsorted(several, hashes), len(several) - 1)] == hashes
    return among


# -- rows


def row_of(bucket: int, kind: Kind, packet: int, body: bytes) -> pa.RecordBatch:
    """Make a row."""
    values = (bucket, int(kind), packet, body)
    arrays = [pa.array([value], each.type) for value, each in zip(values, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def segment_rows(
    segments: Segments, set: int, partitioner: Partitioner
) -> Iterator[pa.RecordBatch]:
    """Make rows of the segments of a set that are shuffled, one for each bucket."""
    buckets = partitioner.of(hashes(segments, set))
    order = np.argsort(buckets, kind="stable")
    order = order[np.searchsorted(buckets, 0, sorter=order) :]
    if not len(order):
        return
    ordered = buckets[order]
    cuts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    payload, offsets = _concatenated(segments, order)
    columns = [
        getattr(segments, name)[order].astype(type) for name, type in SEGMENT_COLUMNS.items()
    ]
    for start, end in zip([0, *cuts.tolist()], [*cuts.tolist(), len(order)], strict=True):
        bucket_columns = [column[start:end] for column in columns]
        body = _packed(bucket_columns, payload[offsets[start] : offsets[end]])
        yield row_of(int(ordered[start]), Kind.SEGMENTS, int(bucket_columns[0][0]), body)


def fragment_row(block: PacketBlock, numbers: Ints, bucket: int) -> pa.RecordBatch:
    """Make a row of packets that are IP fragments."""
    ends = zip(block.start.tolist(), (block.start + block.captured).tolist(), strict=True)
    columns = [numbers, block.ts, block.link, block.captured, block.original]
    body = _packed(columns, b"".join([block.data[start:end] for start, end in ends]))
    return row_of(bucket, Kind.FRAGMENTS, int(numbers[0]), body)


def segments_in(body: bytes) -> Segments:
    """Read segments from a body."""
    columns, payload_start = _unpacked(SEGMENT_COLUMNS, body)
    captured = columns["captured"].astype(np.int64)
    columns |= {name: columns[name].astype(np.int64) for name in WIDENED}
    columns |= {"captured": captured, "at": payload_start + np.cumsum(captured) - captured}
    return Segments(data=body, **columns)


def fragments_in(body: bytes) -> tuple[PacketBlock, Ints]:
    """Read packets from a body, numbered from 1; also returns their real numbers."""
    columns, payload_start = _unpacked(FRAGMENT_COLUMNS, body)
    captured = columns["captured"]
    start = payload_start + np.cumsum(captured) - captured
    rest = (columns["original"], columns["link"])
    return PacketBlock(body, 0, 1, columns["ts"], start, captured, *rest), columns["packet"]


def _packed(columns: Sequence[npt.NDArray[Any]], payload: bytes | memoryview) -> bytes:
    count = len(columns[0]).to_bytes(COUNT, "little")
    return b"".join([count, *(column.tobytes() for column in columns), payload])


def _unpacked(types: dict[str, str], body: bytes) -> tuple[dict[str, npt.NDArray[Any]], int]:
    """Read columns; also returns where the payload starts."""
    count, offset = int.from_bytes(body[:COUNT], "little"), COUNT
    columns: dict[str, npt.NDArray[Any]] = {}
    for name, type in types.items():
        columns[name] = np.frombuffer(body, type, count, offset)
        offset += columns[name].nbytes
    return columns, offset


def _concatenated(segments: Segments, order: Ints) -> tuple[memoryview, list[int]]:
    """Concatenate payloads; also returns the offset of each and of the end."""
    sizes = segments.captured[order]
    offsets: list[int] = [0, *np.cumsum(sizes).tolist()]
    filled = sizes > 0
    starts = segments.at[order[filled]]
    data = segments.data
    pairs = zip(starts.tolist(), (starts + sizes[filled]).tolist(), strict=True)
    return memoryview(b"".join([data[start:end] for start, end in pairs])), offsets


# -- segments


def take(segments: Segments, rows: Ints | slice | npt.NDArray[np.bool_]) -> Segments:
    """Select segments."""
    columns = {name: getattr(segments, name)[rows] for name in _COLUMNS}
    return Segments(data=segments.data, **columns)


def concatenated(several: Sequence[Segments]) -> Segments:
    """Concatenate segments, in packet order."""
    if len(several) == 1:
        return several[0]
    bases = np.cumsum([0, *(len(each.data) for each in several[:-1])]).tolist()
    columns = {name: np.concatenate([getattr(s, name) for s in several]) for name in _COLUMNS}
    columns["at"] = np.concatenate([s.at + base for s, base in zip(several, bases, strict=True)])
    joined = Segments(data=b"".join([each.data for each in several]), **columns)
    if (np.diff(joined.packet) > 0).all():
        return joined
    return take(joined, np.argsort(joined.packet, kind="stable"))


def by_connection(segments: Segments) -> Iterator[tuple[bytes, Segments]]:
    """Group segments by connection; the key is its endpoints, the lower one first."""
    whole = f"V{KEY.itemsize}"
    distinct, which = np.unique(_ends(segments).view(whole), return_inverse=True)
    order = np.argsort(which, kind="stable")
    cuts = np.searchsorted(which[order], np.arange(len(distinct) + 1)).tolist()
    for key, start, end in zip(distinct.tolist(), cuts, cuts[1:], strict=False):
        yield key, take(segments, order[start:end])


_COLUMNS: Final = tuple(each.name for each in fields(Segments) if each.name != "data")


def _ends(segments: Segments) -> npt.NDArray[Any]:
    """Return the pair of endpoints of each segment, the lower one first."""
    ports = segments.ports
    source = (segments.source_high, segments.source_low, ports >> 16)
    destination = (segments.destination_high, segments.destination_low, ports & 0xFFFF)
    in_order = np.zeros(len(segments), bool)
    undecided = np.ones(len(segments), bool)
    for ours, theirs in zip(source, destination, strict=True):
        in_order |= undecided & (ours < theirs)
        undecided &= ours == theirs
    in_order |= undecided
    ends = np.empty(len(segments), KEY)
    for name, ours, theirs in zip(("high", "low", "port"), source, destination, strict=True):
        ends[f"source_{name}"] = np.where(in_order, ours, theirs)
        ends[f"destination_{name}"] = np.where(in_order, theirs, ours)
    return ends

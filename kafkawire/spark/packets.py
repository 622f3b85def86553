"""Captured packets as rows that Spark moves: what reassembly needs of a TCP segment, and its
connection's key.

Law: from the rows of a key, sorted by packet, come the very segments that the parser made; nothing
else of a packet crosses Spark's boundary.

    Segments --batches--> | key | packet | ts | forth | seq | ack | flags | original | payload |
             <-segments--   set, low end, high end: 40 bytes; forth: sent by the low end

Two kinds of rows are no segments: a fragment of an IP datagram (key FRAGMENT, the packet as
captured) and what a split has to tell (key NOTICE), both by file.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..capture.blocks import PacketBlock
from ..capture.grouping import KEY
from ..capture.packets import Segments

SCHEMA: Final = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("packet", pa.int64()),
        pa.field("ts", pa.int64()),
        pa.field("forth", pa.bool_()),
        pa.field("seq", pa.int64()),
        pa.field("ack", pa.int64()),
        pa.field("flags", pa.int16()),
        pa.field("original", pa.int64()),
        pa.field("payload", pa.binary()),
    ]
)

FRAGMENT: Final = b"fragments"
NOTICE: Final = b"notice"

SET: Final = np.dtype(">u4")
PLACED: Final = np.dtype([("set", SET), ("ends", KEY)])
"""The key of a connection: the set it was captured in, and its two ends."""


def is_connection(key: bytes) -> bool:
    """Whether rows of that key are segments."""
    return len(key) == PLACED.itemsize


def segment_rows(segments: Segments, set: int) -> pa.RecordBatch:
    """Make rows of segments of a set."""
    keys = np.empty(len(segments), PLACED)
    keys["set"] = set
    keys["ends"], forth = _ends(segments)
    return pa.RecordBatch.from_arrays(
        [
            _fixed(keys),
            segments.packet,
            segments.ts,
            pa.array(forth),
            segments.seq.astype(np.int64),
            segments.ack.astype(np.int64),
            segments.flags.astype(np.int16),
            segments.original.astype(np.int64),
            _ranges(segments.data, segments.at, segments.captured),
        ],
        schema=SCHEMA,
    )


def fragment_rows(block: PacketBlock, numbers: npt.NDArray[np.int64], file: int) -> pa.RecordBatch:
    """Make rows of packets that are fragments: `seq` is the link type, `original` that of the
    packet.
    """
    count = len(block)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([FRAGMENT + b"%d" % file] * count, pa.binary()),
            numbers,
            block.ts,
            pa.array([True] * count),
            block.link.astype(np.int64),
            np.zeros(count, np.int64),
            np.zeros(count, np.int16),
            block.original,
            _ranges(block.data, block.start, block.captured),
        ],
        schema=SCHEMA,
    )


def notice_row(file: int, packet: int, told: bytes) -> pa.RecordBatch:
    """Make the row of what a split tells; packet: the last one it has read."""
    row = (NOTICE + b"%d" % file, packet, 0, True, 0, 0, 0, 0, told)
    return pa.RecordBatch.from_arrays(
        [pa.array([value], field.type) for value, field in zip(row, SCHEMA, strict=True)],
        schema=SCHEMA,
    )


def segments_in(rows: pa.RecordBatch) -> Segments:
    """Make segments of rows, which are of one or several connections, each in packet order."""
    forth = _numbers(rows.column("forth").cast(pa.int8())).astype(bool)
    ends = _bytes_of(rows.column("key"), PLACED.itemsize).view(PLACED)[:, 0]["ends"]
    source, destination = {}, {}
    for name in ("high", "low", "port"):
        low, high = ends[f"source_{name}"], ends[f"destination_{name}"]
        source[name] = np.where(forth, low, high)
        destination[name] = np.where(forth, high, low)
    data, at, captured = _payload(rows.column("payload"))
    return Segments(
        data,
        _numbers(rows.column("packet")),
        _numbers(rows.column("ts")),
        source["high"],
        source["low"],
        destination["high"],
        destination["low"],
        source["port"].astype(np.int64) << 16 | destination["port"].astype(np.int64),
        _numbers(rows.column("seq")),
        _numbers(rows.column("ack")),
        _numbers(rows.column("flags")).astype(np.uint8),
        at,
        captured,
        _numbers(rows.column("original")),
    )


def fragments_in(rows: pa.RecordBatch) -> PacketBlock:
    """Make a block of packets of rows of fragments, numbered from 1."""
    data, at, captured = _payload(rows.column("payload"))
    return PacketBlock(
        data,
        0,
        1,
        _numbers(rows.column("ts")),
        at,
        captured,
        _numbers(rows.column("original")),
        _numbers(rows.column("seq")),
    )


# -- keys


def _ends(segments: Segments) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Give each segment's pair of ends, the lower one first, and whether that one sent it."""
    ports = segments.ports
    source = (segments.source_high, segments.source_low, ports >> 16)
    destination = (segments.destination_high, segments.destination_low, ports & 0xFFFF)
    forth = np.zeros(len(segments), bool)
    undecided = np.ones(len(segments), bool)
    for ours, theirs in zip(source, destination, strict=True):
        forth |= undecided & (ours < theirs)
        undecided &= ours == theirs
    forth |= undecided
    ends = np.empty(len(segments), KEY)
    for name, ours, theirs in zip(("high", "low", "port"), source, destination, strict=True):
        ends[f"source_{name}"] = np.where(forth, ours, theirs)
        ends[f"destination_{name}"] = np.where(forth, theirs, ours)
    return ends, forth


# -- Arrow and numpy


def _fixed(rows: npt.NDArray[Any]) -> pa.Array:
    """Make a binary column of rows of one size."""
    size = rows.dtype.itemsize
    offsets = np.arange(0, size * len(rows) + 1, size, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(rows.tobytes())]
    return pa.BinaryArray.from_buffers(pa.binary(), len(rows), buffers)


def _ranges(data: bytes, at: npt.NDArray[Any], size: npt.NDArray[Any]) -> pa.Array:
    """Make a binary column of stretches of `data`."""
    ends = at + size
    if not (ends[:-1] <= at[1:]).all():
        pairs = zip(at.tolist(), ends.tolist(), strict=True)
        return pa.array([data[start:end] for start, end in pairs], pa.binary())
    # What lies between them becomes rows too, which are then left out.
    offsets = np.empty(2 * len(at) + 1, np.int32)
    offsets[0:-1:2], offsets[1::2] = at, ends
    offsets[-1] = ends[-1] if len(at) else 0
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    both = pa.BinaryArray.from_buffers(pa.binary(), 2 * len(at), buffers)
    return both.take(pa.array(np.arange(0, 2 * len(at), 2)))


def _numbers(column: pa.Array) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = column.to_numpy(zero_copy_only=False)
    return found


def _offsets(column: pa.Array) -> npt.NDArray[np.int64]:
    raw = np.frombuffer(column.buffers()[1], np.int32)
    return raw[column.offset : column.offset + len(column) + 1].astype(np.int64)


def _bytes_of(column: pa.Array, size: int) -> npt.NDArray[Any]:
    """Give the rows of a binary column in which all have one size."""
    start = int(_offsets(column)[0])
    content = np.frombuffer(column.buffers()[2], np.uint8)
    rows = content[start : start + size * len(column)].reshape(len(column), size)
    return np.ascontiguousarray(rows)


def _payload(column: pa.Array) -> tuple[bytes, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Give the bytes of a binary column, where each row begins in them, and its size."""
    offsets = _offsets(column)
    base = int(offsets[0])
    content = column.buffers()[2]
    data = b"" if content is None else content.slice(base, int(offsets[-1]) - base).to_pybytes()
    return data, offsets[:-1] - base, np.diff(offsets)

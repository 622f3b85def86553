"""Finds the offsets of packets one by one, since each length gives the next offset.

Everything else is decoded by columns.

Nothing outside the data is read.

    length, bytes | length, bytes | length, ...  -->  offsets, as little-endian int64, and the end
"""

from __future__ import annotations

from librt.strings import BytesWriter, read_i32_be, read_i32_le, write_i64_le
from mypy_extensions import i64


def packets(
    data: bytes, start: i64, header: i64, big: bool, longest: i64, limit: i64
) -> tuple[bytes, int]:
    """Find the first `limit` complete packets of a pcap in `data` from `start` on.

    header: size of a packet's header; big: whether it is big-endian. Returns the offsets of the
    headers, and the offset behind the last packet. Stops before an invalid header: one with a
    length beyond `longest`, or only zeros.
    """
    offsets = BytesWriter()
    offset = start
    size: i64 = len(data)
    while limit > 0 and offset + header <= size:
        length = (
            i64(read_i32_be(data, offset + 8) if big else read_i32_le(data, offset + 8))
            & 0xFFFFFFFF
        )
        end = offset + header + length
        if end > size or length > longest:
            break
        if length == 0 and read_i32_le(data, offset) == 0 and read_i32_le(data, offset + 12) == 0:
            break
        write_i64_le(offsets, offset)
        offset = end
        limit -= 1
    return offsets.getvalue(), offset


def blocks(
    data: bytes, start: i64, kind: i64, least: i64, big: bool, limit: i64
) -> tuple[bytes, int]:
    """Find the consecutive pcapng blocks of one type and at least `least` bytes from `start` on.

    Returns their offsets, and the offset behind the last, which may be incomplete.
    """
    offsets = BytesWriter()
    offset = start
    size: i64 = len(data)
    while limit > 0 and offset + 8 <= size:
        block_type = (
            i64(read_i32_be(data, offset) if big else read_i32_le(data, offset)) & 0xFFFFFFFF
        )
        length = (
            i64(read_i32_be(data, offset + 4) if big else read_i32_le(data, offset + 4))
            & 0xFFFFFFFF
        )
        if block_type != kind or length < least:
            break
        write_i64_le(offsets, offset)
        offset += length
        limit -= 1
    return offsets.getvalue(), offset

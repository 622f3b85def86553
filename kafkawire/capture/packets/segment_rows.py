"""TCP segments as rows of bytes, which reassembly reads without creating Python integers.

keys    | source: address, port; destination: address, port | ...                 36 bytes each
numbers | packet, time, seq, ack, payload, captured, size, flags | ...   little-endian int64 each
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i64_le
from mypy_extensions import i64, mypyc_attr

from ..files.packet_headers import PcapBlock
from .kinds import UDP_PORTS, passed_over
from .ordinary import ordinary_segments

FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04
ACK: Final = 0x10
WINDOW: Final = 0xFFFF << 16
WINDOW_SHIFT: Final = 16
"""Bits of the flags of a row: those of TCP, and the receive window; of a SYN instead the maximum
segment size among its options, 0 for none.
"""

KEY_BYTES: Final = 36

PACKET_AT: Final = 0
TIME_AT: Final = 8
SEQ_AT: Final = 16
ACK_AT: Final = 24
PAYLOAD_AT: Final = 32
CAPTURED_AT: Final = 40
SIZE_AT: Final = 48
FLAGS_AT: Final = 56
NUMBERS_BYTES: Final = 64
"""Offsets of the numbers in a row, and the bytes of a row.

payload: its offset in the data. captured, size: its bytes, captured and on the wire.
"""


@final
@mypyc_attr(acyclic=True)
class SegmentRows:
    """Segments in packet order. data: the buffer of the payloads."""

    def __init__(self, data: bytes, keys: bytes, numbers: bytes) -> None:
        self.data: bytes = data
        self.keys: bytes = keys
        self.numbers: bytes = numbers

    def __len__(self) -> int:
        return len(self.keys) // KEY_BYTES

    def payload_bytes(self, start: i64, end: i64) -> i64:
        """Add up the payload bytes of segments."""
        total: i64 = 0
        offset = start * NUMBERS_BYTES + SIZE_AT
        while offset < end * NUMBERS_BYTES:
            total += read_i64_le(self.numbers, offset)
            offset += NUMBERS_BYTES
        return total


PASSED_OVER: Final = passed_over(UDP_PORTS)


def ordinary_rows(block: PcapBlock, passed_over: bytes = PASSED_OVER) -> SegmentRows | None:
    """Parse the segments of a block; None if a packet in it is not ordinary.

    passed_over: what carries no TCP (`kinds`).
    """
    data, shape = block.data, block.shape
    segments = ordinary_segments(
        data,
        block.offsets,
        shape.size,
        shape.nanoseconds,
        shape.order == ">",
        block.link,
        block.first,
        passed_over,
    )
    return None if segments is None else SegmentRows(data, *segments)

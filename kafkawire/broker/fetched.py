"""A Fetch response whose record batches are sent as the log stores them.

No batch is copied: a frame consists of encoded bytes and, between them, the stored batches
themselves. Its bytes are those of the response with its records.

    message without records ─▶ encoded twice, records empty and null ─▶ where they differ, the
                                                                        length and the batches
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain
from typing import Final

from ..messages.fetch_response import FetchResponse, PartitionData
from ..protocol import encode_frame

SIZE: Final = 4
FLEXIBLE_FROM: Final = 12
DIFFERENCE: Final = re.compile(rb"\xff{4}|\x01", re.DOTALL)
"""The lengths of null and empty bytes, by exclusive or: -1 and 0 as int32, or 0 and 1 as varint."""


@dataclass(slots=True)
class Fetched:
    """A response. batches: of its partitions without records, by their `id`."""

    message: FetchResponse
    batches: dict[int, list[bytes]]

    def complete(self) -> FetchResponse:
        """Return the response with its records, joined when this is first called."""
        for data in self._with_records():
            data.records = b"".join(self.batches[id(data)])
        self.batches = {}
        return self.message

    def frame(self, version: int, correlation_id: int) -> list[bytes]:
        """Encode the frame of the response, in pieces."""
        filled = self._with_records()
        for data in filled:
            data.records = None
        null = encode_frame(self.message, version, correlation_id)
        for data in filled:
            data.records = b""
        empty = encode_frame(self.message, version, correlation_id)
        parts: list[bytes] = []
        start = SIZE
        for data, difference in zip(filled, DIFFERENCE.finditer(_xor(null, empty)), strict=True):
            batches = self.batches[id(data)]
            length = _length(sum(map(len, batches)), version >= FLEXIBLE_FROM)
            parts.append(empty[start : difference.start()] + length)
            parts += batches
            start = difference.end()
        parts.append(empty[start:])
        parts[0] = sum(map(len, parts)).to_bytes(SIZE, "big") + parts[0]
        return parts

    def _with_records(self) -> list[PartitionData]:
        partitions = chain.from_iterable(topic.partitions for topic in self.message.responses)
        return [data for data in partitions if id(data) in self.batches]


def _xor(left: bytes, right: bytes) -> bytes:
    """Return the exclusive or of bytes of equal length."""
    both = int.from_bytes(left, "big") ^ int.from_bytes(right, "big")
    return both.to_bytes(len(left), "big")


def _length(size: int, flexible: bool) -> bytes:
    """Encode the length of bytes: a varint of one more, or an int32."""
    if not flexible:
        return size.to_bytes(4, "big")
    size += 1
    encoded = bytearray()
    while size > 0x7F:
        encoded.append(size & 0x7F | 0x80)
        size >>= 7
    encoded.append(size)
    return bytes(encoded)

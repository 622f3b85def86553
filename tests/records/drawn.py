"""Hypothesis strategies for records and batches."""

from __future__ import annotations

from typing import Final, NamedTuple

from hypothesis import strategies as st

from kafkawire.records import BatchBuilder, Compression, MessageSetBuilder, Record, ReplacedText

INT64: Final = st.integers(-(2**63), 2**63 - 1)
TIMESTAMPS: Final = st.integers(-1, 2**42)
BLOBS: Final = st.none() | st.binary(max_size=40) | st.binary(min_size=120, max_size=300)
INVALID_TEXT: Final = st.sampled_from([ReplacedText(b"\xff"), ReplacedText(b"caf\xe9" * 5)])
HEADER_KEYS: Final = st.text(max_size=8) | INVALID_TEXT
HEADERS: Final = st.lists(st.tuples(HEADER_KEYS, BLOBS), max_size=3).map(tuple)
CODECS: Final = st.sampled_from(Compression)


class Batch(NamedTuple):
    """A batch to write: what its records are and where it starts."""

    magic: int
    compression: Compression
    base_offset: int
    records: list[Record]

    def encode(self) -> bytes:
        """Write it."""
        if self.magic == 2:
            builder = BatchBuilder(base_offset=self.base_offset, compression=self.compression)
            builder.extend(self.records)
            return builder.build()
        messages = MessageSetBuilder(
            self.magic, base_offset=self.base_offset, compression=self.compression
        )
        for record in self.records:
            messages.append(record.key, record.value, record.timestamp, record.offset)
        return messages.build()


@st.composite
def batches(draw: st.DrawFn, magic: int | None = None) -> Batch:
    """Draw a batch whose records have gaps between their offsets."""
    kind = draw(st.sampled_from([0, 1, 2])) if magic is None else magic
    codec = draw(CODECS.filter(lambda one: kind == 2 or one != Compression.ZSTD))
    base_offset = draw(st.integers(0, 2**50))
    records = []
    offset = base_offset
    for _ in range(draw(st.integers(1, 8))):
        timestamp = -1 if kind == 0 else draw(TIMESTAMPS)
        headers = draw(HEADERS) if kind == 2 else ()
        records.append(Record(offset, timestamp, draw(BLOBS), draw(BLOBS), headers))
        offset += draw(st.integers(1, 300))
    return Batch(kind, codec, base_offset, records)

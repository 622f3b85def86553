"""Down-converts records for old Fetch versions.

Keys, values and offsets are kept; what the old format lacks (headers, and in magic 0
timestamps) is dropped, as in brokers before 4.0.

    Fetch v0-1: magic 0 │ v2-3: magic 1 │ v4+: as stored, but zstd only from v10 on
"""

from __future__ import annotations

from typing import Final

from ...messages.fetch_request import FetchPartition
from ...messages.fetch_response import PartitionData
from ...protocol import ErrorCode
from ...records import Compression, MessageSetBuilder, Record, RecordBatches

MAGIC_1_FROM: Final = 2
SOFT_LIMITS_FROM: Final = 3
MAGIC_2_FROM: Final = 4
AS_STORED_FROM: Final = 10
"""From this version on, records are sent as they are stored: clients know every codec."""


def convert(data: PartitionData, requested: FetchPartition, version: int) -> None:
    """Convert the records of a partition for clients of a version, or set an error."""
    if not data.records or version >= AS_STORED_FROM:
        return
    records = readable(data.records, version, requested.fetch_offset)
    if records is None:
        data.error_code, records = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, b""
    if version < SOFT_LIMITS_FROM:
        records = records[: requested.partition_max_bytes]
    data.records = records


def readable(records: bytes, version: int, from_offset: int) -> bytes | None:
    """Convert records for a Fetch version; None if it supports no suitable format."""
    if version >= AS_STORED_FROM or not records:
        return records
    batches = list(RecordBatches(records))
    if any(batch.compression is Compression.ZSTD for batch in batches):
        return None
    if version >= MAGIC_2_FROM:
        return records
    magic = 1 if version >= MAGIC_1_FROM else 0
    return b"".join(
        _old(batch.records(), magic, batch.compression, from_offset)
        for batch in batches
        if not batch.control
    )


def _old(records: list[Record], magic: int, codec: Compression, from_offset: int) -> bytes:
    remaining = [record for record in records if record.offset >= from_offset]
    if not remaining:
        return b""
    builder = MessageSetBuilder(magic, base_offset=remaining[0].offset, compression=codec)
    for record in remaining:
        builder.append(record.key, record.value, record.timestamp, record.offset)
    return builder.build()

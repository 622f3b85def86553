"""Writes record batches of magic 2.

A builder always knows its size, and `build` does not end it: more records can be appended and
built again.

    append ─▶ records ─▶ [compressed] ─▶ header with the CRC-32C of what follows it ─▶ joined
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from struct import error as StructError
from typing import Final, final

from librt.strings import BytesWriter

from ..errors import OutOfRange
from .batch import CONTROL_BIT, DELETE_HORIZON_BIT, HEADER_BYTES, NONE, TRANSACTIONAL_BIT
from .checksum import crc32c_after
from .compression.codecs import Compression, compress
from .control import ControlType, control_key, end_txn_value
from .decoding import CALM
from .encoding import fields_size, header_keys, varint_size, write_fields, write_varint
from .legacy import LOG_APPEND_TIME_BIT, LOG_OVERHEAD
from .record import NO_HEADERS, NO_TIMESTAMP, Headers, Record

BEFORE_CRC: Final = Struct(">qiib")
CRC: Final = Struct(">I")
UNDER_CRC: Final = Struct(">hiqqqhii")
"""The header, in three parts."""
MAGIC: Final = 2
LARGE: Final = 0x10000
"""Size at which a writer's bytes are set aside."""
NO_KEYS: Final[list[bytes]] = []
INT32: Final = 0x8000_0000
INT64: Final = 0x8000_0000_0000_0000


@final
class BatchBuilder:
    """Collects the records of one batch.

    base_offset: the first offset; a producer's batches start at 0.
    base_timestamp: what record timestamps are written relative to; None is the first record's.
    log_append_time: the broker's timestamp for all records; None leaves them their own.
    delete_horizon_ms: takes the base timestamp's place (KIP-534).
    level: the codec's own; None is its default.
    """

    # over 40 lines: declares the attributes of a native class
    def __init__(  # noqa: PLR0913 - options by name
        self,
        *,
        base_offset: int = 0,
        compression: Compression = Compression.NONE,
        level: int | None = None,
        producer_id: int = NONE,
        producer_epoch: int = NONE,
        base_sequence: int = NONE,
        partition_leader_epoch: int = NONE,
        transactional: bool = False,
        control: bool = False,
        base_timestamp: int | None = None,
        log_append_time: int | None = None,
        delete_horizon_ms: int | None = None,
    ) -> None:
        self.base_offset: int = base_offset
        self.compression: Compression = compression
        self.level: int | None = level
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.base_sequence: int = base_sequence
        self.partition_leader_epoch: int = partition_leader_epoch
        self.log_append_time: int | None = log_append_time
        self.attributes: int = (
            int(compression)
            | (0 if log_append_time is None else LOG_APPEND_TIME_BIT)
            | (TRANSACTIONAL_BIT if transactional else 0)
            | (CONTROL_BIT if control else 0)
            | (0 if delete_horizon_ms is None else DELETE_HORIZON_BIT)
        )
        if delete_horizon_ms is not None:
            base_timestamp = delete_horizon_ms
        self.base_timestamp: int = NO_TIMESTAMP if base_timestamp is None else base_timestamp
        self.max_timestamp: int = NO_TIMESTAMP
        self.last_offset: int = base_offset - 1
        self.count: int = 0
        self._out: BytesWriter = BytesWriter()
        self._full: list[bytes] = []  # what `_out` held each time it was large
        self._full_size: int = 0
        self._based: bool = base_timestamp is not None

    @property
    def size(self) -> int:
        """Bytes of the batch so far, before compression."""
        return HEADER_BYTES + self._full_size + len(self._out)

    def append(
        self,
        key: bytes | None,
        value: bytes | None,
        timestamp: int = NO_TIMESTAMP,
        headers: Headers = NO_HEADERS,
        offset: int | None = None,
    ) -> None:
        """Add a record; `offset` None is the one after the last."""
        at = self.last_offset + 1 if offset is None else offset
        if not self._based:
            self.base_timestamp = timestamp
            self._based = True
        timestamp_delta = self._timestamp_delta(timestamp)
        offset_delta = self._offset_delta(at)
        keys = header_keys(headers) if headers else NO_KEYS
        out = self._out
        write_varint(out, fields_size(timestamp_delta, offset_delta, key, value, headers, keys))
        write_fields(out, timestamp_delta, offset_delta, key, value, headers, keys)
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        if at > self.last_offset:
            self.last_offset = at
        self.count += 1
        if len(out) > LARGE:
            self._set_aside()

    def _set_aside(self) -> None:
        """Empty the writer: a writer that grows with the batch would be copied repeatedly."""
        part = self._out.getvalue()
        self._full.append(part)
        self._full_size += len(part)
        self._out.truncate(0)

    def extend(self, records: Iterable[Record]) -> None:
        """Add records with their own offsets."""
        for record in records:
            self.append(record.key, record.value, record.timestamp, record.headers, record.offset)

    def size_of(
        self,
        key: bytes | None,
        value: bytes | None,
        timestamp: int = NO_TIMESTAMP,
        headers: Headers = NO_HEADERS,
        offset: int | None = None,
    ) -> int:
        """Return the bytes that `append` with the same arguments would add."""
        at = self.last_offset + 1 if offset is None else offset
        timestamp_delta = self._timestamp_delta(timestamp) if self._based else 0
        keys = header_keys(headers) if headers else NO_KEYS
        size = fields_size(timestamp_delta, self._offset_delta(at), key, value, headers, keys)
        return int(varint_size(size) + size)

    def build(self, *, last_offset: int | None = None, max_timestamp: int | None = None) -> bytes:
        """Write the batch.

        last_offset: where the batch's range ends; None is its last record's offset.
        max_timestamp: None is the log append time or the latest of the records.
        """
        parts = [*self._full, self._out.getvalue()]
        if self.compression != Compression.NONE and self.count:
            parts = [compress(self.compression, b"".join(parts), MAGIC, self.level)]
        last = max(self.last_offset, self.base_offset) if last_offset is None else last_offset
        if max_timestamp is None:
            max_timestamp = (
                self.max_timestamp if self.log_append_time is None else self.log_append_time
            )
        length = HEADER_BYTES - LOG_OVERHEAD + sum([len(part) for part in parts])
        try:
            before = BEFORE_CRC.pack(self.base_offset, length, self.partition_leader_epoch, MAGIC)
            under = UNDER_CRC.pack(
                self.attributes,
                last - self.base_offset,
                self.base_timestamp,
                max_timestamp,
                self.producer_id,
                self.producer_epoch,
                self.base_sequence,
                self.count,
            )
        except StructError as error:
            raise OutOfRange(f"a field of the batch header: {error}") from None
        crc = crc32c_after(0, under)
        for part in parts:
            crc = crc32c_after(crc, part)
        return b"".join([before, CRC.pack(crc), under, *parts])

    def _timestamp_delta(self, timestamp: int) -> int:
        base = self.base_timestamp
        delta = timestamp - base
        # the first comparison is for speed: an int64's own bounds are slow to compare with
        if not (-CALM < timestamp < CALM and -CALM < base < CALM) and not (
            -INT64 <= timestamp < INT64 and -INT64 <= delta < INT64
        ):
            raise OutOfRange(f"timestamp {timestamp} in a batch from {base}")
        return delta

    def _offset_delta(self, offset: int) -> int:
        delta = offset - self.base_offset
        if not (-INT32 <= delta < INT32):
            raise OutOfRange(f"offset {offset} in a batch from {self.base_offset}")
        return delta


def end_txn_batch(
    committed: bool,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    offset: int = 0,
    partition_leader_epoch: int = NONE,
) -> bytes:
    """Write the control batch that ends a transaction in a partition."""
    builder = BatchBuilder(
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        partition_leader_epoch=partition_leader_epoch,
        transactional=True,
        control=True,
    )
    key = control_key(ControlType.COMMIT if committed else ControlType.ABORT)
    builder.append(key, end_txn_value(coordinator_epoch), timestamp)
    return builder.build()

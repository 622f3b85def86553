"""Reads one record batch: its header, its checksum, its records.

Nothing after the header is read until records are requested; then the checksum is verified
first, limits second.

    base offset: int64 │ length: int32 │ partition leader epoch: int32 │ magic: int8 │
    crc: uint32 │ attributes: int16 │ last offset delta: int32 │ base timestamp: int64 │
    max timestamp: int64 │ producer id: int64 │ producer epoch: int16 │ base sequence: int32 │
    records count: int32 │ records                           magic 0 and 1: see `legacy`

    attributes: bits 0-2 codec │ 3 log append time │ 4 transactional │ 5 control │ 6 delete horizon
"""

# over 300 lines: one native class, header and records of a batch

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Final, final

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64

from ..errors import CorruptBatch, InvalidLength, UnsupportedMagic, WireError
from . import legacy
from .checksum import crc32, crc32c
from .column_decoding import add_records
from .columns import Columns
from .compression.codecs import COMPRESSION_BITS, Compression, codec_of
from .compression.decompression import opened
from .decoding import SMALLEST_RECORD, Source, decode_records
from .limits import DEFAULT_RECORD_LIMITS, Budget, RecordLimits
from .record import NO_TIMESTAMP, Record

HEADER_BYTES: Final = 61
"""Bytes of a magic 2 batch before its records."""
CRC_START: Final = 21
LEGACY_CRC_START: Final = 16
"""Where the bytes under the checksum start, in magic 2 and before."""

LARGEST_BASE_OFFSET: Final = 0x7FFFFFFF7FFFFFFF
"""The highest base offset to which any offset delta can be added within an int64."""

TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

NONE: Final = -1
"""The value of missing ids, epochs, sequences and timestamps."""


class TimestampType(IntEnum):
    """The source of a batch's timestamps."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


@final
class Batch:
    """A record batch in `data[start:end]`.

    Fields are as stored, in Kafka's names; those that magic 0 and 1 do not have are -1. For a
    compressed message of magic 0 or 1, `records_count` is -1 and `base_offset` needs a
    decompression.

    index: its place in the records field, for error paths. strict: as in `RecordBatches`.
    """

    def __init__(
        self,
        data: bytes,
        start: int,
        end: int,
        index: int = 0,
        limits: RecordLimits = DEFAULT_RECORD_LIMITS,
        check_crcs: bool = True,
        strict: bool = False,
    ) -> None:
        self.data: bytes = data
        self.start: int = start
        self.end: int = end
        self.index: int = index
        self.limits: RecordLimits = limits
        self.check_crcs: bool = check_crcs
        self.strict: bool = strict
        self.batch_length: int = end - start - legacy.LOG_OVERHEAD
        self.magic: int = data[start + 16]
        self.partition_leader_epoch: int = NONE
        self.base_timestamp: int = NONE
        self.producer_id: int = NONE
        self.producer_epoch: int = NONE
        self.base_sequence: int = NONE
        self.last_offset_delta: int = 0
        self.records_count: int = NONE
        if self.magic == 2:
            self._read_header()
        else:
            self._read_legacy_header()

    def _read_header(self) -> None:
        data, start = self.data, self.start
        if self.size < HEADER_BYTES:
            raise InvalidLength(f"a batch of {self.size} bytes", self.path, start + 8)
        self.partition_leader_epoch = int(read_i32_be(data, start + 12))
        self.crc: int = int(read_i32_be(data, start + 17)) & 0xFFFFFFFF
        self.attributes: int = int(read_i16_be(data, start + 21))
        self.last_offset_delta = int(read_i32_be(data, start + 23))
        self.base_timestamp = int(read_i64_be(data, start + 27))
        self.max_timestamp: int = int(read_i64_be(data, start + 35))
        self.producer_id = int(read_i64_be(data, start + 43))
        self.producer_epoch = int(read_i16_be(data, start + 51))
        self.base_sequence = int(read_i32_be(data, start + 53))
        self.records_count = int(read_i32_be(data, start + 57))
        self._base_offset: int | None = int(read_i64_be(data, start))
        self.last_offset: int = self._base_offset + self.last_offset_delta
        if self.records_count < 0:
            raise InvalidLength(f"{self.records_count} records", self.path, start + 57)

    def _read_legacy_header(self) -> None:
        data, start = self.data, self.start
        if self.magic > 2:
            raise UnsupportedMagic(f"magic {self.magic}", self.path, start + 16)
        if self.size < legacy.SMALLEST[self.magic]:
            raise InvalidLength(f"a message of {self.size} bytes", self.path, start + 8)
        self.crc = int(read_i32_be(data, start + 12)) & 0xFFFFFFFF
        self.attributes = data[start + 17]
        self.max_timestamp = int(read_i64_be(data, start + 18)) if self.magic == 1 else NO_TIMESTAMP
        self.last_offset = int(read_i64_be(data, start))
        self._base_offset = None
        if self.attributes & COMPRESSION_BITS == 0:
            self._base_offset = self.last_offset
            self.records_count = 1

    def __repr__(self) -> str:
        count = "?" if self.records_count < 0 else self.records_count
        return (
            f"<Batch {self.index} magic {self.magic} to offset {self.last_offset}, "
            f"{count} records, {self.size} bytes>"
        )

    # -- the header

    @property
    def path(self) -> str:
        """The batch in error paths."""
        return f"batch[{self.index}]"

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.end - self.start

    @property
    def base_offset(self) -> int:
        """The first offset of the batch."""
        if self._base_offset is None:
            messages = self._messages(Budget(self.limits), True)
            if messages.fault is not None and not messages.spans:
                raise messages.fault
        return self._base_offset or 0

    @property
    def compression(self) -> Compression:
        """The codec; UnsupportedCompression if it is unknown or not allowed in that magic."""
        try:
            return codec_of(self.attributes, self.magic)
        except WireError as error:
            raise self._located(error) from None

    @property
    def timestamp_type(self) -> TimestampType:
        """Whether timestamps are the producer's or the broker's."""
        if self.magic == 0:
            return TimestampType.NO_TIMESTAMP_TYPE
        return TimestampType.LOG_APPEND_TIME if self.log_append else TimestampType.CREATE_TIME

    @property
    def log_append(self) -> bool:
        """Whether all records have the broker's timestamp, `max_timestamp`."""
        return self.magic != 0 and self.attributes & legacy.LOG_APPEND_TIME_BIT != 0

    @property
    def transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return self.magic == 2 and self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def control(self) -> bool:
        """Whether the batch holds control records."""
        return self.magic == 2 and self.attributes & CONTROL_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop the batch's tombstones (KIP-534); None where that is not set."""
        horizon = self.magic == 2 and self.attributes & DELETE_HORIZON_BIT != 0
        return self.base_timestamp if horizon else None

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, -1 if there are none."""
        return self.sequence(self.last_offset)

    def sequence(self, offset: int) -> int:
        """Return the producer's sequence of the record at that offset; -1 if there is none."""
        if self.base_sequence < 0:
            return NONE
        return (self.base_sequence + offset - self.base_offset) & 0x7FFFFFFF

    # -- the checksum

    def compute_crc(self) -> int:
        """Compute the checksum."""
        if self.magic == 2:
            return crc32c(self.data, self.start + CRC_START, self.end)
        return crc32(self.data, self.start + LEGACY_CRC_START, self.end)

    @property
    def crc_valid(self) -> bool:
        """Whether the stored checksum is right."""
        return self.compute_crc() == self.crc

    def verify(self) -> None:
        """Raise CorruptBatch unless the stored checksum is right."""
        computed = self.compute_crc()
        if computed != self.crc:
            place = self.start + (17 if self.magic == 2 else 12)
            raise CorruptBatch(
                f"the checksum is {computed:08x}, stored {self.crc:08x}", self.path, place
            )

    # -- the records

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records())

    def records(
        self,
        budget: Budget | None = None,
        *,
        as_created: bool = False,
        faults: list[WireError] | None = None,
    ) -> list[Record]:
        """Decode the records. Offsets in errors count in the decompressed bytes, if there are any.

        budget: the limits left to a call that reads several batches; None is the whole limits.
        as_created: in magic 2, keep the timestamps the broker's log append time stands in for.
        faults: a list to which a fault is appended; the records before it are returned. None raises
            it. A batch beyond a limit, or whose checksum is wrong, has no records.
        """
        budget = Budget(self.limits) if budget is None else budget
        records: list[Record] = []
        try:
            fault = self._decode(records, budget, as_created, faults is not None)
        except WireError as error:
            fault = error
        if fault is not None:
            if faults is None:
                raise fault
            faults.append(fault)
        return records

    def rows(
        self, topic: str, partition: int, first: int, faults: list[WireError]
    ) -> list[tuple[Any, ...]]:
        """Decode the records from offset `first` on as tuples, without a Record for each.

        They have topic, partition, offset, timestamp, key, value, headers, timestamp type and
        leader epoch. faults: as in `records`.
        """
        rows: list[tuple[Any, ...]] = []
        source = topic, partition, first, self.timestamp_type, self.partition_leader_epoch
        try:
            fault = self._decode(rows, Budget(self.limits), False, True, source)
        except WireError as error:
            fault = error
        if fault is not None:
            faults.append(fault)
        return rows

    def _decode(
        self,
        records: list[Any],
        budget: Budget,
        as_created: bool,
        partial: bool,
        source: Source | None = None,
    ) -> WireError | None:
        """Append the records up to a fault, which is returned or raised. source: see `rows`."""
        if self.magic != 2:
            messages = self._messages(budget, partial)
            decoded = [span.record(messages.data) for span in messages.spans]
            records += decoded if source is None else rows_of(decoded, source)
            return messages.fault
        data, start, end, count, fault = self._body(budget, partial)
        met = decode_records(
            records,
            data,
            start,
            end,
            count,
            self.base_offset,
            self.base_timestamp,
            self.max_timestamp,
            self.log_append and not as_created,
            self.index,
            source,
            self.strict,
        )
        return met if fault is None else fault

    def columns(self, faults: list[WireError] | None = None) -> Columns:
        """Decode the records into columns that point into the batch. faults: as in `records`."""
        columns = Columns(self.data)
        self.add_to(columns, Budget(self.limits), faults)
        return columns

    def add_to(
        self,
        columns: Columns,
        budget: Budget,
        faults: list[WireError] | None = None,
        buffer: int = 0,
    ) -> None:
        """Add the records to columns that have this batch's data as a buffer: the first or another.

        faults: as in `records`.
        """
        try:
            fault = self._add_to(columns, budget, faults is not None, buffer)
        except WireError as error:
            fault = error
        if fault is not None:
            if faults is None:
                raise fault
            faults.append(fault)

    def _add_to(
        self, columns: Columns, budget: Budget, partial: bool, buffer: int
    ) -> WireError | None:
        """Add the records up to a fault, which is returned or raised. buffer: that of the data."""
        if self.magic != 2:
            messages = self._messages(budget, partial)
            data = messages.data
            if data is not self.data:
                buffer = columns.add_buffer(data)
            for span in messages.spans:
                columns.add_span(data, span, self.index, buffer)
            return messages.fault
        data, start, end, count, fault = self._body(budget, partial)
        met = add_records(
            columns,
            data,
            start,
            end,
            count,
            self.base_offset,
            self.base_timestamp,
            self.max_timestamp,
            self.log_append,
            self.index,
            buffer if data is self.data else columns.add_buffer(data),
            self.strict,
        )
        return met if fault is None else fault

    def body(self, budget: Budget | None = None) -> tuple[bytes, int, int]:
        """Return the records of magic 2, checked and decompressed, as (data, start, end)."""
        budget = Budget(self.limits) if budget is None else budget
        data, start, end, _, fault = self._body(budget, False)
        if fault is not None:
            raise fault
        return data, start, end

    def contents(self, budget: Budget) -> tuple[bytes, int, int, int, WireError | None]:
        """Find the bytes of magic 2's records up to a fault: data, start, end, number, fault."""
        return self._body(budget, True)

    def messages(self, budget: Budget) -> legacy.MessageSet:
        """Find the messages of magic 0 or 1, up to a fault."""
        return self._messages(budget, True)

    def check(self, budget: Budget) -> None:
        """Check the checksum and the header of magic 2, and that its records are within limits."""
        if self.check_crcs:
            self.verify()
        base_offset: i64 = self.base_offset
        if base_offset > LARGEST_BASE_OFFSET or base_offset < -LARGEST_BASE_OFFSET:
            raise CorruptBatch(f"base offset {base_offset}", self.path, self.start)
        try:
            budget.spend_records(self.records_count)
        except WireError as error:
            raise self._located(error) from None

    def _body(self, budget: Budget, partial: bool) -> tuple[bytes, int, int, int, WireError | None]:
        """Find the bytes of magic 2's records, up to a fault.

        Returns data, start, end, the highest possible number of records, and the fault. partial:
        whether to decompress corrupt data up to its fault.
        """
        self.check(budget)
        data, start, end = self.data, self.start + HEADER_BYTES, self.end
        count = self.records_count
        fault: WireError | None = None
        try:
            # a compacted batch without records has no compressed data either
            if self.attributes & COMPRESSION_BITS and start < end:
                codec = codec_of(self.attributes, self.magic)
                data, fault = opened(codec, data[start:end], self.magic, budget, partial)
                start, end = 0, len(data)
        except WireError as error:
            raise self._located(error) from None
        most = (end - start) // SMALLEST_RECORD
        if fault is not None:
            fault = self._located(fault)
        elif count > most:
            fault = InvalidLength(
                f"{count} records in {end - start} bytes", self.path, self.start + 57
            )
        return data, start, end, min(count, most), fault

    def _messages(self, budget: Budget, partial: bool) -> legacy.MessageSet:
        """Find the messages of magic 0 or 1, up to a fault."""
        if self.check_crcs:
            self.verify()
        try:
            message_set = legacy.unwrap(
                self.data, self.start, self.end, self.check_crcs, budget, self.index, partial
            )
        except WireError as error:
            raise self._located(error) from None
        if message_set.spans and self._base_offset is None:
            self._base_offset = int(message_set.spans[0].offset)
        if message_set.fault is not None:
            message_set.fault = self._located(message_set.fault)
        return message_set

    def _located(self, error: WireError) -> WireError:
        """Add this batch to the path of an error."""
        offset = self.start if error.offset is None else error.offset
        return type(error)(error.reason, error.path or self.path, offset)


def rows_of(records: list[Record], source: Source) -> list[tuple[Any, ...]]:
    """Return records as `Batch.rows` does."""
    topic, partition, first, kind, epoch = source
    return [
        (topic, partition, r.offset, r.timestamp, r.key, r.value, r.headers, kind, epoch)
        for r in records
        if r.offset >= first
    ]

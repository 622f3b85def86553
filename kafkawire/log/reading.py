"""Reads any file of a broker's log directory row by row.

One record is one row, one entry is one row; findings come between the rows, where they were
found.

    path -> recognise -> LogFile -> read -> RecordRow | OffsetIndexEntry | ... | Finding
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, NamedTuple

from ..primitives import Limits
from ..protocol.log_records import LogRecord, decode_control_record, decode_log_record
from ..protocol.log_types import InternalLog
from ..records import DEFAULT_RECORD_LIMITS, Batch, ControlType, Headers, Record, RecordLimits
from ..records.compression.codecs import CODEC_NAMES, COMPRESSION_BITS
from .files import RECORD_BATCH_KINDS, FileKind, LogFile
from .findings import Finding, Rule
from .indexes import (
    AbortedTransaction,
    OffsetIndexEntry,
    TimeIndexEntry,
    read_offset_index,
    read_time_index,
    read_transaction_index,
)
from .producers import ProducerState, read_producer_snapshot
from .segment import CHUNK, SegmentReader, StoredBatch
from .texts import (
    LeaderEpoch,
    PartitionOffset,
    Property,
    read_leader_epochs,
    read_offsets,
    read_partition_metadata,
    read_properties,
    read_quorum_state,
)

TYPED_LIMITS: Final = Limits(max_elements=1_000_000)
"""Limits of a decoded record of an internal log: Kafka's own are far smaller."""

CONTROL_NAMES: Final = {type.value: type.name for type in ControlType}


class RecordRow(NamedTuple):
    """A record with the properties of its batch.

    position: the byte of the file at which the batch starts. base_offset: the batch's.
    compression: the codec's name. crc_valid: None if not checked.
    sequence: that of the record. Ids, epochs and sequences are -1 for none.
    control: the type of a control record (COMMIT, ...), else None.
    decoded: key and value as messages, in internal logs and in control batches.
    """

    position: int
    base_offset: int
    offset: int
    timestamp: int
    timestamp_type: str
    magic: int
    compression: str
    crc_valid: bool | None
    producer_id: int
    producer_epoch: int
    sequence: int
    partition_leader_epoch: int
    transactional: bool
    control: str | None
    key: bytes | None
    value: bytes | None
    headers: Headers
    decoded: LogRecord | None


class BatchRow(NamedTuple):
    """The header of a record batch.

    position: the byte of the file at which it starts. base_offset: of a compressed message of magic
    0 or 1, its last offset. records: -1 if the header does not say. size: in bytes, with the
    header. crc_valid: None if not checked. base_timestamp, ids, epochs, sequences: -1 for none.
    """

    position: int
    base_offset: int
    last_offset: int
    records: int
    size: int
    magic: int
    compression: str
    timestamp_type: str
    base_timestamp: int
    max_timestamp: int
    crc: int
    crc_valid: bool | None
    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    partition_leader_epoch: int
    transactional: bool
    control: bool
    delete_horizon_ms: int | None


Row = (
    RecordRow
    | BatchRow
    | OffsetIndexEntry
    | TimeIndexEntry
    | AbortedTransaction
    | ProducerState
    | PartitionOffset
    | LeaderEpoch
    | Property
)

READERS: Final[dict[FileKind, Callable[..., Iterator[Row | Finding]]]] = {
    FileKind.OFFSET_INDEX: read_offset_index,
    FileKind.TIME_INDEX: read_time_index,
    FileKind.TRANSACTION_INDEX: read_transaction_index,
    FileKind.PRODUCER_SNAPSHOT: read_producer_snapshot,
    FileKind.LEADER_EPOCHS: read_leader_epochs,
    FileKind.OFFSETS: read_offsets,
    FileKind.PARTITION_METADATA: read_partition_metadata,
    FileKind.PROPERTIES: read_properties,
    FileKind.QUORUM_STATE: read_quorum_state,
}
"""Kind of file -> reader, for all kinds without record batches."""

ROWS: Final[dict[FileKind, type[Row]]] = {
    FileKind.SEGMENT: RecordRow,
    FileKind.METADATA_SNAPSHOT: RecordRow,
    FileKind.OFFSET_INDEX: OffsetIndexEntry,
    FileKind.TIME_INDEX: TimeIndexEntry,
    FileKind.TRANSACTION_INDEX: AbortedTransaction,
    FileKind.PRODUCER_SNAPSHOT: ProducerState,
    FileKind.LEADER_EPOCHS: LeaderEpoch,
    FileKind.OFFSETS: PartitionOffset,
    FileKind.PARTITION_METADATA: Property,
    FileKind.PROPERTIES: Property,
    FileKind.QUORUM_STATE: Property,
}
"""Kind of file -> row type."""


def read(
    file: LogFile,
    log: InternalLog | None = None,
    *,
    verify: bool = True,
    limits: RecordLimits = DEFAULT_RECORD_LIMITS,
) -> Iterator[Row | Finding]:
    """Read a file: its rows, with findings between them.

    log: the internal log whose keys and values are decoded (`file.log` derives it from the path);
        None leaves keys and values as bytes, except in control records.
    verify: check checksums, order, and an index against its segment. Without it, only errors that
        prevent reading are found.
    limits: limits of decoding one batch.

    Never raises on content; a file that cannot be opened or read is a finding, too.
    """
    try:
        with file.path.open("rb", buffering=CHUNK) as stream:
            yield from _rows(file, stream, log, verify, limits)
    except OSError as error:
        yield Finding(file.path, 0, Rule.UNREADABLE, error.strerror or str(error))


def _rows(
    file: LogFile,
    stream: BinaryIO,
    log: InternalLog | None,
    verify: bool,
    limits: RecordLimits,
) -> Iterator[Row | Finding]:
    if file.kind not in RECORD_BATCH_KINDS:
        yield from READERS[file.kind](file, stream, verify=verify)
        return
    for row in SegmentReader(file, stream, verify=verify, limits=limits):
        if isinstance(row, Finding):
            yield row
        else:
            for record in row.records:
                yield record_row(row, record, log)


def read_batches(
    file: LogFile, *, verify: bool = True, limits: RecordLimits = DEFAULT_RECORD_LIMITS
) -> Iterator[BatchRow | Finding]:
    """Read the headers of the batches of a segment or a snapshot of the metadata log.

    Arguments as in `read`. An incomplete batch or zeros at the end of the file are findings.
    """
    try:
        with file.path.open("rb", buffering=CHUNK) as stream:
            for row in SegmentReader(file, stream, verify=verify, limits=limits, headers=True):
                yield row if isinstance(row, Finding) else batch_row(row)
    except OSError as error:
        yield Finding(file.path, 0, Rule.UNREADABLE, error.strerror or str(error))


def batch_row(stored: StoredBatch) -> BatchRow:
    """Build the row of a batch."""
    batch = stored.batch
    return BatchRow(
        position=stored.position,
        base_offset=stored.base_offset,
        last_offset=batch.last_offset,
        records=batch.records_count,
        size=batch.size,
        magic=batch.magic,
        compression=_compression(batch),
        timestamp_type=batch.timestamp_type.name,
        base_timestamp=batch.base_timestamp,
        max_timestamp=batch.max_timestamp,
        crc=batch.crc,
        crc_valid=stored.crc_valid,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        last_sequence=batch.last_sequence,
        partition_leader_epoch=batch.partition_leader_epoch,
        transactional=batch.transactional,
        control=batch.control,
        delete_horizon_ms=batch.delete_horizon_ms,
    )


def record_row(stored: StoredBatch, record: Record, log: InternalLog | None) -> RecordRow:
    """Build the row of a record."""
    batch = stored.batch
    decoded = None
    if batch.control:
        decoded = decode_control_record(record.key, record.value, limits=TYPED_LIMITS)
    elif log is not None:
        decoded = decode_log_record(log, record.key, record.value, limits=TYPED_LIMITS)
    return RecordRow(
        position=stored.position,
        base_offset=stored.base_offset,
        offset=record.offset,
        timestamp=record.timestamp,
        timestamp_type=batch.timestamp_type.name,
        magic=batch.magic,
        compression=_compression(batch),
        crc_valid=stored.crc_valid,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        sequence=batch.sequence(record.offset) if batch.magic == 2 else -1,
        partition_leader_epoch=batch.partition_leader_epoch,
        transactional=batch.transactional,
        control=_control(decoded) if batch.control else None,
        key=record.key,
        value=record.value,
        headers=record.headers,
        decoded=decoded,
    )


def _compression(batch: Batch) -> str:
    """Return the name of the codec; a batch without records may have an unknown one."""
    code = batch.attributes & COMPRESSION_BITS
    return CODEC_NAMES[code] if code < len(CODEC_NAMES) else f"codec {code}"


def _control(decoded: LogRecord | None) -> str:
    """Return the type of a control record; `?` if its key has none."""
    number = decoded.key.type if decoded is not None and decoded.key is not None else None
    return "?" if number is None else CONTROL_NAMES.get(number, str(number))

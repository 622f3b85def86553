"""Any file of a broker's log directory, row by row.

Law: one record is one row, one entry is one row; findings come between the rows, where they were
met.

    path -> recognise -> LogFile -> read -> RecordRow | OffsetIndexEntry | ... | Finding
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, NamedTuple

from ..primitives import Limits
from ..protocol.log_records import LogRecord, decode_control_record, decode_log_record
from ..protocol.log_types import InternalLog
from ..records import DEFAULT_RECORD_LIMITS, Batch, ControlType, Headers, Record, RecordLimits
from ..records.compression import COMPRESSION_BITS, Compression
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
"""What one typed record may hold: Kafka's own are far smaller."""

CODEC_NAMES: Final = {codec.value: codec.name.lower() for codec in Compression}
CONTROL_NAMES: Final = {type.value: type.name for type in ControlType}


class RecordRow(NamedTuple):
    """One record with what its batch says of it.

    position: the byte of the file where the batch begins. base_offset: the batch's.
    compression: the codec's name. crc_valid: None where it was not looked at.
    sequence: the producer's for this record. Ids, epochs and sequences are -1 where there are none.
    control: the type of a control record (COMMIT, ...), None for a client's.
    decoded: key and value as messages, in the logs that Kafka itself writes and in control batches.
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


Row = (
    RecordRow
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
"""Kind of file -> what reads it, for all that hold no record batches."""

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
"""Kind of file -> what one of its rows is."""


def read(
    file: LogFile,
    log: InternalLog | None = None,
    *,
    verify: bool = True,
    limits: RecordLimits = DEFAULT_RECORD_LIMITS,
) -> Iterator[Row | Finding]:
    """Read a file: its rows, and what is found wrong between them.

    log: whose records those of a segment are (`file.log` says it by location); None leaves keys and
        values as bytes, but for control records.
    verify: check checksums, order, and an index against its segment. Without it, only what reading
        itself stumbles over is found.
    limits: what one batch may cost.

    Raises nothing on content; a file that cannot be opened or read is a finding too.
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
    for found in SegmentReader(file, stream, verify=verify, limits=limits):
        if isinstance(found, Finding):
            yield found
        else:
            for record in found.records:
                yield record_row(found, record, log)


def record_row(stored: StoredBatch, record: Record, log: InternalLog | None) -> RecordRow:
    """Put a record together with what its batch says of it."""
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
    """Name the codec; a batch without records may name one that does not exist."""
    code = batch.attributes & COMPRESSION_BITS
    return CODEC_NAMES.get(code, f"codec {code}")


def _control(decoded: LogRecord | None) -> str:
    """Name the type of a control record; `?` where its key does not say one."""
    number = decoded.key.type if decoded is not None and decoded.key is not None else None
    return "?" if number is None else CONTROL_NAMES.get(number, str(number))

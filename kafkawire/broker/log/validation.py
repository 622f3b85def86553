"""Validates produced records and assigns their offsets, as Kafka's LogValidator.

Only records that consumers can read are stored: checksum, codec, counts, offsets and
timestamps are validated first. Batches are stored as magic 2, with the offsets of the log.

    v3+   one batch of magic 2:   validated; offset, leader epoch and log append time assigned
    v0-2  messages of magic 0, 1: validated, up-converted to one batch of magic 2

Header keys that are not UTF-8 are stored: Kafka's broker decodes them only to compress a batch
again, and then replaces what is invalid; here the bytes stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from struct import unpack_from
from typing import Final, NamedTuple

from ...errors import CorruptBatch, DecodeError, InvalidLength, UnsupportedCompression, WireError
from ...protocol import ErrorCode
from ...records import Batch, BatchBuilder, Compression, RecordBatches, reencode
from ...records.compression.codecs import TOPIC_CODEC_NAMES
from ...records.legacy import LOG_APPEND_TIME_BIT
from ...records.validated import ValidatedBatch
from ..configs import Settings

E = ErrorCode
MAGIC: Final = 2
ONE_BATCH_FROM: Final = 3
ZSTD_FROM: Final = 7
"""The first Produce versions with a single batch of magic 2, and with zstd."""
NO_TIMESTAMP: Final = -1
ANY_TIME: Final = range(-(2**63), 2**63)
NAMED: Final = dict(zip(TOPIC_CODEC_NAMES, Compression, strict=True))


class RecordError(NamedTuple):
    """The error of one record. at: its index in the batch."""

    at: int
    message: str


@dataclass(frozen=True)
class RecordsRejected(Exception):
    """The records of a Produce are rejected.

    content_checked: whether their content is invalid; then the response has the log start offset,
    as in Kafka.
    """

    error: ErrorCode
    message: str
    records: tuple[RecordError, ...] = ()
    content_checked: bool = True


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a topic for its records."""

    compacted: bool = False
    compression: Compression | None = None
    log_append_time: bool = False
    max_message_bytes: int = 1048588
    before_max_ms: int = 2**63 - 1
    after_max_ms: int = 3_600_000
    min_insync_replicas: int = 1
    retention_bytes: int = -1


def rules(settings: Settings, configs: Mapping[str, str]) -> Rules:
    """Return a topic's rules from its configuration."""

    def value(name: str) -> str:
        return settings.topic(configs, name)

    return Rules(
        compacted="compact" in value("cleanup.policy"),
        compression=NAMED.get(value("compression.type")),
        log_append_time=value("message.timestamp.type") == "LogAppendTime",
        max_message_bytes=int(value("max.message.bytes")),
        before_max_ms=int(value("message.timestamp.before.max.ms")),
        after_max_ms=int(value("message.timestamp.after.max.ms")),
        min_insync_replicas=int(value("min.insync.replicas")),
        retention_bytes=int(value("retention.bytes")),
    )


def check(
    records: bytes | None, version: int, topic: Rules, wall_ms: int, transactional: bool = False
) -> ValidatedBatch:
    """Validate the records of a Produce for one partition. Raises RecordsRejected.

    transactional: whether the Produce is of a transaction that the broker knows.
    """
    try:
        data, is_one = records or b"", version >= ONE_BATCH_FROM
        # one batch of magic 2 is verified below, and need not be when its records are read
        batches = list(RecordBatches(data, check_crcs=not is_one))
        if is_one and (len(batches) != 1 or batches[0].magic != MAGIC):
            raise RecordsRejected(
                E.INVALID_RECORD,
                f"Produce v{version} requires one batch of magic 2",
                content_checked=False,
            )
        if not batches or batches[-1].end < len(data):
            raise RecordsRejected(
                E.CORRUPT_MESSAGE, "incomplete record batch", content_checked=False
            )
        for batch in batches:
            _check_batch(batch, version, topic, transactional)
        batch = batches[0] if is_one else _upconverted(batches)
        timestamps, null_keys = _content(batch)
    except UnsupportedCompression as error:
        raise RecordsRejected(
            E.UNSUPPORTED_COMPRESSION_TYPE, str(error), content_checked=False
        ) from None
    except (CorruptBatch, DecodeError) as error:
        raise RecordsRejected(E.CORRUPT_MESSAGE, str(error), content_checked=False) from None
    period = _period(topic, wall_ms)
    stamped = False
    for each in batches:
        stamped |= each.log_append and _is_stamped(each, topic, period)
    earliest, latest = min(timestamps), max(timestamps)
    lacks_keys = topic.compacted and null_keys
    if stamped or lacks_keys or earliest < period.start or latest >= period.stop:
        _reject_records(batch, topic, period, stamped)
    if topic.compression is not None and batch.compression != topic.compression:
        data = reencode(batch, topic.compression)
        batch = Batch(data, 0, len(data))
    stamp = wall_ms if topic.log_append_time else NO_TIMESTAMP
    return ValidatedBatch(batch, latest, stamp)


def _check_batch(batch: Batch, version: int, topic: Rules, transactional: bool) -> None:
    """Check a batch as a whole: its size, checksum, codec, and what its header claims."""
    if batch.size > topic.max_message_bytes:
        raise RecordsRejected(
            E.MESSAGE_TOO_LARGE,
            f"batch of {batch.size} bytes exceeds max.message.bytes ({topic.max_message_bytes})",
            content_checked=False,
        )
    batch.verify()
    if version < ZSTD_FROM and batch.compression is Compression.ZSTD:
        raise RecordsRejected(
            E.UNSUPPORTED_COMPRESSION_TYPE,
            f"zstd takes Produce v{ZSTD_FROM}, this is v{version}",
            content_checked=False,
        )
    if batch.magic == MAGIC:
        _check_header(batch, transactional)


def _check_header(batch: Batch, transactional: bool) -> None:
    """Check what the header of a batch claims, before its records are read."""
    if batch.base_offset != 0:
        raise RecordsRejected(E.INVALID_RECORD, f"base offset {batch.base_offset}, expected 0")
    if batch.records_count <= 0 or batch.last_offset_delta != batch.records_count - 1:
        raise RecordsRejected(
            E.INVALID_RECORD,
            f"{batch.records_count} records up to offset delta {batch.last_offset_delta}",
        )
    if batch.control:
        raise RecordsRejected(E.INVALID_RECORD, "clients may not write control records")
    if batch.transactional and not transactional:
        raise RecordsRejected(E.INVALID_TXN_STATE, "the partition is not part of a transaction")
    if batch.producer_id >= 0 and (batch.producer_epoch < 0 or batch.base_sequence < 0):
        raise RecordsRejected(E.INVALID_RECORD, "producer id without epoch or sequence")


def _content(batch: Batch) -> tuple[tuple[int, ...], int]:
    """Read the records without copying them; return their own timestamps, and how many null keys.

    Raises RecordsRejected for a malformed one, and for offsets that are not consecutive.
    """
    faults: list[WireError] = []
    columns = _as_created(batch).columns(faults)
    for fault in faults:
        if ".record[" in fault.path or isinstance(fault, InvalidLength):
            raise RecordsRejected(E.INVALID_RECORD, str(fault))
        raise fault  # corrupt compressed data, or a limit
    numbers, first = f"<{columns.rows}q", batch.base_offset
    offsets = unpack_from(numbers, columns.offset.numbers)
    if not offsets or offsets != tuple(range(first, first + columns.rows)):
        raise RecordsRejected(E.INVALID_RECORD, "offsets of a batch must be consecutive")
    return unpack_from(numbers, columns.timestamp.numbers), columns.key.nulls


def _as_created(batch: Batch) -> Batch:
    """Return a batch whose records have their own timestamps, whatever its header says."""
    if not batch.log_append:
        return batch
    plain = Batch(batch.data, batch.start, batch.end, check_crcs=False)
    plain.attributes &= ~LOG_APPEND_TIME_BIT
    return plain


def _period(topic: Rules, wall_ms: int) -> range:
    """Return the timestamps that records may have."""
    if topic.log_append_time:
        return ANY_TIME
    return range(wall_ms - topic.before_max_ms, wall_ms + topic.after_max_ms + 1)


def _is_stamped(batch: Batch, topic: Rules, period: range) -> bool:
    """Whether the log append time that a client claims is not to be cleared, as in Kafka.

    Where records have their own timestamps the claim is cleared, if its time is one of the period.
    """
    claimed = batch.max_timestamp
    return topic.log_append_time or claimed == NO_TIMESTAMP or claimed not in period


def _reject_records(batch: Batch, topic: Rules, period: range, stamped: bool) -> None:
    """Raise RecordsRejected with the records that are invalid, if any is.

    stamped: with a log append time of a client. A timestamp of -1 is a missing one.
    """
    early, late = period.start, period.stop - 1
    bad: list[tuple[ErrorCode, RecordError]] = []
    for at, record in enumerate(_as_created(batch).records()):
        timestamp = record.timestamp
        if topic.compacted and record.key is None:
            message = "a record without a key in a compacted topic"
            bad.append((E.INVALID_RECORD, RecordError(at, message)))
        elif stamped:
            message = "the timestamp type LogAppendTime is not a producer's to set"
            bad.append((E.INVALID_TIMESTAMP, RecordError(at, message)))
        elif not early <= timestamp <= late and timestamp != NO_TIMESTAMP:
            message = f"timestamp {timestamp} is out of range [{early}, {late}]"
            bad.append((E.INVALID_TIMESTAMP, RecordError(at, message)))
    if bad:
        error = bad[0][0]
        rejected = tuple(record for _, record in bad)
        raise RecordsRejected(error, "One or more records have been rejected", rejected)


def _upconverted(batches: list[Batch]) -> Batch:
    """Up-convert messages of old formats to one batch of magic 2."""
    magics = {batch.magic for batch in batches}
    if len(magics) > 1 or (MAGIC in magics and len(batches) > 1):
        raise RecordsRejected(E.INVALID_RECORD, "several batches, of magic 2 or of several magics")
    if magics == {MAGIC}:
        return batches[0]
    codec = max(batch.compression for batch in batches)
    builder = BatchBuilder(compression=codec)
    for batch in batches:
        for record in batch.records():
            builder.append(record.key, record.value, record.timestamp, record.headers)
    data = builder.build()
    return Batch(data, 0, len(data))

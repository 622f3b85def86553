"""Formats what kafkawire reads in log files like Kafka's dump tool.

Nothing is taken from the tool's output; only names and notation are its.
"""

from __future__ import annotations

import re
from typing import Any, Final

from kafkawire import to_json
from kafkawire.log import (
    AbortedTransaction,
    Finding,
    InternalLog,
    LogFile,
    LogPart,
    LogRecord,
    OffsetIndexEntry,
    ProducerState,
    Row,
    SegmentReader,
    StoredBatch,
    TimeIndexEntry,
    decode_control_record,
    decode_log_record,
    read,
)
from kafkawire.messages.end_txn_marker import EndTxnMarker
from kafkawire.records import ControlType, Record, TimestampType
from kafkawire.transactions.states import TransactionState

from . import dump

TIMESTAMP: Final = {
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}
CONTROL: Final = {
    "LeaderChangeMessage": "LeaderChange",
    "KRaftVersionRecord": "KRaftVersion",
    "VotersRecord": "KRaftVoters",
    "SnapshotHeaderRecord": "SnapshotHeader",
    "SnapshotFooterRecord": "SnapshotFooter",
}
"""Message in a control record -> the tool's name for it."""


def segment(file: LogFile) -> dump.File:
    """Read a segment, or a snapshot of the metadata log."""
    said = dump.File()
    with file.path.open("rb") as stream:
        for found in SegmentReader(file, stream):
            assert isinstance(found, StoredBatch), found
            records = [format_record(found, record, file.log) for record in found.records]
            said.batches.append(dump.Batch(format_batch(found), records))
    return said


def entries(file: LogFile) -> dump.File:
    """Read an index, or a snapshot of producers."""
    return dump.File(entries=[format_entry(row) for row in read(file)])


def format_batch(stored: StoredBatch) -> dict[str, str]:
    batch = stored.batch
    return {
        "baseOffset": str(batch.base_offset),
        "lastOffset": str(batch.last_offset),
        "count": str(batch.records_count),
        "baseSequence": str(batch.base_sequence),
        "lastSequence": str(batch.last_sequence),
        "producerId": str(batch.producer_id),
        "producerEpoch": str(batch.producer_epoch),
        "partitionLeaderEpoch": str(batch.partition_leader_epoch),
        "isTransactional": yes_or_no(batch.transactional),
        "isControl": yes_or_no(batch.control),
        "deleteHorizonMs": optional(batch.delete_horizon_ms),
        "position": str(stored.position),
        TIMESTAMP[batch.timestamp_type]: str(batch.max_timestamp),
        "size": str(batch.size),
        "magic": str(batch.magic),
        "compresscodec": batch.compression.name.lower(),
        "crc": str(batch.crc),
        "isvalid": yes_or_no(stored.crc_valid is True),
    }


def format_record(stored: StoredBatch, record: Record, log: InternalLog | None) -> dump.Record:
    batch = stored.batch
    values = {
        "offset": str(record.offset),
        TIMESTAMP[batch.timestamp_type]: str(record.timestamp),
        "keySize": size(record.key),
        "valueSize": size(record.value),
        "sequence": str(batch.sequence(record.offset)),
    }
    header_keys = ",".join(key for key, _ in record.headers)
    content: object
    if batch.control:
        content = format_control(decode_control_record(record.key, record.value))
    elif log is None:
        content = format_texts(record)
    else:
        content = format_decoded(log, decode_log_record(log, record.key, record.value))
    return dump.Record(values, header_keys, content)


def format_texts(record: Record) -> str:
    parts = (("key", record.key), ("payload", record.value))
    return " ".join(f"{name}: {part.decode()}" for name, part in parts if part is not None)


def format_control(record: LogRecord) -> object:
    part = record.value
    assert record.key is not None
    assert part is not None
    assert part.message is not None, part.error
    if isinstance(part.message, EndTxnMarker):
        assert record.key.type is not None
        kind, epoch = ControlType(record.key.type).name, part.message.coordinator_epoch
        return f"endTxnMarker: {kind} coordinatorEpoch: {epoch}"
    assert part.name is not None
    return [CONTROL[part.name], body(part)]


def format_decoded(log: InternalLog, record: LogRecord) -> object:
    part = record.value
    if log is InternalLog.METADATA:
        assert record.key is None
        assert part is not None
        assert part.name is not None
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", part.name).upper()
        return ["payload", {"type": name, "version": part.version, "data": body(part)}]
    assert record.key is not None
    key = {"type": str(record.key.type), "data": body(record.key)}
    value = None if part is None else {"version": str(part.version), "data": body(part)}
    return ["key", key, "payload", value]


def body(part: LogPart) -> Any:
    """Return a part's JSON, with a member's subscription or assignment as JSON."""
    assert part.message is not None, part.error
    assert part.version is not None
    made: Any = to_json(part.message, part.version)
    if part.name == "GroupMetadataValue":
        opened: Any = part.to_json()["message"]
        for member, inside in zip(made["members"], opened["members"], strict=True):
            for name in ("subscription", "assignment"):
                if f"{name}Decoded" in inside:
                    member[name] = inside[f"{name}Decoded"]["value"]
    if part.name == "TransactionLogValue":  # since 4.4 the tool prints the state's name
        made["transactionStatus"] = TransactionState(made["transactionStatus"]).label
    return made


def format_entry(row: Row | Finding) -> dict[str, str]:
    match row:
        case OffsetIndexEntry():
            return {"offset": str(row.offset), "position": str(row.position)}
        case TimeIndexEntry():
            return {"timestamp": str(row.timestamp), "offset": str(row.offset)}
        case AbortedTransaction():
            return {
                "version": str(row.version),
                "producerId": str(row.producer_id),
                "firstOffset": str(row.first_offset),
                "lastOffset": str(row.last_offset),
                "lastStableOffset": str(row.last_stable_offset),
            }
        case ProducerState():
            return format_producer(row)
    raise AssertionError(row)


def format_producer(row: ProducerState) -> dict[str, str]:
    first = row.current_txn_first_offset
    return {
        "producerId": str(row.producer_id),
        "producerEpoch": str(row.epoch),
        "coordinatorEpoch": str(row.coordinator_epoch),
        "currentTxnFirstOffset": optional(None if first < 0 else first),
        "lastTimestamp": str(row.timestamp),
        "firstSequence": str(row.last_sequence - row.offset_delta),
        "lastSequence": str(row.last_sequence),
        "lastOffset": str(row.last_offset),
        "offsetDelta": str(row.offset_delta),
        "timestamp": str(row.timestamp),
    }


def size(part: bytes | None) -> str:
    return "-1" if part is None else str(len(part))


def yes_or_no(said: bool) -> str:
    return "true" if said else "false"


def optional(number: int | None) -> str:
    """Write an optional number as Java does."""
    return "OptionalLong.empty" if number is None else f"OptionalLong[{number}]"

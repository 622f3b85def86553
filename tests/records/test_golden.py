"""Every record batch vector of Apache Kafka's making: header, records, columns, written back."""

from __future__ import annotations

from typing import Any

import pytest

from kafkawire.errors import CorruptBatch
from kafkawire.records import Batch, Compression, Record, RecordBatches, reencode
from kafkawire.records.replaced_text import header_row
from tests import golden

ROWS = list(golden.rows("record_batches"))
GOOD = [row for row in ROWS if row["expect"] == "ok"]
BAD = [row for row in ROWS if row["expect"] == "error"]
LEGACY_FIELDS = {
    "magic": "magic",
    "baseOffset": "base_offset",
    "lastOffset": "last_offset",
    "crc": "crc",
    "maxTimestamp": "max_timestamp",
    "sizeInBytes": "size",
}
FIELDS = {
    **LEGACY_FIELDS,
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "baseSequence": "base_sequence",
    "lastSequence": "last_sequence",
    "isTransactional": "transactional",
    "isControlBatch": "control",
    "partitionLeaderEpoch": "partition_leader_epoch",
    "baseTimestamp": "base_timestamp",
    "count": "records_count",
    "deleteHorizonMs": "delete_horizon_ms",
}


def header(batch: Batch) -> dict[str, Any]:
    """Say what the header says, as a vector does."""
    fields = FIELDS if batch.magic == 2 else LEGACY_FIELDS
    said = {name: getattr(batch, attribute) for name, attribute in fields.items()}
    said["compression"] = batch.compression.name.lower()
    said["timestampType"] = batch.timestamp_type.name.title().replace("_", "")
    return said


def row_of(batch: Batch, record: Record) -> dict[str, Any]:
    """Show a record as a vector does."""
    shown: dict[str, Any] = {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": shown_bytes(record.key),
        "value": shown_bytes(record.value),
    }
    if batch.magic == 2:
        shown["sequence"] = batch.sequence(record.offset)
        shown["headers"] = [[key, shown_bytes(value)] for key, value in record.headers]
    return shown


def shown_bytes(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


def test_all_kinds_are_there() -> None:
    kinds = {row["kind"] for row in ROWS}
    assert kinds == {"batch", "bad-crc", "partial-tail", "concat", "cut-header"}
    assert {batch["magic"] for row in GOOD for batch in row["batches"]} == {0, 1, 2}


@pytest.mark.parametrize("row", GOOD, ids=lambda row: row["kind"])
def test_vector_is_read(row: dict[str, Any]) -> None:
    data = bytes.fromhex(row["hex"])
    field = RecordBatches(data)
    read = [
        {**header(batch), "records": [row_of(batch, record) for record in batch]} for batch in field
    ]
    assert read == row["batches"]
    cut = row["kind"] in ("partial-tail", "cut-header")
    assert field.cut_tail == len(data) - sum(batch["sizeInBytes"] for batch in row["batches"])
    assert (field.cut_tail > 0) is cut


@pytest.mark.parametrize("row", GOOD, ids=lambda row: row["kind"])
def test_columns_say_what_records_say(row: dict[str, Any]) -> None:
    field = RecordBatches(bytes.fromhex(row["hex"]))
    expected = [
        {
            "batch": batch.index,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": record.key,
            "value": record.value,
            "headers": [header_row(*header) for header in record.headers],
        }
        for batch in field
        for record in batch
    ]
    columns = field.columns().to_arrow()
    columns.validate(full=True)
    assert columns.to_pylist() == expected


@pytest.mark.parametrize("row", BAD, ids=lambda row: row["reason"][-9:])
def test_wrong_checksum_is_refused(row: dict[str, Any]) -> None:
    data = bytes.fromhex(row["hex"])
    (batch,) = RecordBatches(data)
    assert not batch.crc_valid
    with pytest.raises(CorruptBatch, match=rf"batch\[0\]: the checksum is .*{batch.crc:08x}"):
        batch.records()
    with pytest.raises(CorruptBatch):
        RecordBatches(data).columns()


@pytest.mark.parametrize("row", GOOD, ids=lambda row: row["kind"])
def test_vector_is_written_back(row: dict[str, Any]) -> None:
    data = bytes.fromhex(row["hex"])
    for batch in RecordBatches(data):
        written = reencode(batch)
        if batch.compression == Compression.NONE:
            assert written == data[batch.start : batch.end]
        assert list(RecordBatches(written).records()) == batch.records()

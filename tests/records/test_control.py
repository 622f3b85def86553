"""Control batches: markers as Kafka writes them, types known and unknown."""

from __future__ import annotations

import pytest

from kafkawire.errors import CorruptBatch, InvalidValue
from kafkawire.records import (
    BatchBuilder,
    ControlRecord,
    ControlType,
    EndTxnMarker,
    Record,
    RecordBatches,
    control_key,
    control_record,
    end_txn_batch,
    end_txn_marker,
    end_txn_value,
)
from tests import golden

MARKERS = [
    row
    for row in golden.rows("record_batches")
    if row["kind"] == "batch" and row["batches"][0].get("isControlBatch")
]


def test_there_are_markers() -> None:
    assert {row["batches"][0]["records"][0]["key"] for row in MARKERS} == {"00000000", "00000001"}


@pytest.mark.parametrize("row", MARKERS, ids=lambda row: row["hex"][34:42])
def test_marker_of_kafka_is_read_and_written(row: dict[str, object]) -> None:
    data = bytes.fromhex(str(row["hex"]))
    (batch,) = RecordBatches(data)
    assert batch.control
    assert batch.transactional
    (record,) = batch
    marker = end_txn_marker(control_record(record))
    assert (
        end_txn_batch(
            marker.committed,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp=record.timestamp,
            offset=record.offset,
            partition_leader_epoch=batch.partition_leader_epoch,
        )
        == data
    )


@pytest.mark.parametrize("type", list(ControlType))
def test_types(type: ControlType) -> None:
    builder = BatchBuilder(control=True)
    builder.append(control_key(type, version=1), b"raw")
    (batch,) = RecordBatches(builder.build())
    assert (batch.control, batch.transactional) == (True, False)
    control = control_record(batch.records()[0])
    assert control == ControlRecord(type, 1, b"raw")
    assert isinstance(control.type, ControlType)


def test_unknown_type_and_longer_key() -> None:
    control = control_record(Record(0, 0, control_key(77) + b"more", None))
    assert control == ControlRecord(77, 0, None)
    assert not isinstance(control.type, ControlType)


def test_marker_values() -> None:
    assert end_txn_marker(ControlRecord(ControlType.ABORT, 0, end_txn_value(7, 1) + b"more")) == (
        EndTxnMarker(committed=False, version=1, coordinator_epoch=7)
    )


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0"])
def test_short_keys(key: bytes | None) -> None:
    with pytest.raises(CorruptBatch, match="version and type"):
        control_record(Record(0, 0, key, None))


def test_what_is_no_marker() -> None:
    with pytest.raises(CorruptBatch, match="without version and coordinator epoch"):
        end_txn_marker(ControlRecord(ControlType.COMMIT, 0, b"\0\0\0\0\0"))
    with pytest.raises(CorruptBatch, match="is not a transaction marker"):
        end_txn_marker(ControlRecord(ControlType.LEADER_CHANGE, 0, bytes(6)))
    with pytest.raises(InvalidValue):
        control_key(-1)
    with pytest.raises(InvalidValue):
        end_txn_value(2**31)
